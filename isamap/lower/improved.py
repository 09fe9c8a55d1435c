"""What makes the schedule of a statement better whatever its loops, and the best of several."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from isamap.diagnostics import ScheduleError
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses
from isamap.lower.alternative import ALIKE, Alternative
from isamap.lower.cost import NEARLY
from isamap.lower.judge import Judge
from isamap.schedule.bordered import bordered
from isamap.schedule.overlap import overlapping
from isamap.schedule.schedule import StatementSchedule


def with_border(start: Alternative, alone: Kernel, judge: Judge) -> Alternative:
    """Return an alternative with what is padded bordered, if that keeps the units less busy.

    It takes less memory in any case.
    """
    assert start.schedule is not None
    assert start.estimate is not None
    assert start.treatments is not None
    for schedule in bordered(start.schedule, start.treatments):
        lowered = judge.lowered(alone, schedule, saved=start.saved)
        made = judge.estimate(lowered)
        is_fast = made.busy < start.estimate.busy and made.cycles < ALIKE * start.estimate.cycles
        if is_fast and judge.excess(lowered) is None:
            return replace(start, schedule=schedule, estimate=made)
    return start


def with_overlap(start: Alternative, kernel: Kernel, alone: Kernel, judge: Judge) -> Alternative:
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
        lowered = judge.lowered(alone, schedule, saved=start.saved)
        made = judge.estimate(lowered)
        is_fast = made.busy * NEARLY < start.estimate.busy
        is_fast = is_fast and made.cycles < ALIKE * start.estimate.cycles
        if is_fast and judge.excess(lowered) is None:
            return replace(start, schedule=schedule, estimate=made)
    return start


def best_of(
    start: Alternative,
    schedules: Iterable[StatementSchedule],
    kernel: Kernel,
    alone: Kernel,
    judge: Judge,
) -> Alternative:
    """Return an alternative with the schedule that has the lowest estimate, or as it is.

    ``alone`` is the kernel of the statement only, with its extents bound.
    """
    assert start.estimate is not None
    best = start
    for other in schedules:
        schedule = replace(other, buffers=start.schedule.buffers if start.schedule else ())
        lowered = judge.lowered(alone, schedule, saved=start.saved)
        if judge.excess(lowered) is not None:
            continue
        made = judge.estimate(lowered)
        found = replace(start, schedule=schedule, estimate=made)
        found = with_overlap(found, kernel, alone, judge)
        assert found.estimate is not None
        if best.estimate is None or found.estimate.beats(best.estimate):
            best = found
    return best
