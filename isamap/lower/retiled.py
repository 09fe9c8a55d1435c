"""Other loops for the mappings of a statement that could be the fastest by them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from isamap.diagnostics import ScheduleError
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Access, Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.alternative import ALIKE, Alternative, by_preference, covered
from isamap.lower.cost import NEARLY, WAITING, Estimate
from isamap.lower.fewer_waits import with_fewer_waits
from isamap.lower.improved import best_of
from isamap.lower.judge import Judge
from isamap.schedule.copied import treated_otherwise
from isamap.schedule.first import first_schedule, with_levels
from isamap.schedule.near import cut_near
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.shape import read_shape
from isamap.schedule.tiled import tiled_schedules
from isamap.schedule.treatment import Treatments, inputs

RETILED = 2
"""Mappings that other loops are looked for: those that could be the fastest by them."""


def retiled(
    kernel: Kernel, judge: Judge, number: int, found: Sequence[Alternative]
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
        return made.least > ALIKE * lowest, -covered(found[n].mapping), made.least, n

    for made, n in sorted(known, key=rank)[:RETILED]:
        start = _treated_otherwise(found[n], kernel, alone, judge)
        if made.least < best:
            start = with_fewer_waits(start, alone, judge)
        result[n] = start
        assert start.schedule is not None
        assert start.treatments is not None
        assert start.estimate is not None
        made = start.estimate
        least, best = made.least, min(best, made.cycles)
        if least * WAITING >= min(made.cycles, best) and not made.may_fall:
            continue
        tiled = tiled_schedules(
            start.schedule, judge.accelerator, alone, start.treatments, judge.threads
        )
        result[n] = best_of(start, tiled, kernel, alone, judge)
        best = min(best, (result[n].estimate or made).cycles)
    winner = by_preference(result)[0]
    for n, other in enumerate(result):
        # What suits an instruction suits one that does more of the statement on the same tile.
        more = covered(other.mapping) > covered(winner.mapping)
        same = other.mapping.tile == winner.mapping.tile and _read(other) == _read(winner)
        if other.schedule and more and same:
            alike = replace(winner, mapping=other.mapping)
            with suppress(ScheduleError):
                result[n] = best_of(other, [alike], kernel, alone, judge)
    return tuple(result)


def _treated_otherwise(
    start: Alternative, kernel: Kernel, alone: Kernel, judge: Judge
) -> Alternative:
    """Return an alternative with an operand packed or read as it lies, or the reduction cut so that
    what is read as it lies stays near, if that is faster.
    """
    schedule, treatments = start.schedule, start.treatments
    assert schedule is not None
    assert treatments is not None
    others = []
    for wanted in treated_otherwise(read_shape(start.mapping), schedule.operands, treatments):
        with suppress(ScheduleError):
            others.append(
                first_schedule(
                    start.mapping,
                    judge.accelerator,
                    judge.producers,
                    alone,
                    judge.threads,
                    treatments=treatments,
                    wanted=wanted,
                )
            )
    best = best_of(start, others, kernel, alone, judge)
    for other in (schedule, *others):
        near = _cut_near(other, treatments, judge)
        found = best if near is None else best_of(best, [near], kernel, alone, judge)
        # That results come and go in parts costs more than an estimate knows.
        assert found.estimate is not None
        assert best.estimate is not None
        if found.estimate.cycles * NEARLY < best.estimate.cycles:
            best = found
    return best


def _cut_near(
    schedule: StatementSchedule, treatments: Treatments, judge: Judge
) -> StatementSchedule | None:
    """Return a schedule with its reduction cut by :func:`isamap.schedule.near.cut_near`, if that
    cuts it."""
    levels = cut_near(schedule, judge.accelerator)
    if levels is None:
        return None
    shape = read_shape(schedule.mapping)
    return with_levels(shape, levels, schedule.operands, treatments, (), judge.accelerator)


def _read(found: Alternative | StatementSchedule) -> tuple[Access, ...]:
    """Return what is brought to the instruction, in the order of a schedule's treatments."""
    return tuple(access for _, access in inputs(found.mapping))
