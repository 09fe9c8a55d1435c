"""Statements whose outermost loops are one: each round does a part of every statement.

What one statement writes and the next one reads is then still in a cache.  That is right where all
that they share is told apart by the variable of the loop: an element belongs to one round.  Of a
statement that reads or writes several rows where another one has one, so many more iterations
belong to a round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil, lcm

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Kernel, Statement, Variable
from isamap.ir.statements import accesses, zero_based
from isamap.schedule.schedule import Level, Schedule, StatementSchedule


@dataclass(frozen=True, slots=True)
class Share:
    """What a statement has of the rounds: ``scale`` iterations of a variable for each one of the
    first statement's.
    """

    variable: str
    scale: Fraction


def rounds_of(
    kernel: Kernel, schedule: Schedule, members: Sequence[int], length: int | None = None
) -> Schedule | None:
    """Return the schedule in which some statements have one outermost loop, None if none can be.

    ``members`` have loops of their own, the first one before the others; statements in their
    registers come along.  ``kernel`` has its extents bound.  A round has so many iterations of the
    first one, ``length``, or as many as the longest block of the members; blocks become divisors of
    that.
    """
    everyone = sorted({*members, *(f for m in members for f in schedule.followers(m))})
    shares = shares_of(kernel, everyone)
    if shares is None:
        return None
    own = {n: schedule.statements[n] for n in members}
    blocks = [(_block(own[n], shares[n].variable), shares[n].scale) for n in members]
    if any(block is None for block, _ in blocks):
        return None
    longest = max(ceil(block / scale) for block, scale in blocks if block is not None)
    # Every statement does whole iterations in a round.
    whole = lcm(*(scale.denominator for _, scale in blocks))
    step = -(-(length or longest) // whole) * whole
    extents = [_variable(own[n], shares[n].variable).extent.constant for n in members]
    steps = {n: int(step * shares[n].scale) for n in members}
    if any(e is None or e < 2 * s for e, s in zip(extents, steps.values(), strict=True)):
        return None
    # Threads share the rounds if one of the statements alone is work enough for them: where they
    # shared loops inside, they would have to meet in every round.
    shared = any(level.parallel for one in own.values() for level in one.levels)
    result = list(schedule.statements)
    for n in members:
        v = shares[n].variable
        inner = _inner(own[n], v, steps[n])
        if inner is None:
            return None
        along = members[0] if n != members[0] else None
        # What was packed inside other loops comes before all of these.
        levels = (Level(v, steps[n], shared), *inner)
        result[n] = replace(own[n], levels=levels, along=along, inside=())
    return replace(schedule, statements=tuple(result))


def _inner(own: StatementSchedule, v: str, step: int) -> list[Level] | None:
    """Return the loops inside a round of ``step`` iterations, None if no block divides it."""
    block, tile = _block(own, v), own.mapping.tile.get(v, 1)
    assert block is not None
    while step % block or block % tile:
        block -= 1
        if not block:
            return None
    at = max(n for n, level in enumerate(own.levels) if level.variable == v)
    return [
        replace(level, step=block, overlap=False) if n == at else level
        for n, level in enumerate(own.levels)
        if level.variable != v or (n == at and block < step)
    ]


def _variable(own: StatementSchedule, name: str) -> Variable:
    statement = own.mapping.matching.statement
    return next(v for v in statement.variables if v.name == name)


def _block(own: StatementSchedule, variable: str) -> int | None:
    """Return the smallest step of a variable, None where there is no loop over it."""
    steps = [level.step for level in own.levels if level.variable == variable]
    return min(steps, default=None)


def shares_of(
    kernel: Kernel, numbers: Sequence[int], loops: Mapping[int, Level] | None = None
) -> dict[int, Share] | None:
    """Return a variable of each statement which tells apart all that they share, if there are such.

    Where ``loops`` has one for a statement, its variable is meant, and so many iterations of it as
    the loop's step belong to a round.

    In each access of a buffer that two of the statements touch and one of them writes, the index of
    one dimension, divided by a number, is the variable (:func:`rows_of`), and the numbers go with
    the iterations of a round.  What a statement reads of its own target is the element that it
    writes: the language sees to that.
    """
    own = tuple((n, level.variable, level.step) for n, level in (loops or {}).items())
    found = _shares(kernel, tuple(numbers), own)
    return None if found is None else dict(found)


# Every statement that joins a round asks for those before it, and trials ask again.
@lru_cache(maxsize=256)
def _shares(
    kernel: Kernel, numbers: tuple[int, ...], loops: tuple[tuple[int, str, int], ...]
) -> dict[int, Share] | None:
    """Return what :func:`shares_of` does, for loops over a variable with a step."""
    statements = {n: zero_based(kernel.statements[n]) for n in numbers}
    first = numbers[0]
    fixed = {n: (variable, step) for n, variable, step in loops}

    def candidates(n: int) -> list[str]:
        variable, _ = fixed.get(n, (None, 0))
        return [v for v in _candidates(statements[n]) if variable in (None, v)]

    def scale(n: int, v: str, found: Mapping[int, Share]) -> Fraction | None:
        possible = None
        if n in fixed and first in fixed:
            possible = {Fraction(fixed[n][1], fixed[first][1])}
        for m, share in found.items():
            apart = _apart(statements[m], share.variable, statements[n], v)
            if apart is not None:
                scales = {share.scale * each for each in apart}
                possible = scales if possible is None else possible & scales
        every = sorted({Fraction(1)} if possible is None else possible)
        start = _extent(statements[first], found[first].variable)
        return next((s for s in every if _is_as_long(_extent(statements[n], v), start, s)), None)

    for start in candidates(first):
        found = {first: Share(start, Fraction(1))}
        for n in numbers[1:]:
            fits = ((v, scale(n, v, found)) for v in candidates(n))
            chosen = next((Share(v, each) for v, each in fits if each is not None), None)
            if chosen is None:
                break
            found[n] = chosen
        else:
            return found
    return None


def rows_of(index: Index, variable: str, statement: Statement) -> int | None:
    """Return the number by which an index has to be divided to be a variable, None if none is it.

    ``2*v + r`` with r in 0..2 has 2 values for each of v.
    """
    rows = index.coefficient(variable).constant
    if not rows or rows < 0:
        return None
    rest = index - rows * var(variable)
    ranges = {
        v.name: (0, v.extent.constant - 1)
        for v in statement.variables
        if v.name != variable and v.extent.constant is not None
    }
    ends = rest.bounds(ranges) if rest.names <= ranges.keys() else None
    return rows if ends is not None and ends[0] >= 0 and ends[1] < rows else None


def rows_in_round(index: Index, share: Share, statement: Statement) -> Fraction | None:
    """Return how many values an index has for each iteration of the first statement of the rounds.

    None if the index does not tell the round.
    """
    rows = rows_of(index, share.variable, statement)
    return rows * share.scale if rows else None


def _candidates(statement: Statement) -> Iterator[str]:
    own = [v.name for v in statement.variables]
    for index in statement.target.indices:
        yield from (v for v in own if v in index.names and rows_of(index, v, statement))


def _extent(statement: Statement, variable: str) -> Index:
    return next(v.extent for v in statement.variables if v.name == variable)


def _is_as_long(extent: Index, first: Index, scale: Fraction) -> bool:
    """Return whether an extent has as many rounds as that of the first statement."""
    own, start = extent.constant, first.constant
    if own is None or start is None:
        return scale == 1 and extent == first
    return abs(own - start * scale) < max(scale, Fraction(1))


def _read(statement: Statement) -> Iterator[Access]:
    for access in (statement.target, *accesses(statement.value)):
        if access is not statement.target:
            yield access
        for index in access.indices:
            for read in index.reads:
                yield Access(read.buffer, read.indices, access.dtype)


def _apart(one: Statement, v: str, other: Statement, w: str) -> set[Fraction] | None:
    """Return how many iterations of w can be for each of v so that others share nothing written.

    None if they share nothing that one of them writes.
    """
    first = [(one.target, True), *((access, False) for access in _read(one))]
    second = [(other.target, True), *((access, False) for access in _read(other))]
    shared: dict[str, list[tuple[Access, Access]]] = {}
    for (a, writes), (b, too) in product(first, second):
        if a.buffer == b.buffer and (writes or too):
            shared.setdefault(a.buffer, []).append((a, b))
    possible: set[Fraction] | None = None
    for pairs in shared.values():
        found = set()
        for d in range(len(pairs[0][0].indices)):
            scales = {_scale(a.indices[d], v, one, b.indices[d], w, other) for a, b in pairs}
            if len(scales) == 1 and (only := scales.pop()) is not None:
                found.add(only)
        possible = found if possible is None else possible & found
    return possible


def _scale(a: Index, v: str, one: Statement, b: Index, w: str, other: Statement) -> Fraction | None:
    rows, others = rows_of(a, v, one), rows_of(b, w, other)
    return Fraction(rows, others) if rows and others else None
