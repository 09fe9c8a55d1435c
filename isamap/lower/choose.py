"""The first choice: for each statement the mapping whose first schedule is estimated fastest."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from isamap.diagnostics import Diagnostic, NoMappingError, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.lower.alternative import Alternative, by_preference
from isamap.lower.alternatives import alternatives
from isamap.lower.cost import LIGHTER, NEARLY, Estimate
from isamap.lower.fuse import Fused, check_lowerable, fuse
from isamap.lower.in_registers import asked_for
from isamap.lower.joining import joining, shortening, taking
from isamap.lower.judge import Judge
from isamap.lower.next_round import with_next_round
from isamap.lower.nodes import LoweredKernel
from isamap.lower.refine import refined
from isamap.lower.retiled import retiled
from isamap.mapping.fragments.produce import Producers, producers_of
from isamap.mapping.matching import Enumeration
from isamap.schedule.schedule import Schedule, StatementSchedule

_T = TypeVar("_T")

RIVAL = 1.5
"""Mappings this much slower than the best alone may be faster where others take the results."""

RIVALS = 2
"""Mappings of one statement that are tried so."""

FEW = 6
"""Statements of a kernel of which others than the best alone are tried where nothing takes their
results: each trial joins all statements anew.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen schedule, what it lowers to, and what else was considered, by statement.

    It is ``written`` if somebody said what it is; the rules chose it otherwise.
    """

    schedule: Schedule
    lowered: LoweredKernel
    estimate: Estimate
    alternatives: tuple[tuple[Alternative, ...], ...]
    written: bool = False

    @property
    def starts(self) -> tuple[tuple[StatementSchedule, ...], ...]:
        """The schedules that a search starts from: for each statement the chosen one first, with
        loops of its own, then the others, the best estimate first.

        Chosen ones that only make sense beside other statements are as they were alone.
        """
        preferred = [by_preference(own) for own in self.alternatives]
        statements = self.schedule.statements
        joined = {n for n, own in enumerate(statements) if own.within is not None}
        joined |= {n for first, own in self.schedule.rounds.items() for n in (first, *own)}
        apart = range(len(statements)) if self.written else set(range(len(statements))) - joined
        for number in apart:
            own = replace(statements[number], within=None, by=None, along=None, later=False)
            others = (other for other in preferred[number] if other.mapping != own.mapping)
            preferred[number] = (own, *others)
        return tuple(preferred)


def choose(
    kernel: Kernel,
    accelerator: Accelerator,
    enumerations: Sequence[Enumeration],
    threads: int = 1,
    symbols: Mapping[str, int] | None = None,
    producers: Producers | None = None,
    progress: Callable[[str], None] | None = None,
    instruction: str | None = None,
) -> Choice:
    """Return the first choice for a kernel.

    ``enumerations`` has one entry per statement of the kernel: of statements that ``instruction``,
    which is asked for, can compute, mappings to that alone.  ``symbols`` are typical values of
    the run-time extents, for the estimates.  NoMappingError if some statement has no mapping that
    can be lowered; the message gives the reason of each that was tried.
    """
    asked = asked_for(enumerations, instruction)
    judge = Judge(accelerator, producers or producers_of(accelerator), symbols, threads, asked)
    ruled: list[tuple[Alternative, ...]] = []
    for number, enumeration in enumerate(enumerations):
        if progress is not None:
            progress(f"scheduling statement {number + 1} of {len(enumerations)}")
        found = alternatives(kernel, judge, number, enumeration)
        if not by_preference(found):
            raise NoMappingError(_no_mapping(enumeration, found, accelerator))
        ruled.append(found)
    best, ruled = _possible(kernel, judge, enumerations, ruled, _together)
    again = [retiled(kernel, judge, number, found) for number, found in enumerate(ruled)]
    if [by_preference(found)[0] for found in again] != [by_preference(f)[0] for f in ruled]:
        # What is best for a statement alone may keep it out of the rounds of others.
        other = _together(kernel, judge, again)
        its, mine = other.estimate, best.estimate
        # Of two about equal ones caches are more in the way of that which asks much more of them.
        lighter = its.cycles < mine.cycles and its.cached * LIGHTER < mine.cached
        best = other if its.beats(mine) or lighter else best
    best = _shortened(kernel, judge, _joined(kernel, judge, _taken(kernel, judge, best)))
    fused = Fused(best.schedule, best.lowered, best.estimate)
    rivals = tuple(_rivals(found) for found in ruled)
    fused = with_next_round(refined(fused, kernel, judge, rivals), kernel, judge)
    return replace(best, schedule=fused.schedule, lowered=fused.lowered, estimate=fused.estimate)


def _rivals(found: Sequence[Alternative]) -> tuple[StatementSchedule, ...]:
    """Return the schedules that might be better than the chosen one beside other statements."""
    known = sorted((a.estimate.cycles, n) for n, a in enumerate(found) if a.estimate)
    close = [n for cycles, n in known if cycles <= RIVAL * known[0][0]]
    chosen = by_preference(found)[:1]
    schedules = (found[n].schedule for n in close)
    return tuple(s for s in schedules if s is not None and s not in chosen)[:RIVALS]


def check_possible(
    kernel: Kernel,
    judge: Judge,
    enumerations: Sequence[Enumeration],
    ruled: Sequence[tuple[Alternative, ...]],
) -> None:
    """Raise NoMappingError, or ScheduleError, if no alternatives of statements can be joined."""

    def join(kernel: Kernel, judge: Judge, left: Sequence[tuple[Alternative, ...]]) -> None:
        check_lowerable(kernel, judge, _preferred(left))

    _possible(kernel, judge, enumerations, list(ruled), join)


def _possible(
    kernel: Kernel,
    judge: Judge,
    enumerations: Sequence[Enumeration],
    ruled: list[tuple[Alternative, ...]],
    join: Callable[[Kernel, Judge, Sequence[tuple[Alternative, ...]]], _T],
) -> tuple[_T, list[tuple[Alternative, ...]]]:
    """Return the preferred alternatives joined, and those of each statement that are left.

    Results that no instruction takes to memory are counted on to be taken from registers by a later
    statement, and so are those of an earlier one that a statement can take only from there.  Where
    that cannot be, the mapping is of no use.
    """
    while True:
        try:
            return join(kernel, judge, ruled), ruled
        except ScheduleError as error:
            chosen = [
                (number, preferred, next(a for a in found if a.schedule == preferred))
                for number, found in enumerate(ruled)
                for preferred in by_preference(found)[:1]
            ]
            unsaved = [(n, preferred) for n, preferred, a in chosen if not a.saved]
            within = [(n, preferred) for n, preferred, a in chosen if a.estimate is None]
            if not (unsaved or within):
                raise
            reason = error.diagnostics[0].message
        number, preferred = (unsaved or within)[0]
        ruled = list(ruled)
        ruled[number] = tuple(
            replace(a, schedule=None, estimate=None, reason=reason)
            if a.schedule == preferred
            else a
            for a in ruled[number]
        )
        if not by_preference(ruled[number]):
            raise NoMappingError(
                _no_mapping(enumerations[number], ruled[number], judge.accelerator)
            )


def _together(
    kernel: Kernel, judge: Judge, considered: Sequence[tuple[Alternative, ...]]
) -> Choice:
    """Return the preferred alternative of each statement, joined where that pays."""
    whole = fuse(kernel, judge, _preferred(considered))
    return Choice(whole.schedule, whole.lowered, whole.estimate, tuple(considered))


def _taken(kernel: Kernel, judge: Judge, best: Choice) -> Choice:
    """Return a choice in which more results are taken from registers, or as it is."""
    if len(kernel.statements) > FEW:
        return best
    for number, other in taking(kernel, best.schedule, best.alternatives, RIVALS):
        found = _with(kernel, judge, best, {number: other})
        if found is None or not found.schedule.followers(number):
            continue
        if found.estimate.beats(best.estimate):
            return _taken(kernel, judge, found)
    return best


def _joined(kernel: Kernel, judge: Judge, best: Choice) -> Choice:
    """Return a choice in which more statements go along in rounds, or as it is."""
    for number, other in joining(kernel, judge, best.schedule, best.alternatives):
        found = _with(kernel, judge, best, {number: other})
        if found is not None and found.estimate.beats(best.estimate):
            return found
    return best


def _with(
    kernel: Kernel, judge: Judge, best: Choice, others: Mapping[int, Alternative]
) -> Choice | None:
    """Return the choice that other mappings of some statements make, None if they do not join."""
    considered = [
        (others[n],) if n in others else found for n, found in enumerate(best.alternatives)
    ]
    with suppress(ScheduleError):
        found = _together(kernel, judge, considered)
        return replace(found, alternatives=best.alternatives)
    return None


def _shortened(kernel: Kernel, judge: Judge, best: Choice) -> Choice:
    """Return a choice with shorter rounds, or as it is: caches that are nearer hold what these
    need, where the others wait for memory alike."""
    for others in shortening(kernel, best.schedule, best.alternatives):
        found = _with(kernel, judge, best, others)
        if found is None:
            continue
        its, mine = found.estimate, best.estimate
        lighter = its.cycles <= mine.cycles * NEARLY and its.cached < mine.cached
        if its.beats(mine) or lighter:
            # There may be other rounds that are long.
            return _shortened(kernel, judge, found)
    return best


def _preferred(considered: Sequence[tuple[Alternative, ...]]) -> Schedule:
    return Schedule(tuple(by_preference(found)[0] for found in considered))


def _no_mapping(
    enumeration: Enumeration, found: Sequence[Alternative], accelerator: Accelerator
) -> Diagnostic:
    target = enumeration.statement.target.buffer
    tried = {a.mapping.matching.needle.name for a in found}
    # What is refused for one order of operands may compute the statement with another.
    refused = [line for line in enumeration.refused if line.partition(": ")[0] not in tried]
    names = {a.reason: a.mapping.matching.needle.name for a in found}
    reasons = [*(f"{name}: {reason}" for reason, name in names.items()), *refused]
    addition = ", or extend the description by it," if accelerator.queues != "tokens" else ""
    text = f"nothing on {accelerator.name} computes the statement that writes {target}"
    if found:
        text = (
            f"what matches the statement that writes {target} cannot be made into code for "
            f"{accelerator.name}"
        )
    return Diagnostic(
        "E301",
        text,
        enumeration.statement.span,
        hint="'isamap explain' says more and tries changes; map on portable_c"
        f"{addition} to run it as scalar C",
        notes=tuple(Diagnostic("", reason, severity="note") for reason in reasons[:10]),
    )
