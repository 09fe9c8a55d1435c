"""The first choice: for each statement the mapping whose first schedule is estimated fastest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from isamap.diagnostics import Diagnostic, NoMappingError, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Access, Kernel
from isamap.ir.statements import accesses, bind_extents
from isamap.lower.capacity import excess
from isamap.lower.cost import NEARLY, WAITING, Estimate, estimate
from isamap.lower.fuse import Fused, fuse
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.lower.refine import refined
from isamap.lower.taken import check_plain, may_be_taken, may_take, schedule_within
from isamap.mapping import matching
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.pattern import size
from isamap.schedule.bordered import bordered
from isamap.schedule.buffers import first_buffers
from isamap.schedule.first import first_schedule
from isamap.schedule.overlap import overlapping
from isamap.schedule.rank import Ranked, Ranking
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.spread import spread
from isamap.schedule.tiled import tiled_schedules
from isamap.schedule.treatment import Treatments, inputs

RANKED = 512
"""Mappings of one statement that are ranked by a closed form."""

TRIED = 5
"""Mappings of one statement that are scheduled, lowered and estimated before the choice."""


RETILED = 2
"""Mappings that other loops are looked for: those that could be the fastest by them."""

RIVAL = 1.5
"""Mappings this much slower than the best alone may be faster where others take the results."""

RIVALS = 2
"""Mappings of one statement that are tried so."""

HOPELESS = 8.0
"""Mappings this much slower than the best by the closed form are not scheduled."""

ALIKE = 1.1
"""Estimates this close are taken for equal."""

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
        """The schedules that a search starts from: for each statement, the best estimate first.

        Before them comes what is written, with loops of its own.
        """
        preferred = (by_preference(own) for own in self.alternatives)
        if not self.written:
            return tuple(preferred)
        alone = (replace(own, within=None, along=None) for own in self.schedule.statements)
        return tuple(
            (own, *(other for other in others if other.mapping != own.mapping))
            for own, others in zip(alone, preferred, strict=True)
        )


def choose(
    kernel: Kernel,
    accelerator: Accelerator,
    enumerations: Sequence[Enumeration],
    threads: int = 1,
    symbols: Mapping[str, int] | None = None,
    producers: Producers | None = None,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """Return the first choice for a kernel.

    ``enumerations`` has one entry per statement of the kernel.  ``symbols`` are typical values of
    the run-time extents, for the estimates.  NoMappingError if some statement has no mapping that
    can be lowered; the message gives the reason of each that was tried.
    """
    shared = producers or Producers(accelerator)
    ruled: list[tuple[Alternative, ...]] = []
    for number, enumeration in enumerate(enumerations):
        if progress is not None:
            progress(f"scheduling statement {number + 1} of {len(enumerations)}")
        found = alternatives(kernel, accelerator, number, enumeration, threads, symbols, shared)
        if not by_preference(found):
            raise NoMappingError(_no_mapping(enumeration, found, accelerator))
        ruled.append(found)
    best, ruled = _possible(kernel, accelerator, enumerations, ruled, shared, symbols, threads)
    retiled = [
        _retiled(kernel, accelerator, number, found, threads, symbols, shared)
        for number, found in enumerate(ruled)
    ]
    if [by_preference(found)[0] for found in retiled] != [by_preference(f)[0] for f in ruled]:
        # What is best for a statement alone may keep it out of the rounds of others.
        other = _together(kernel, accelerator, retiled, shared, symbols, threads)
        best = other if other.estimate.beats(best.estimate) else best
    fused = Fused(best.schedule, best.lowered, best.estimate)
    rivals = tuple(_rivals(found) for found in ruled)
    fused = refined(fused, kernel, accelerator, shared, symbols, threads, rivals)
    return replace(best, schedule=fused.schedule, lowered=fused.lowered, estimate=fused.estimate)


def _rivals(found: Sequence[Alternative]) -> tuple[StatementSchedule, ...]:
    """Return the schedules that might be better than the chosen one beside other statements."""
    known = sorted((a.estimate.cycles, n) for n, a in enumerate(found) if a.estimate)
    close = [n for cycles, n in known if cycles <= RIVAL * known[0][0]]
    chosen = by_preference(found)[:1]
    schedules = (found[n].schedule for n in close)
    return tuple(s for s in schedules if s is not None and s not in chosen)[:RIVALS]


def _possible(
    kernel: Kernel,
    accelerator: Accelerator,
    enumerations: Sequence[Enumeration],
    ruled: list[tuple[Alternative, ...]],
    producers: Producers,
    symbols: Mapping[str, int] | None,
    threads: int,
) -> tuple[Choice, list[tuple[Alternative, ...]]]:
    """Return the preferred alternatives joined, and those of each statement that are left.

    Results that no instruction takes to memory are counted on to be taken from registers by a later
    statement, and so are those of an earlier one that a statement can take only from there.  Where
    that cannot be, the mapping is of no use.
    """
    while True:
        try:
            return _together(kernel, accelerator, ruled, producers, symbols, threads), ruled
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
            raise NoMappingError(_no_mapping(enumerations[number], ruled[number], accelerator))


def _together(
    kernel: Kernel,
    accelerator: Accelerator,
    considered: Sequence[tuple[Alternative, ...]],
    producers: Producers,
    symbols: Mapping[str, int] | None,
    threads: int,
) -> Choice:
    """Return the preferred alternative of each statement, joined where that pays."""
    chosen = Schedule(tuple(by_preference(found)[0] for found in considered))
    whole = fuse(kernel, accelerator, chosen, producers, symbols, threads=threads)
    return Choice(whole.schedule, whole.lowered, whole.estimate, tuple(considered))


def alternatives(
    kernel: Kernel,
    accelerator: Accelerator,
    number: int,
    enumeration: Enumeration,
    threads: int,
    symbols: Mapping[str, int] | None,
    producers: Producers,
    order: Ranking | None = None,
) -> tuple[Alternative, ...]:
    """Return the mappings of one statement that were tried, in the order of the enumeration.

    ``order`` is their :func:`ranking`, if there is one already.
    """
    found = [
        Alternative(mapping, None, None, reason)
        for mapping in enumeration.mappings
        if (reason := _left_open(mapping))
    ]
    alone = bind_extents(statement_kernel(kernel, number))
    taken = may_be_taken(kernel, number)
    scheduled, best = 0, float("inf")
    seen: set[object] = set()
    for ranked in order or ranking(kernel, number, enumeration, producers):
        cycles, mapping = ranked.cycles, ranked.mapping
        # Operand orders of one cost are the same program for a symmetric instruction.
        alike = (
            mapping.matching.needle.name,
            mapping.matching.placements,
            tuple(mapping.tile.items()),
            cycles,
        )
        if alike in seen:
            continue
        seen.add(alike)
        if scheduled >= TRIED or cycles > HOPELESS * best:
            break
        try:
            schedule, lowered, saved = _fitting(
                ranked, alone, accelerator, producers, threads, taken
            )
        except ScheduleError as error:
            found.append(Alternative(mapping, None, None, error.diagnostics[0].message))
            continue
        scheduled += 1
        best = min(best, cycles)
        made = estimate(lowered, accelerator, symbols, threads)
        wide = spread(schedule, {buffer.name: buffer for buffer in alone.buffers})
        known = ranked.treatments
        own = Alternative(mapping, schedule, made, spread=wide, treatments=known, saved=saved)
        own = _bordered(own, alone, accelerator, producers, symbols, threads)
        found.append(_overlapping(own, kernel, alone, accelerator, producers, symbols, threads))
    if not scheduled and may_take(kernel, number):
        found = [replace(a, schedule=schedule_within(a.mapping)) for a in found]
    return tuple(found)


def _retiled(
    kernel: Kernel,
    accelerator: Accelerator,
    number: int,
    found: Sequence[Alternative],
    threads: int,
    symbols: Mapping[str, int] | None,
    producers: Producers,
) -> tuple[Alternative, ...]:
    """Return alternatives, those with better loops that wait for caches and might be the best."""
    alone = bind_extents(statement_kernel(kernel, number))
    result = list(found)
    known = [(a.estimate, n) for n, a in enumerate(found) if a.estimate]
    if not known:
        return tuple(found)
    best = min(made.cycles for made, _ in known)
    lowest = min(made.least for made, _ in known)

    def rank(item: tuple[Estimate, int]) -> tuple[bool, int, float, int]:
        made, n = item
        # As for the choice itself: those that follow may not be looked at any more.
        return made.least > ALIKE * lowest, -_covered(found[n].mapping), made.least, n

    for made, n in sorted(known, key=rank)[:RETILED]:
        start, least = found[n], made.least
        assert start.schedule is not None
        assert start.treatments is not None
        if least * WAITING >= min(made.cycles, best) and not made.may_fall:
            continue
        tiled = tiled_schedules(start.schedule, accelerator, alone, start.treatments, threads)
        result[n] = _best_of(start, tiled, kernel, alone, accelerator, producers, symbols, threads)
        best = min(best, (result[n].estimate or made).cycles)
    winner = by_preference(result)[0]
    for n, other in enumerate(result):
        # What suits an instruction suits one that does more of the statement on the same tile.
        more = _covered(other.mapping) > _covered(winner.mapping)
        same = other.mapping.tile == winner.mapping.tile and _read(other) == _read(winner)
        if other.schedule and more and same:
            alike = replace(winner, mapping=other.mapping)
            with suppress(ScheduleError):
                result[n] = _best_of(
                    other, [alike], kernel, alone, accelerator, producers, symbols, threads
                )
    return tuple(result)


def _read(found: Alternative | StatementSchedule) -> tuple[Access, ...]:
    """Return what is brought to the instruction, in the order of a schedule's treatments."""
    return tuple(access for _, access in inputs(found.mapping))


