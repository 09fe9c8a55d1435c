"""What compilers are asked to make of innermost loops: vectors, or bodies that are repeated.

Bodies are repeated in the text, too.
"""

from isamap.emit.liveness import calls
from isamap.emit.templates import Machine, names_offsets
from isamap.lower.nodes import Call, Loop, Node, Prefetch, Scope, Setting
from isamap.lower.vectorized import lanes_of

MOST = 8
"""How often a body is repeated at most."""

WRITTEN = 32
"""Instructions of a body that is written out, unless the toolchain says how many there are to be.

The next power of two would make addresses and counting less than a tenth of four loads and four
products; it would make loops of a few iterations none at all.
"""


INDEPENDENT = "#pragma omp simd"
"""Before a loop: its iterations may be done at once, in vectors (OpenMP 5.1, 2.11.5.1)."""


def requests(loop: Loop, machine: Machine) -> tuple[str, ...]:
    """Return the line before a loop that says what the compiler is to make of it, if there is one.

    Vectors of loops over single elements (:func:`isamap.lower.vectorized.lanes_of`), and otherwise
    bodies that are repeated where they are short.
    """
    if lanes_of(loop, machine.entries, machine.accelerator) > 1:
        return (INDEPENDENT,)
    return _unrolling(loop, machine)


def _unrolling(loop: Loop, machine: Machine) -> tuple[str, ...]:
    """Return the line before a loop that has its body repeated; none where it is long enough.

    A body is that of an innermost loop without conditions.  It is doubled until it has as many
    instructions as the toolchain says, so that counting and addresses are a small part of it.
    """
    tools = machine.accelerator.toolchain
    times = _times(loop, machine, tools.unroll if tools is not None else 0)
    if loop.count.constant is not None:
        # Without any loop left compilers mix its iterations, and have too few registers for that.
        times = min(times, max(1, loop.count.constant // 2))
    return (f"#pragma GCC unroll {times}",) if times > 1 else ()


def written_out(loop: Loop, machine: Machine) -> int:
    """Return how often the body of a loop is to stand in the text.

    More than once where instructions take constant parts of addresses: those of one iteration are
    constant parts of another one's, which the compiler that repeats a body does not tell them.
    """
    if not any(names_offsets(call, machine) for call in calls(loop.body)):
        return 1
    tools = machine.accelerator.toolchain
    times = _times(loop, machine, (tools.unroll if tools is not None else 0) or WRITTEN)
    count = loop.count.constant
    return times if count is None else max(1, min(times, count))


def _times(loop: Loop, machine: Machine, wanted: int) -> int:
    """Return how often the body of a loop is repeated for it to have ``wanted`` instructions."""
    if not wanted or not _is_straight(loop.body):
        return 1
    length = sum(machine.entries[call.instruction].length for call in calls(loop.body))
    times = 1
    while length and times < MOST and times * length < wanted:
        times *= 2
    return times


def _is_straight(nodes: tuple[Node, ...]) -> bool:
    """Return whether nodes are executed one after the other, without loops and conditions."""
    return all(
        _is_straight(node.body)
        if isinstance(node, Scope)
        else isinstance(node, Call | Prefetch | Setting)
        for node in nodes
    )
