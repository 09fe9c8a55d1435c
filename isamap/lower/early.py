"""Lines that a statement asks for before it needs them: where they lie, one node for each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import LINE, Storage
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, var
from isamap.lower.nodes import Prefetch
from isamap.lower.position import UNKNOWN, Position
from isamap.lower.statement import StatementLowering
from isamap.mapping.fragments.fragment import Reference
from isamap.schedule.schedule import Early
from isamap.schedule.treatment import inputs

Place: TypeAlias = tuple[Reference, DType]
"""Where something lies in memory, and its type."""


def early_inputs(at: StatementLowering, position: Position) -> tuple[Prefetch, ...]:
    """Return what asks for the inputs that a later block takes, where the one at a position begins.

    ScheduleError if the schedule asks for what cannot be found ahead.
    """
    found: dict[Prefetch, None] = {}
    pairs = inputs(at.mapping)
    for early in at.schedule.early:
        if early.access is not None:
            operand, access = pairs[early.access]
            reference = at.references[operand][access]
            there = _later(at, position, early)
            lines = _lines(at, there, reference, access.dtype)
            if early.shared:
                lines = _part(at, position, early, there.at(reference.offset), lines)
            found |= lines
    return tuple(found)


def early_results(
    at: StatementLowering, position: Position, results: Callable[[Position], Iterable[Place]]
) -> tuple[Prefetch, ...]:
    """Return what asks for the places of results: those of a block here, or of a later one.

    ``results`` gives those of a block.  ScheduleError if the schedule asks for what cannot be
    found ahead.
    """
    found: dict[Prefetch, None] = {}
    for early in at.schedule.early:
        if early.access is None:
            there = _later(at, position, early)
            for reference, dtype in results(position):
                found |= _lines(at, there, reference, dtype)
    return tuple(found)


def _later(at: StatementLowering, position: Position, early: Early) -> Position:
    """Return the position that is reached some iterations later."""
    if early.variable is None:
        return position
    steps = [level.step for level in at.schedule.levels if level.variable == early.variable]
    if not steps:
        raise _bad(f"there is no loop over '{early.variable}' of which to be ahead")
    origin = position.origin[early.variable] + early.count * steps[-1]
    return replace(position, origin={**position.origin, early.variable: origin})


def _part(
    at: StatementLowering,
    position: Position,
    early: Early,
    offset: Index,
    lines: Mapping[Prefetch, None],
) -> dict[Prefetch, None]:
    """Return what one block asks for of all that the next iteration of a loop reads.

    ``offset`` is where this block's part begins in that iteration, and ``lines`` are those of it.
    The blocks of the innermost loop take a stretch of memory; each pass of the loops that stand
    still asks for one part of it after the other.  Every pass asks for all where that is in several
    pieces, or where how often it goes round is known at run time only.  Nothing, where there is no
    such loop: in what is left over, or where one iteration is all.
    """
    assert early.variable is not None
    counters = list(position.ranges)
    here = [n for n, c in enumerate(counters) if c in position.origin[early.variable].names]
    inside = counters[here[-1] + 1 :] if here else []
    moving = [c for c in inside if c in offset.names]
    if not moving:
        return {}
    innermost = moving[-1]
    pitch, blocks = offset.coefficient(innermost).constant, position.ranges[innermost][1] + 1
    still = [c for c in inside if c not in offset.names]
    passes = prod(position.ranges[c][1] + 1 for c in still)
    cache = at.context.accelerator.prefetched
    assert cache is not None
    across = max(1, _line(cache) // _bytes(at, early))
    is_known = max(position.ranges[c][1] + 1 for c in inside) < UNKNOWN
    if not is_known or not pitch or not 0 < pitch <= len(lines) * across < pitch + across:
        return dict(lines)
    part = -(-blocks // passes)
    each = -(-part * pitch // blocks)
    number = const(0)
    for counter in still:
        number = number * (position.ranges[counter][1] + 1) + var(counter)
    start = offset.substitute({innermost: 0}) + number * (part * pitch) + var(innermost) * each
    (first, *_) = lines
    return {Prefetch(first.storage, first.buffer, start + n): None for n in range(0, each, across)}


def _bytes(at: StatementLowering, early: Early) -> int:
    assert early.access is not None
    return inputs(at.mapping)[early.access][1].dtype.bytes


def _lines(
    at: StatementLowering, position: Position, reference: Reference, dtype: DType
) -> dict[Prefetch, None]:
    """Return a node for each line that a block at a position has of a reference.

    Where the first element lies in its line is not known, so the last few bytes of a row of
    elements may be in a line that is not asked for here, but with what follows them.
    """
    if reference.offset.reads:
        raise _bad(f"where {reference.array} is read depends on what arrays hold")
    cache = at.context.accelerator.prefetched
    if cache is None:
        raise _bad(f"{at.context.accelerator.name} has no cache into which to prefetch")
    across = max(1, _line(cache) // dtype.bytes)
    rows: dict[Index, set[int]] = {}
    for offset in _offsets(at, position, reference, across):
        rows.setdefault(offset - offset.offset, set()).add(offset.offset)
    found: dict[Prefetch, None] = {}
    for rest, places in rows.items():
        covered: int | None = None
        for place in sorted(places):
            if covered is None or place >= covered:
                found[Prefetch(cache.name, reference.array, rest + place)] = None
                covered = place + across
    return found


def _offsets(
    at: StatementLowering, position: Position, reference: Reference, across: int
) -> Iterator[Index]:
    """Yield offsets of elements of a block, of neighbours in memory only some of each line."""
    used = [v for v in at.order if v in reference.offset.names]
    if reference.dense is not None:
        whole = prod(reference.laid_out)
        counts = [range(-(-_count(at, position, v) // at.tile[v])) for v in used]
        for numbers in product(*counts):
            moved = _moved(
                position, {v: n * at.tile[v] for v, n in zip(used, numbers, strict=True)}
            )
            for element in range(0, whole, across):
                yield moved.at(reference.offset) + element
        return
    steps = []
    for v in used:
        pitch = abs(reference.offset.coefficient(v).constant or across)
        steps.append(range(0, _count(at, position, v), max(1, across // pitch)))
    for places in product(*steps):
        moved = _moved(position, dict(zip(used, places, strict=True)))
        yield moved.at(reference.offset)


def _count(at: StatementLowering, position: Position, variable: str) -> int:
    """Return the iterations of a variable in a block; those of a tile if only the run tells."""
    live = position.live[variable].constant
    return at.tile[variable] if live is None else live


def _moved(position: Position, places: Mapping[str, int]) -> Position:
    origin = {v: position.origin[v] + const(n) for v, n in places.items()}
    return replace(position, origin={**position.origin, **origin})


def _line(cache: Storage) -> int:
    return cache.line or LINE


def _bad(message: str) -> ScheduleError:
    return ScheduleError(Diagnostic("E401", f"nothing is prefetched: {message}"))