def _bordered(
    start: Alternative,
    alone: Kernel,
    accelerator: Accelerator,
    producers: Producers,
    symbols: Mapping[str, int] | None,
    threads: int,
) -> Alternative:
    """Return an alternative with what is padded bordered, if that keeps the units less busy.

    It takes less memory in any case.
    """
    assert start.schedule is not None
    assert start.estimate is not None
    assert start.treatments is not None
    for schedule in bordered(start.schedule, start.treatments):
        lowered = lower(alone, accelerator, Schedule((schedule,)), producers, saved=start.saved)
        made = estimate(lowered, accelerator, symbols, threads)
        is_fast = made.busy < start.estimate.busy and made.cycles < ALIKE * start.estimate.cycles
        if is_fast and excess(lowered, accelerator) is None:
            return replace(start, schedule=schedule, estimate=made)
    return start


def _overlapping(
    start: Alternative,
    kernel: Kernel,
    alone: Kernel,
    accelerator: Accelerator,
    producers: Producers,
    symbols: Mapping[str, int] | None,
    threads: int,
) -> Alternative:
    """Return an alternative whose tails begin earlier, if the units are less busy then, or as it
    is.
    """
    assert start.schedule is not None
    assert start.estimate is not None
    schedule = overlapping(start.schedule)
    roles = {buffer.name: buffer.role for buffer in kernel.buffers}
    read = accesses(start.mapping.matching.statement.value)
    # What an earlier statement leaves may lie where results go, if it is read once only.
    if schedule is None or any(roles[access.buffer] == "local" for access in read):
        return start
    with suppress(ScheduleError):
        lowered = lower(alone, accelerator, Schedule((schedule,)), producers, saved=start.saved)
        made = estimate(lowered, accelerator, symbols, threads)
        is_fast = made.busy * NEARLY < start.estimate.busy
        is_fast = is_fast and made.cycles < ALIKE * start.estimate.cycles
        if is_fast and excess(lowered, accelerator) is None:
            return replace(start, schedule=schedule, estimate=made)
    return start


