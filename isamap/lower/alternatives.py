"""The mappings of a statement that are tried: those with the lowest rough counts, and one of each
instruction that may be faster than these.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses, bind_extents
from isamap.lower.alternative import Alternative
from isamap.lower.improved import with_border, with_overlap
from isamap.lower.judge import Judge
from isamap.lower.nodes import LoweredKernel
from isamap.lower.taken import check_plain, may_be_taken, may_take, schedule_within
from isamap.mapping import matching
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Enumeration
from isamap.mapping.tiles.shared import brought
from isamap.schedule.buffers import first_buffers
from isamap.schedule.first import BLOCKS, first_schedule, first_treatments
from isamap.schedule.rank import Ranked, Ranking, least_cycles
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.spread import spread
from isamap.schedule.treatment import Treatments

RANKED = 512
"""Mappings of one statement that are ranked by a closed form."""

TRIED = 5
"""Mappings of one statement that are scheduled, lowered and estimated before the choice."""

OTHERS = 4
"""Instructions of which one mapping is tried where none was and their calls may be faster."""

NEAR = 1.05
"""Rough counts this close are equal for operand orders of one placement."""

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
    order = order or ranking(kernel, number, enumeration, judge.producers)
    trial = _Trial(kernel, number, judge)
    for ranked in order:
        if trial.scheduled >= TRIED or ranked.cycles > HOPELESS * trial.rough:
            break
        trial.add(ranked)
    # Rough counts know no reuse of loads, and placements of one instruction crowd others out.
    for least, others in _by_instruction(enumeration)[:OTHERS]:
        if least < trial.least and others[0].matching.needle.name not in trial.instructions:
            first = _ranked(kernel, number, others, judge.producers).at(0)
            if first is not None and first.cycles < inf:
                trial.add(first)
    found = [
        Alternative(mapping, None, None, reason)
        for mapping in enumeration.mappings
        if (reason := _left_open(mapping))
    ]
    found += trial.found
    if not trial.scheduled and may_take(kernel, number):
        found = [_within(a, kernel, number, judge) for a in found]
    return tuple(found)


def _within(own: Alternative, kernel: Kernel, number: int, judge: Judge) -> Alternative:
    """Return a mapping as it may be used in the registers of an earlier statement.

    What earlier statements compute is there; the other operands have to be brought even so.
    """
    before = {statement.target.buffer for statement in kernel.statements[:number]}
    bound = bind_extents(kernel)
    buffers = {buffer.name: buffer for buffer in bound.buffers}
    treatments = Treatments(own.mapping, judge.producers, buffers, bound.permissions)
    others = [
        name
        for name, expr in brought(own.mapping.matching)
        if not before & {access.buffer for access in accesses(expr)}
    ]
    try:
        first_treatments(own.mapping, treatments, others)
    except ScheduleError as error:
        return replace(own, reason=error.diagnostics[0].message)
    return replace(own, schedule=schedule_within(own.mapping))


class _Trial:
    """Mappings of one statement that were scheduled, lowered and estimated, or could not be."""

    def __init__(self, kernel: Kernel, number: int, judge: Judge) -> None:
        self.found: list[Alternative] = []
        self.scheduled = 0
        self.rough = inf
        self._kernel = kernel
        self._judge = judge
        self._alone = bind_extents(statement_kernel(kernel, number))
        self._taken = may_be_taken(kernel, number)
        self._seen: dict[object, float] = {}

    @property
    def least(self) -> float:
        """The least estimate, in cycles."""
        return min((a.estimate.cycles for a in self.found if a.estimate), default=inf)

    @property
    def instructions(self) -> frozenset[str]:
        """What was scheduled."""
        return frozenset(a.mapping.matching.needle.name for a in self.found if a.schedule)

    def add(self, ranked: Ranked) -> None:
        """Schedule a mapping, unless it is the same program as one before."""
        cycles, mapping = ranked.cycles, ranked.mapping
        # Operand orders of about one cost are the same program for a symmetric instruction.
        alike = (
            mapping.matching.needle.name,
            mapping.matching.placements,
            tuple(mapping.tile.items()),
        )
        if alike in self._seen and cycles <= NEAR * self._seen[alike]:
            return
        self._seen[alike] = cycles
        alone, judge = self._alone, self._judge
        try:
            schedule, lowered, saved = _fitting(ranked, alone, judge, self._taken)
        except ScheduleError as error:
            self.found.append(Alternative(mapping, None, None, error.diagnostics[0].message))
            return
        self.scheduled += 1
        self.rough = min(self.rough, cycles)
        made = judge.estimate(lowered)
        wide = spread(schedule, {buffer.name: buffer for buffer in alone.buffers})
        known = ranked.treatments
        own = Alternative(mapping, schedule, made, spread=wide, treatments=known, saved=saved)
        own = with_border(own, alone, judge)
        self.found.append(with_overlap(own, self._kernel, alone, judge))


def _by_instruction(
    enumeration: Enumeration,
) -> list[tuple[float, list[matching.Mapping]]]:
    """Return the mappings of each instruction, and cycles that none of them takes less than.

    What may be fastest comes first.
    """
    groups: dict[str, list[matching.Mapping]] = {}
    for mapping in enumeration.mappings:
        if not _left_open(mapping):
            groups.setdefault(mapping.matching.needle.name, []).append(mapping)
    bounds = ((min(map(least_cycles, group)), group) for group in groups.values())
    return sorted(bounds, key=lambda one: one[0])


def ranking(kernel: Kernel, number: int, enumeration: Enumeration, producers: Producers) -> Ranking:
    """Return the order in which a statement's mappings are tried."""
    possible = [mapping for mapping in enumeration.mappings if not _left_open(mapping)]
    return _ranked(kernel, number, possible[:RANKED], producers)


def _ranked(
    kernel: Kernel, number: int, mappings: Sequence[matching.Mapping], producers: Producers
) -> Ranking:
    alone = bind_extents(statement_kernel(kernel, number))
    buffers = {buffer.name: buffer for buffer in alone.buffers}
    return Ranking(mappings, producers, buffers, kernel.permissions)


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
    for rank in BLOCKS:
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
                return judge.told(schedule, lowered), lowered, saved
    raise ScheduleError(Diagnostic("E403", over or ""))
