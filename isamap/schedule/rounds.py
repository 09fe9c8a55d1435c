"""Statements whose outermost loops are one: each round does a part of every statement.

What one statement writes and the next one reads is then still in a cache.  That is right where all
that they share is told apart by the variable of the loop: an element belongs to one round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from isamap.ir.nodes import Access, Kernel, Statement, Variable
from isamap.ir.statements import accesses, zero_based
from isamap.schedule.schedule import Level, Schedule, StatementSchedule


def rounds_of(
    kernel: Kernel, schedule: Schedule, members: Sequence[int], longest: int | None = None
) -> Schedule | None:
    """Return the schedule in which some statements have one outermost loop, None if none can be.

    ``members`` have loops of their own, the first one before the others; statements in their
    registers come along.  ``kernel`` has its extents bound.  A round is as long as the longest
    block of the members, or as ``longest`` where that is less; blocks become divisors of that.
    """
    everyone = sorted({*members, *(f for m in members for f in schedule.followers(m))})
    variables = common_variables(kernel, everyone)
    if variables is None:
        return None
    own = {n: schedule.statements[n] for n in members}
    blocks = [_block(own[n], variables[n]) for n in members]
    if any(block is None for block in blocks):
        return None
    step = max(block for block in blocks if block is not None)
    step = min(step, longest or step)
    first = _variable(own[members[0]], variables[members[0]]).extent.constant
    if first is None or first < 2 * step:
        return None
    # Threads share the rounds if one of the statements alone is work enough for them: where they
    # shared loops inside, they would have to meet in every round.
    shared = any(level.parallel for one in own.values() for level in one.levels)
    result = list(schedule.statements)
    for n in members:
        v = variables[n]
        inner = _inner(own[n], v, step)
        if inner is None:
            return None
        along = members[0] if n != members[0] else None
        # What was packed inside other loops comes before all of these.
        levels = (Level(v, step, shared), *inner)
        result[n] = replace(own[n], levels=levels, along=along, inside=())
    return Schedule(tuple(result))


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
        replace(level, step=block) if n == at else level
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


def common_variables(
    kernel: Kernel, numbers: Sequence[int], loops: Mapping[int, Level] | None = None
) -> dict[int, str] | None:
    """Return a variable of each statement which tells apart all that they share, if there are such.

    Where ``loops`` has one for a statement, its variable is meant.

    Of one extent, and each is by itself the index of the same dimension of every buffer that two
    statements touch and one of them writes.  What a statement reads of its own target is the
    element that it writes: the language sees to that.
    """
    statements = {n: zero_based(kernel.statements[n]) for n in numbers}
    first = numbers[0]
    fixed = {n: level.variable for n, level in (loops or {}).items()}

    def candidates(n: int) -> list[str]:
        return [v for v in _candidates(statements[n]) if fixed.get(n, v) == v]

    for start in candidates(first):
        found = {first: start}
        for n in numbers[1:]:
            fits = (
                v
                for v in candidates(n)
                if _extent(statements[n], v) == _extent(statements[first], start)
                and all(_apart(statements[m], w, statements[n], v) for m, w in found.items())
            )
            chosen = next(fits, None)
            if chosen is None:
                break
            found[n] = chosen
        else:
            return found
    return None


def _candidates(statement: Statement) -> Iterator[str]:
    for index in statement.target.indices:
        if index.name is not None and index.name in {v.name for v in statement.variables}:
            yield index.name


def _extent(statement: Statement, variable: str) -> object:
    return next(v.extent for v in statement.variables if v.name == variable)


def _read(statement: Statement) -> Iterator[Access]:
    for access in (statement.target, *accesses(statement.value)):
        if access is not statement.target:
            yield access
        for index in access.indices:
            for read in index.reads:
                yield Access(read.buffer, read.indices, access.dtype)


def _apart(one: Statement, v: str, other: Statement, w: str) -> bool:
    """Return whether iterations with different values of the variables share nothing written."""
    first = [(one.target, True), *((access, False) for access in _read(one))]
    second = [(other.target, True), *((access, False) for access in _read(other))]
    shared: dict[str, list[tuple[Access, Access]]] = {}
    for (a, writes), (b, too) in product(first, second):
        if a.buffer == b.buffer and (writes or too):
            shared.setdefault(a.buffer, []).append((a, b))
    return all(
        any(
            all(a.indices[d].name == v and b.indices[d].name == w for a, b in pairs)
            for d in range(len(pairs[0][0].indices))
        )
        for pairs in shared.values()
    )
