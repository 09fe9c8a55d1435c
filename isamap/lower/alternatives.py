"""The mappings of a statement that are tried: those with the lowest rough counts."""

from dataclasses import replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.alternative import Alternative
from isamap.lower.improved import with_border, with_overlap
from isamap.lower.judge import Judge
from isamap.lower.nodes import LoweredKernel
from isamap.lower.taken import check_plain, may_be_taken, may_take, schedule_within
from isamap.mapping import matching
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Enumeration
from isamap.schedule.buffers import first_buffers
from isamap.schedule.first import first_schedule
from isamap.schedule.rank import Ranked, Ranking
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.spread import spread

RANKED = 512
"""Mappings of one statement that are ranked by a closed form."""

TRIED = 5
"""Mappings of one statement that are scheduled, lowered and estimated before the choice."""

HOPELESS = 8.0
"""Mappings this much slower than the best by the closed form are not scheduled."""


def alternatives(
    kernel: Kernel,
    judge: Judge,
    number: int,
    enumeration: Enumeration,
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
    for ranked in order or ranking(kernel, number, enumeration, judge.producers):
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
            schedule, lowered, saved = _fitting(ranked, alone, judge, taken)
        except ScheduleError as error:
            found.append(Alternative(mapping, None, None, error.diagnostics[0].message))
            continue
        scheduled += 1
        best = min(best, cycles)
        made = judge.estimate(lowered)
        wide = spread(schedule, {buffer.name: buffer for buffer in alone.buffers})
        known = ranked.treatments
        own = Alternative(mapping, schedule, made, spread=wide, treatments=known, saved=saved)
        own = with_border(own, alone, judge)
        found.append(with_overlap(own, kernel, alone, judge))
    if not scheduled and may_take(kernel, number):
        found = [replace(a, schedule=schedule_within(a.mapping)) for a in found]
    return tuple(found)


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
    ranked: Ranked, alone: Kernel, judge: Judge, taken: bool
) -> tuple[StatementSchedule, LoweredKernel, bool]:
    """Return a first schedule that fits the machine's storages, and whether results are saved.

    ``alone`` is the kernel of the statement only, with its extents bound.  Results that other
    statements may have ``taken`` from registers need not be saved where nothing does that.
    ScheduleError if no schedule fits.
    """
    over, saved = None, True
    for rank in (0, 1, 2, 4, 8, 16, 32, None):
        schedule = first_schedule(
            ranked.mapping,
            judge.accelerator,
            judge.producers,
            alone,
            judge.threads,
            rank,
            ranked.treatments,
        )
        for buffers in first_buffers(judge.accelerator, schedule):
            schedule = replace(schedule, buffers=buffers)
            try:
                lowered = judge.lowered(alone, schedule, saved=saved)
            except ScheduleError as error:
                if not taken or not saved:
                    raise
                saved = False
                check_plain(ranked.mapping)
                try:
                    lowered = judge.lowered(alone, schedule, saved=False)
                except ScheduleError:
                    raise error from None
            over = judge.excess(lowered)
            if over is None:
                return schedule, lowered, saved
    raise ScheduleError(Diagnostic("E403", over or ""))
