"""A mapping of a statement with its first schedule, and which of several is preferred."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from isamap.lower.cost import Estimate
from isamap.mapping import matching
from isamap.mapping.needles.pattern import size
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.treatment import Treatments

ALIKE = 1.1
"""Estimates this close are taken for equal."""

CALLED = 1 / 64
"""Cycles that a call counts beside those in which it keeps units busy: of two that take as long,
the one that makes fewer calls leaves more to what is around them.
"""

BUSIER = 1.5
"""How much longer what does more of a statement at once may keep the units busy for that."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A mapping with its first schedule and estimate, or the reason why it has none.

    ``spread`` are the bytes over which fragments lie (:func:`isamap.schedule.spread.spread`).
    ``treatments`` are the mapping's, if it has a schedule.  Where nothing takes its results to
    memory they are not ``saved``: others must take them from registers.
    """

    mapping: matching.Mapping
    schedule: StatementSchedule | None
    estimate: Estimate | None
    reason: str = ""
    spread: int = 0
    treatments: Treatments | None = field(default=None, repr=False, compare=False)
    saved: bool = True


def by_preference(found: Sequence[Alternative]) -> tuple[StatementSchedule, ...]:
    """Return the schedules, best first.

    That is by estimate; among those within :data:`ALIKE` of the best, the instruction that does
    more of the statement comes first, and then the one that is busy for less time: where memory
    bounds them all, the data may be in a cache.  What is much :data:`BUSIER` comes after them.  The
    least spread decides between equal ones.  Without any estimate, they are as they come.
    """
    known = [(a.estimate, a.schedule, a.spread) for a in found if a.estimate and a.schedule]
    if not known:
        return tuple(a.schedule for a in found if a.schedule)
    least = min(estimate.cycles for estimate, _, _ in known)
    idle = min(estimate.busy for estimate, _, _ in known if estimate.cycles <= ALIKE * least)

    def rank(item: tuple[Estimate, StatementSchedule, int]) -> tuple[int, float, float, int]:
        estimate, schedule, wide = item
        if estimate.cycles > ALIKE * least:
            return 2, estimate.cycles, estimate.busy, wide
        weight = estimate.busy + CALLED * sum(estimate.instructions.values())
        if estimate.busy > BUSIER * idle:
            return 1, weight, estimate.cycles, wide
        return -covered(schedule.mapping), weight, estimate.cycles, wide

    return tuple(schedule for _, schedule, _ in sorted(known, key=rank))


def advantage(chosen: Alternative, lowest: Alternative) -> str:
    """Return in words what an alternative has before the one of the lowest estimate, '' if nothing.

    Both have a schedule and an estimate, and :func:`by_preference` puts ``chosen`` first.
    """
    assert chosen.estimate is not None
    assert lowest.estimate is not None
    if covered(chosen.mapping) > covered(lowest.mapping):
        return "does more of the statement at once"
    if chosen.estimate.busy < lowest.estimate.busy:
        return "keeps the units busy for less time, wherever the data are"
    return ""


def covered(mapping: matching.Mapping) -> int:
    """Return how much of its statement an instruction does, in operations."""
    return size(mapping.matching.needle.value)
