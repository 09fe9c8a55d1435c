"""Compositions as an explanation tells them: what they need, and values that would be enough."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from isamap.explain.explanation import Reason
from isamap.explain.rewriting import Rewritten
from isamap.explain.verify import Candidate
from isamap.hw.accelerator import Entry
from isamap.ir.literal import value
from isamap.ir.nodes import Buffer, Kernel, Literal
from isamap.ir.ranges import Interval, full, intervals_before
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.compose.composed import Composed
from isamap.mapping.compose.conditions import Refused, hold

_Holds: TypeAlias = Callable[[Mapping[str, Interval]], bool]
"""Whether a composition computes a statement with values declared of inputs."""


def parts(entry: Entry) -> tuple[Entry, ...]:
    """Return the instructions that an entry stands for, each once, in order; itself if one."""
    if not isinstance(entry, Composed):
        return (entry,)
    return tuple({part.entry.name: part.entry for part in entry.parts}.values())


def reasons(
    kernel: Kernel, number: int, refused: Sequence[Refused], after: Rewritten | None = None
) -> tuple[Reason, ...]:
    """Return what is not known of a statement's operands that a composition needs.

    ``after`` is what the statement was rewritten to before, if it was.
    """
    span = kernel.statements[number].value.span
    lead = f"after {' and '.join(r.rule for r in after.rewritings)} " if after else ""
    return tuple(Reason("values", f"{lead}{one.reason}", span) for one in refused)


def narrowed(
    kernel: Kernel, number: int, refused: Refused, after: Rewritten | None = None
) -> Iterator[Candidate]:
    """Yield the kernel with values declared under which a composition computes a statement, or
    what it is rewritten to.

    One input alone is bounded, first the one that keeps most of its values; then all of them alike.
    """
    told = reasons(kernel, number, (refused,), after)
    whole, at = (kernel, number) if after is None else (after.kernel, after.statement)
    statement = zero_based(bind_extents(whole).statements[at])
    inputs = {b.name: _values(b) for b in kernel.buffers if _is_bounded(b)}

    def holds(wanted: Mapping[str, Interval]) -> bool:
        known = intervals_before(_declared(whole, wanted), at)
        return hold(refused.needle, refused.operands, statement, known)

    found = [wanted for name in inputs if (wanted := _alone(name, inputs[name], holds))]
    found.sort(
        key=lambda wanted: -max(_size(ends) / _size(inputs[n]) for n, ends in wanted.items())
    )
    together = _alike(inputs, holds) if len(inputs) > 1 else None
    if together:
        for name in inputs:
            rest = {n: ends for n, ends in together.items() if n != name}
            together = rest if holds(rest) else together
        found += [together] if together not in found else []
    for wanted in found:
        text = "; ".join(f"declare that {name} holds {ends}" for name, ends in wanted.items())
        changed = _declared(kernel, wanted)
        yield Candidate(text, "values", changed, number, told, rewrites=after is not None)


def _alone(name: str, ends: Interval, holds: _Holds) -> dict[str, Interval] | None:
    """Return the values of one input with which all is well: about 0, then as far as they go."""
    found = _alike({name: ends}, holds) or {name: _within(ends, 0)}
    if not holds(found):
        return None
    low, high = found[name].low, found[name].high
    high += _greatest(ends.high - high, lambda n: holds({name: Interval(low, high + n)}))
    low -= _greatest(low - ends.low, lambda n: holds({name: Interval(low - n, high)}))
    return {name: Interval(low, high)} if low < high else None


def _alike(inputs: Mapping[str, Interval], holds: _Holds) -> dict[str, Interval] | None:
    """Return the largest intervals about 0, of one radius, with which all is well, if any."""
    most = max((max(abs(e.low), abs(e.high)) for e in inputs.values()), default=0)

    def about(radius: int) -> dict[str, Interval]:
        return {name: _within(ends, radius) for name, ends in inputs.items()}

    radius = _greatest(most, lambda n: holds(about(n)))
    if radius < 1:
        return None
    return about(radius)


def _greatest(most: int, holds: Callable[[int], bool]) -> int:
    """Return the greatest number up to ``most`` for which something holds; 0 if for none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _within(ends: Interval, radius: int) -> Interval:
    """Return the numbers of an interval no further than ``radius`` from its one nearest to 0."""
    nearest = min(max(0, ends.low), ends.high)
    return Interval(max(ends.low, nearest - radius), min(ends.high, nearest + radius))


def _size(ends: Interval) -> int:
    return ends.high - ends.low + 1


def _is_bounded(buffer: Buffer) -> bool:
    """Return whether values can be declared of a buffer."""
    given = buffer.role in ("in", "const") and buffer.contents is None
    return given and buffer.dtype.is_integer


def _values(buffer: Buffer) -> Interval:
    if buffer.values is None:
        return full(buffer.dtype)
    first, last = (int(value(literal)) for literal in buffer.values)
    return Interval(first, last)


def _declared(kernel: Kernel, wanted: Mapping[str, Interval]) -> Kernel:
    def changed(buffer: Buffer) -> Buffer:
        ends = wanted.get(buffer.name)
        if ends is None:
            return buffer
        first, last = (Literal(str(end), buffer.dtype) for end in (ends.low, ends.high))
        return replace(buffer, values=(first, last))

    return replace(kernel, buffers=tuple(map(changed, kernel.buffers)))
