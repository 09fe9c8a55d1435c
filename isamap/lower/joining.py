"""Mappings with which a statement may go along in the rounds of those before it.

Rounds are over a variable that each of their statements has a loop over.  A mapping that lays that
variable on an axis may be the fastest for a statement alone, and yet keep it, and what comes after
it, from data that are near.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from isamap.ir.ahead import statements_ahead
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses, bind_extents
from isamap.lower.alternative import Alternative
from isamap.lower.judge import Judge
from isamap.lower.looped import Looped
from isamap.schedule.rounds import rounds_of, shares_of
from isamap.schedule.schedule import Schedule

Considered = Sequence[Sequence[Alternative]]
"""What was considered for each statement of a kernel."""


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
