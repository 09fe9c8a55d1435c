"""Other loops for statements whose results others take from registers.

Alone, such a statement takes its results to memory, which may hide what its loops are worth.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from isamap.diagnostics import ScheduleError
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.fuse import Fused
from isamap.lower.judge import Judge
from isamap.schedule.overlap import overlapping
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.tiled import tiled_schedules
from isamap.schedule.treatment import Treatments, inputs

SOONER = 1.002
"""Results are finished later if that gains as much: caches deliver meanwhile, too.  A product of
1024 x 1024 x 1024 in bf16 by tiles, of which finishing is a twentieth, took 0.86 of the time.
"""

PAST = 1.03
"""Loads go past the first cache if that gains as much."""


def refined(
    start: Fused,
    kernel: Kernel,
    judge: Judge,
    rivals: Sequence[Sequence[StatementSchedule]],
) -> Fused:
    """Return a schedule with better loops, by the estimate of the whole, or as it is.

    ``rivals`` are schedules by other mappings, of each statement, that are tried, too.
    """
    best = start
    for root in range(len(kernel.statements)):
        best = _later(best, kernel, root, judge)
        best = _past(best, kernel, root, judge)
    for root in range(len(kernel.statements)):
        schedule = best.schedule
        if not schedule.followers(root) or root in schedule.rounds:
            continue
        own = schedule.statements[root]
        if own.along is not None:
            continue
        others = list(rivals[root])
        if best.estimate.may_fall:
            others += _others(own, kernel, root, judge)
        for other in others:
            trial = schedule.with_statement(root, other)
            with suppress(ScheduleError):
                lowered = judge.lowered(kernel, trial)
                if judge.excess(lowered) is not None:
                    continue
                found = Fused(trial, lowered, judge.estimate(lowered))
                found = _later(found, kernel, root, judge)
                found = _past(found, kernel, root, judge)
                if found.estimate.beats(best.estimate):
                    best = found
    return best


def _later(
    best: Fused,
    kernel: Kernel,
    root: int,
    judge: Judge,
) -> Fused:
    """Return a schedule that finishes a statement's results later, if units are busy for less."""
    own = best.schedule.statements[root]
    if not best.schedule.followers(root) or own.later:
        return best
    trial = best.schedule.with_results_later(root)
    with suppress(ScheduleError):
        lowered = judge.lowered(kernel, trial)
        made = judge.estimate(lowered)
        # Caches have to deliver the same; that the first block stands apart hides it.
        gains = made.busy * SOONER < best.estimate.busy
        if gains and judge.excess(lowered) is None:
            return Fused(trial, lowered, made)
    return best


def _past(best: Fused, kernel: Kernel, root: int, judge: Judge) -> Fused:
    """Return a schedule with those loads of a statement past the first cache that gain by it."""
    own = best.schedule.statements[root]
    if own.within is not None or own.past:
        return best
    places = {o.storage for entry in judge.accelerator.past_loads for o in entry.outputs}
    needle = own.mapping.matching.needle
    loaded = [operand for operand, _ in inputs(own.mapping)]
    numbers = [n for n, name in enumerate(loaded) if needle.operand(name).storage in places]
    if not numbers:
        return best  # each trial lowers the whole kernel
    # Where it does not wait for caches, nothing is to be gained.
    while best.estimate.cycles >= PAST * best.estimate.busy:
        tried = [
            found
            for number in numbers
            if number not in best.schedule.statements[root].past
            and (found := _with_past(best, kernel, root, number, judge)) is not None
        ]
        found = min(tried, key=lambda one: one.estimate.cycles, default=None)
        if found is None or found.estimate.cycles * PAST >= best.estimate.cycles:
            break
        best = found
    return best


def _with_past(best: Fused, kernel: Kernel, root: int, number: int, judge: Judge) -> Fused | None:
    """Return a schedule that loads one more access past the first cache, None if it cannot be."""
    own = best.schedule.statements[root]
    past = tuple(sorted((*own.past, number)))
    trial = best.schedule.with_statement(root, replace(own, past=past))
    with suppress(ScheduleError):
        lowered = judge.lowered(kernel, trial)
        if judge.excess(lowered) is None:
            return Fused(trial, lowered, judge.estimate(lowered))
    return None


def _others(
    own: StatementSchedule,
    kernel: Kernel,
    root: int,
    judge: Judge,
) -> Iterator[StatementSchedule]:
    """Yield a statement's schedules with loops of the model, and with tails that overlap, too."""
    alone = bind_extents(statement_kernel(kernel, root))
    buffers = {buffer.name: buffer for buffer in alone.buffers}
    treatments = Treatments(own.mapping, judge.producers, buffers, alone.permissions)
    for tiled in tiled_schedules(own, judge.accelerator, alone, treatments, judge.threads):
        other = replace(tiled, buffers=own.buffers, bypass=own.bypass, stream=own.stream)
        yield other
        if (whole := overlapping(other)) is not None:
            yield whole