def _best_of(
    start: Alternative,
    schedules: Iterable[StatementSchedule],
    kernel: Kernel,
    alone: Kernel,
    accelerator: Accelerator,
    producers: Producers,
    symbols: Mapping[str, int] | None,
    threads: int,
) -> Alternative:
    """Return an alternative with the schedule that has the lowest estimate, or as it is.

    ``alone`` is the kernel of the statement only, with its extents bound.
    """
    assert start.estimate is not None
    best = start
    for other in schedules:
        schedule = replace(other, buffers=start.schedule.buffers if start.schedule else ())
        lowered = lower(alone, accelerator, Schedule((schedule,)), producers, saved=start.saved)
        if excess(lowered, accelerator) is not None:
            continue
        made = estimate(lowered, accelerator, symbols, threads)
        found = replace(start, schedule=schedule, estimate=made)
        found = _overlapping(found, kernel, alone, accelerator, producers, symbols, threads)
        assert found.estimate is not None
        if best.estimate is None or found.estimate.beats(best.estimate):
            best = found
    return best


def ranking(kernel: Kernel, number: int, enumeration: Enumeration, producers: Producers) -> Ranking:
    """Return the order in which a statement's mappings are tried."""
    possible = [mapping for mapping in enumeration.mappings if not _left_open(mapping)]
    alone = bind_extents(statement_kernel(kernel, number))
    buffers = {buffer.name: buffer for buffer in alone.buffers}
    return Ranking(possible[:RANKED], producers, buffers, kernel.permissions)


