"""Other blocks, steps, orders of calls and places for a statement whose units wait for each other.

Where units are queues an estimate follows each instruction, so that it tells how much of that a
schedule hides; the rules that make a first schedule do not.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from isamap.diagnostics import ScheduleError
from isamap.ir.nodes import Kernel
from isamap.lower.alternative import Alternative
from isamap.lower.cost import NEARLY
from isamap.lower.judge import Judge
from isamap.schedule.buffers import first_buffers, other_buffers
from isamap.schedule.first import first_schedule
from isamap.schedule.lines import lengthened, widened
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.shape import read_shape
from isamap.schedule.tiled import tiled_schedules

BLOCKS = 8
"""Blocks that are tried, the best score first."""

STEPS = (2, 4, 8, 16)
"""Iterations of a reduction that are tried in one step, times those of the schedule."""

ENOUGH = 1.05
"""How much longer than its busiest unit a statement may take before others are tried."""


def with_fewer_waits(start: Alternative, alone: Kernel, judge: Judge) -> Alternative:
    """Return an alternative whose units wait less for each other, or as it is.

    ``alone`` is the kernel of the statement only, with its extents bound.
    """
    if judge.accelerator.queues is None or start.schedule is None:
        return start
    if judge.accelerator.queue(start.schedule.mapping.matching.needle.entry) is None:
        return start  # the host computes it, one after the other
    best = start
    for others in (_loops, _steps, _orders, _places):
        best = _best_of(best, others(best, alone, judge), alone, judge)
    return best


def _loops(start: Alternative, alone: Kernel, judge: Judge) -> Iterator[StatementSchedule]:
    """Yield schedules with other blocks, and those with loops of the model."""
    assert start.schedule is not None
    assert start.treatments is not None
    own, machine = start.schedule, judge.accelerator
    seen = {own.levels}
    for rank in range(BLOCKS):
        made = first_schedule(
            own.mapping,
            machine,
            judge.producers,
            alone,
            judge.threads,
            rank,
            start.treatments,
            own.operands,
        )
        if made.levels not in seen:
            seen.add(made.levels)
            yield made
    if len(seen) == 1:
        # The rules know one block where no results are in flight.
        yield from (
            replace(own, levels=wide) for wide in widened(read_shape(own.mapping), own.levels)
        )
    yield from tiled_schedules(own, machine, alone, start.treatments, judge.threads)


def _steps(start: Alternative, alone: Kernel, judge: Judge) -> Iterator[StatementSchedule]:
    """Yield the schedule with longer steps of a reduction: what they bring has registers of its
    own, so that it comes while the steps before are computed.
    """
    own = start.schedule
    assert own is not None
    for times in STEPS:
        levels = lengthened(read_shape(own.mapping), own.levels, times)
        if levels is not None:
            yield replace(own, levels=levels)


def _orders(start: Alternative, alone: Kernel, judge: Judge) -> Iterator[StatementSchedule]:
    """Yield the schedule with the calls of its block in the order of each operand's fragments."""
    own = start.schedule
    assert own is not None
    if alone.permissions.reassociate:
        for number in range(len(own.operands)):
            if number != own.stream:
                yield replace(own, stream=number)


def _places(start: Alternative, alone: Kernel, judge: Judge) -> Iterator[StatementSchedule]:
    """Yield the schedule with more places for what is brought, and with fewer."""
    assert start.schedule is not None
    for buffers in other_buffers(start.schedule):
        yield replace(start.schedule, buffers=buffers)


def _best_of(
    start: Alternative, schedules: Iterable[StatementSchedule], alone: Kernel, judge: Judge
) -> Alternative:
    """Return the alternative with the schedule whose last instruction is done first.

    What says nothing of places has the most of those of the rules that fit.
    """
    best = start
    for other in schedules:
        assert best.estimate is not None
        if best.estimate.cycles <= ENOUGH * best.estimate.least:
            break
        tried = [other.buffers] if other.buffers else first_buffers(judge.accelerator, other)
        for buffers in tried:
            schedule = replace(other, buffers=buffers)
            with suppress(ScheduleError):
                lowered = judge.lowered(alone, schedule, saved=start.saved)
                if judge.excess(lowered) is not None:
                    continue
                made = judge.estimate(lowered)
                if made.cycles * NEARLY < best.estimate.cycles:
                    best = replace(start, schedule=judge.told(schedule, lowered), estimate=made)
            break
    return best
