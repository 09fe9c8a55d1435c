"""Mappings with which a statement may go along in the rounds of those before it, and in short ones.

Rounds are over a variable that each of their statements has a loop over.  A mapping that lays that
variable on an axis may be the fastest for a statement alone, and yet keep it, and what comes after
it, from data that are near, or make rounds of all so long that a near cache does not hold them.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import inf
from typing import TypeAlias

from isamap.ir.ahead import statements_ahead
from isamap.ir.inline import ApartError
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses, bind_extents, read_by
from isamap.lower.alternative import Alternative
from isamap.lower.finish import finishing
from isamap.lower.judge import Judge
from isamap.lower.looped import Looped
from isamap.schedule.rounds import Share, rounds_of, shares_of
from isamap.schedule.schedule import Schedule, StatementSchedule

Considered: TypeAlias = Sequence[Sequence[Alternative]]
"""What was considered for each statement of a kernel."""

Shares: TypeAlias = Mapping[int, Share]


def joining(
    kernel: Kernel, judge: Judge, schedule: Schedule, considered: Considered
) -> Iterator[tuple[int, Alternative]]:
    """Yield statements whose mapping keeps them out of rounds, each with the fastest other one that
    does not."""
    bound = bind_extents(kernel)
    looped = Looped(bound, judge)
    ahead = {*statements_ahead(bound)}
    touched = [
        {s.target.buffer, *(access.buffer for access in accesses(s.value))}
        for s in bound.statements
    ]
    roots = [n for n, own in enumerate(schedule.statements) if own.within is None]
    for before, number in pairwise(roots):
        first = schedule.statements[before].along
        group = [before] if first is None else [first, *schedule.companions(first)]
        is_apart = schedule.statements[number].along is None
        shares = touched[number] & frozenset().union(*(touched[n] for n in group))
        if not is_apart or not shares or ahead & {number, *group}:
            continue

        members = [*group, number]
        own = schedule.statements[number]
        shared = shares_of(bound, members)
        if shared is None or own.mapping.tile.get(shared[number].variable, 1) == 1:
            continue
        known = [(a.estimate.cycles, n) for n, a in enumerate(considered[number]) if a.estimate]
        for _, n in sorted(known):
            other = considered[number][n]
            if other.schedule is None or other.mapping.tile.get(shared[number].variable, 1) > 1:
                continue
            trial = looped.over(schedule.with_statement(number, other.schedule), members)
            if rounds_of(bound, trial, members) is not None:
                yield number, other
                break


def taking(
    kernel: Kernel, schedule: Schedule, considered: Considered, most: int
) -> Iterator[tuple[int, Alternative]]:
    """Yield statements whose results a later one could take from registers, and does not, each with
    the ``most`` fastest other mappings: alone, that they are stored may hide what theirs are worth.
    """
    bound = bind_extents(kernel)
    for number, own in enumerate(schedule.statements):
        if own.within is not None or schedule.followers(number):
            continue
        if not any(_takes(bound, number, later) for later in range(number + 1, len(considered))):
            continue
        known = [(a.estimate.cycles, n) for n, a in enumerate(considered[number]) if a.estimate]
        others = (considered[number][n] for _, n in sorted(known))
        others = (a for a in others if a.schedule is not None and a.mapping != own.mapping)
        yield from ((number, other) for other in islice(others, most))


def _takes(bound: Kernel, number: int, later: int) -> bool:
    """Return whether a later statement could take an earlier one's results from registers."""
    if bound.statements[number].target.buffer not in read_by(bound.statements[later]):
        return False
    try:
        return bool(finishing(bound, number, [later]).finishes)
    except ApartError:
        return False


def shortening(
    kernel: Kernel, schedule: Schedule, considered: Considered
) -> Iterator[dict[int, Alternative]]:
    """Yield for each group in rounds the fastest mappings of its statements that do not lay the
    variable of the rounds on an axis, in place of those that do."""
    bound = bind_extents(kernel)
    for first, companions in schedule.rounds.items():
        members = [first, *companions]
        loops = {n: schedule.statements[n].levels[0] for n in members}
        shared = shares_of(bound, members, loops)
        assert shared is not None, "they have rounds"

        def is_short(n: int, own: StatementSchedule, shared: Shares = shared) -> bool:
            return own.mapping.tile.get(shared[n].variable, 1) == 1

        others: dict[int, Alternative | None] = {
            n: min(
                (a for a in considered[n] if a.estimate and a.schedule and is_short(n, a.schedule)),
                key=lambda a: a.estimate.cycles if a.estimate else inf,
                default=None,
            )
            for n in members
            if not is_short(n, schedule.statements[n])
        }
        found = {n: other for n, other in others.items() if other is not None}
        if found and len(found) == len(others):
            yield found