def _left_open(mapping: matching.Mapping) -> str:
    """Return why no code can be made because the description leaves an extent open, or nothing."""
    instruction = mapping.matching.needle.entry.instruction
    names = [extent.name for extent in instruction.extents if extent.least is not None]
    if not names:
        return ""
    return (
        f"the description leaves its extent {names[0]} open: say what it is on this machine, "
        f"{instruction.name}({names[0]} = ...), to have code for it"
    )


def _fitting(
    ranked: Ranked,
    alone: Kernel,
    accelerator: Accelerator,
    producers: Producers,
    threads: int,
    taken: bool,
) -> tuple[StatementSchedule, LoweredKernel, bool]:
    """Return a first schedule that fits the machine's storages, and whether results are saved.

    ``alone`` is the kernel of the statement only, with its extents bound.  Results that other
    statements may have ``taken`` from registers need not be saved where nothing does that.
    ScheduleError if no schedule fits.
    """
    over, saved = None, True
    for rank in (0, 1, 2, 4, 8, 16, 32, None):
        schedule = first_schedule(
            ranked.mapping, accelerator, producers, alone, threads, rank, ranked.treatments
        )
        for buffers in first_buffers(accelerator, schedule):
            schedule = replace(schedule, buffers=buffers)
            plain = Schedule((schedule,))
            try:
                lowered = lower(alone, accelerator, plain, producers, saved=saved)
            except ScheduleError as error:
                if not taken or not saved:
                    raise
                saved = False
                check_plain(ranked.mapping)
                try:
                    lowered = lower(alone, accelerator, plain, producers, saved=False)
                except ScheduleError:
                    raise error from None
            over = excess(lowered, accelerator)
            if over is None:
                return schedule, lowered, saved
    raise ScheduleError(Diagnostic("E403", over or ""))


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
        if estimate.busy > BUSIER * idle:
            return 1, estimate.busy, estimate.cycles, wide
        return -_covered(schedule.mapping), estimate.busy, estimate.cycles, wide

    return tuple(schedule for _, schedule, _ in sorted(known, key=rank))


def advantage(chosen: Alternative, lowest: Alternative) -> str:
    """Return in words what an alternative has before the one of the lowest estimate, '' if nothing.

    Both have a schedule and an estimate, and :func:`by_preference` puts ``chosen`` first.
    """
    assert chosen.estimate is not None
    assert lowest.estimate is not None
    if _covered(chosen.mapping) > _covered(lowest.mapping):
        return "does more of the statement at once"
    if chosen.estimate.busy < lowest.estimate.busy:
        return "keeps the units busy for less time, wherever the data are"
    return ""


def _covered(mapping: matching.Mapping) -> int:
    """Return how much of its statement an instruction does, in operations."""
    return size(mapping.matching.needle.value)


def _no_mapping(
    enumeration: Enumeration, found: Sequence[Alternative], accelerator: Accelerator
) -> Diagnostic:
    target = enumeration.statement.target.buffer
    reasons = [
        *enumeration.refused,
        *(
            f"{a.mapping.matching.needle.name}: {a.reason}"
            for a in {a.reason: a for a in found}.values()
        ),
    ]
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
