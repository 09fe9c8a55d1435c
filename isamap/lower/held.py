"""Local buffers of which each round of several statements needs its own rows only.

Where the outermost index of a buffer tells the round in every access, what one round writes no
other one reads: so all rounds use the same rows, which stay in a cache.  Threads that
share the rounds have rows of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.statements import accesses, read_indices, zero_based
from isamap.lower.apart import uses
from isamap.lower.elsewhere import elsewhere
from isamap.lower.nodes import Array, Guard, Loop, Node, Scope
from isamap.schedule.rounds import Share, rows_in_round


def held_elements(kernel: Kernel, shares: Mapping[int, Share], step: int) -> dict[str, int]:
    """Return how many elements a round has of each local buffer whose rows belong to one each.

    ``shares`` are those of all statements that take part in the rounds, which have ``step``
    iterations of the first one each; ``kernel`` has its extents bound.
    """
    rows: dict[str, set[Fraction | None]] = {}
    for number, statement in enumerate(map(zero_based, kernel.statements)):
        for access in _touched(statement):
            some = None
            if number in shares:
                some = rows_in_round(access.indices[0], shares[number], statement)
            rows.setdefault(access.buffer, set()).add(some)
    found: dict[str, int] = {}
    for buffer in kernel.buffers:
        pitch = product(buffer.shape[1:]).constant
        own = rows.get(buffer.name, set())
        if buffer.role == "local" and buffer.shape and pitch and len(own) == 1:
            (only,) = own
            if only is not None:
                found[buffer.name] = int(only * step) * pitch
    return found


def _touched(statement: Statement) -> list[Access]:
    found = [statement.target, *accesses(statement.value)]
    indices = [index for access in found for index in access.indices]
    indices += read_indices(statement.value)
    # What an index is read from is flat by then, and stays whole.
    reads = [Access(read.buffer, (const(0),), found[0].dtype) for i in indices for read in i.reads]
    return [access for access in (*found, *reads) if access.indices]


def hold_rounds(
    nodes: Sequence[Node],
    arrays: Sequence[Array],
    elements: Mapping[str, int],
    entries: Mapping[str, Entry],
) -> tuple[tuple[Node, ...], tuple[Array, ...]]:
    """Return nodes, and arrays, in which arrays are as long as a round needs them.

    ``nodes`` have one loop over rounds; ``elements`` are those of a round of each array that may be
    held.  One that is touched ahead of the loop stays as it is.
    """
    flat = _inside(nodes)
    at = next((n for n, node in enumerate(flat) if isinstance(node, Loop)), None)
    if at is None:
        return tuple(nodes), tuple(arrays)
    loop = flat[at]
    assert isinstance(loop, Loop)
    ahead = uses(flat[:at], entries)
    own = {n: p for n, p in elements.items() if n not in ahead.reads | ahead.writes}
    if not own:
        return tuple(nodes), tuple(arrays)
    inside = moved(loop.body, {n: var(loop.counter) * p for n, p in own.items()})
    # What is left over is one more round.
    after = moved(flat[at + 1 :], {n: loop.count * p for n, p in own.items()})
    if loop.parallel:
        after = _alone(after)
    flat = [*flat[:at], replace(loop, body=inside), *after]
    changed = tuple(
        replace(a, size=const(own[a.name]), private=loop.parallel) if a.name in own else a
        for a in arrays
    )
    if isinstance(nodes[0], Scope) and len(nodes) == 1:
        return (replace(nodes[0], body=tuple(flat)),), changed
    return tuple(flat), changed


def _inside(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes inside of registers that are declared for all of them."""
    if len(nodes) == 1 and isinstance(nodes[0], Scope):
        return list(nodes[0].body)
    return list(nodes)


def moved(nodes: Sequence[Node], less: Mapping[str, Index]) -> tuple[Node, ...]:
    """Return nodes whose addresses in some arrays are less."""
    return elsewhere(nodes, lambda array, at: (array, at - less[array] if array in less else at))


def _alone(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes whose loops no threads share: each has rows of its own."""

    def each(node: Node) -> Node:
        match node:
            case Loop(body=body):
                return replace(node, body=_alone(body), parallel=False)
            case Scope(body=body):
                return replace(node, body=_alone(body))
            case Guard(_, body, otherwise):
                return replace(node, body=_alone(body), otherwise=_alone(otherwise))
            case _:
                return node

    return tuple(map(each, nodes))
