"""The outermost loops of several statements become one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, var
from isamap.lower.apart import uses
from isamap.lower.elsewhere import elsewhere
from isamap.lower.nodes import Loop, Node, Register, Scope


@dataclass(frozen=True, slots=True)
class _Part:
    """The nodes of one statement: what comes before its outermost loop, the loop, what is left."""

    registers: tuple[Register, ...]
    before: tuple[Node, ...]
    loop: Loop
    after: tuple[Node, ...]


def is_looped(counts: Sequence[Index]) -> bool:
    """Return whether statements that go round so often each have a loop in common.

    A single round has no loop: then the statements follow each other.
    """
    return all(count.constant is None or count.constant >= 2 for count in counts)


def one_loop(
    statements: Sequence[tuple[Node, ...]], counts: Sequence[Index], entries: Mapping[str, Entry]
) -> tuple[Node, ...]:
    """Return the nodes of several statements with one outermost loop; each has one of its own.

    ``counts`` tells how often each goes round.  What goes round once more than others does that
    after the loop, where the others do what is left over.  ScheduleError if something that comes
    before the loop of a later statement, such as packing, needs what an earlier one computes, or if
    their loops are not alike.
    """
    rounds = _fewest(counts)
    parts = [
        _cut(_part(nodes), count, rounds) for nodes, count in zip(statements, counts, strict=True)
    ]
    first = parts[0].loop
    for number, part in enumerate(parts):
        if part.loop.parallel != first.parallel:
            raise _no("their rounds are not alike")
        if not part.before:
            continue
        ahead = uses(part.before, entries)
        for earlier in parts[:number]:
            done = uses((*earlier.before, earlier.loop, *earlier.after), entries)
            if ahead.reads & done.writes or ahead.writes & (done.reads | done.writes):
                raise _no("what one of them needs first is computed by another one")
    body = [first.body]
    for part in parts[1:]:
        body.append(renamed(part.loop.body, {part.loop.counter: var(first.counter)}))
    nodes = (
        *(node for part in parts for node in part.before),
        replace(first, body=tuple(node for one in body for node in one)),
        *(node for part in parts for node in part.after),
    )
    registers = tuple(register for part in parts for register in part.registers)
    return (Scope(registers, nodes),) if registers else nodes


def _fewest(counts: Sequence[Index]) -> Index:
    """Return how often all of them go round."""
    known = [count.constant for count in counts]
    numbers = [count for count in known if count is not None]
    return const(min(numbers)) if len(numbers) == len(counts) else counts[0]


def _cut(part: _Part, count: Index, rounds: Index) -> _Part:
    """Return the part of a statement that goes round so often, the last time of more after that."""
    loop = part.loop
    if loop.count != count or (count != rounds and (count != rounds + 1 or part.after)):
        raise _no("their rounds are not alike")
    if count == rounds:
        return part
    last = renamed(loop.body, {loop.counter: rounds})
    return replace(part, loop=replace(loop, count=rounds), after=last)


def _part(nodes: tuple[Node, ...]) -> _Part:
    registers: tuple[Register, ...] = ()
    flat: list[Node] = []
    for node in nodes:
        if isinstance(node, Scope) and any(isinstance(inner, Loop) for inner in node.body):
            registers += node.registers
            flat += node.body
        else:
            flat.append(node)
    at = next((n for n, node in enumerate(flat) if isinstance(node, Loop)), None)
    if at is None:
        raise _no("one of them has no loop")
    loop = flat[at]
    assert isinstance(loop, Loop)
    return _Part(registers, tuple(flat[:at]), loop, tuple(flat[at + 1 :]))


def renamed(nodes: Sequence[Node], values: Mapping[str, Index]) -> tuple[Node, ...]:
    """Return nodes in which names of index expressions are replaced."""

    def of(index: Index) -> Index:
        return index.substitute(values)

    return elsewhere(nodes, lambda array, at: (array, of(at)), of)


def _no(message: str) -> ScheduleError:
    return ScheduleError(Diagnostic("E401", f"statements cannot have one loop: {message}"))
