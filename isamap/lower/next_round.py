"""Rounds of several statements that ask for what the next round reads.

The first statement of a round waits for what comes from beyond a core's own caches, and those after
it compute on what is near by then.  So one that reads the same again, and computes long enough,
asks for the next round's.  Soft-max of 4096 rows of 1000 elements took 0.87 of the time on a Xeon.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod

from isamap.diagnostics import ScheduleError
from isamap.hw.accelerator import LINE
from isamap.ir.ahead import statements_ahead
from isamap.ir.nodes import Access, Buffer, Kernel
from isamap.ir.statements import accesses
from isamap.lower.delivery import KEPT
from isamap.lower.fuse import Fused
from isamap.lower.judge import Judge
from isamap.schedule.flows import HINT
from isamap.schedule.rank import least_cycles
from isamap.schedule.schedule import Early, Schedule, StatementSchedule
from isamap.schedule.shape import ASSUMED_EXTENT
from isamap.schedule.treatment import inputs, numeric

ROOM = 1 / 8
"""Part of these caches that the next round's part of it may take: in soft-max of 64 rows of 32000
elements it took a quarter, and asking for it cost as much as it gained.
"""


def with_next_round(fused: Fused, kernel: Kernel, judge: Judge) -> Fused:
    """Return a schedule in whose rounds statements ask for what the next round reads.

    It is the same where no statement reads again what comes from afar, or none has the time to ask.
    """
    own_caches = [s.size for s in judge.accelerator.storages if s.kind == "cache" and s.size][:-1]
    if judge.accelerator.prefetched is None or not own_caches:
        return fused
    first = frozenset(statements_ahead(kernel))
    schedule = fused.schedule
    for head in range(len(schedule.statements)):
        numbers = [n for n in (head, *schedule.companions(head)) if n not in first]
        if len(numbers) < 2:
            continue
        for buffer in _inputs(kernel, numbers):
            if _bytes(buffer) > KEPT * max(own_caches):
                room = ROOM * max(own_caches)
                schedule = _asking(schedule, sorted(numbers), buffer, room)
    if schedule == fused.schedule:
        return fused
    # Where a copy or a window hides where lines lie, none is asked for.
    with suppress(ScheduleError):
        lowered = judge.lowered(kernel, schedule)
        return Fused(schedule, lowered, judge.estimate(lowered))
    return fused


def _inputs(kernel: Kernel, numbers: Sequence[int]) -> list[Buffer]:
    """Return the arrays that statements read and none of the kernel's writes."""
    written = {statement.target.buffer for statement in kernel.statements}
    read = dict.fromkeys(
        access.buffer for n in numbers for access in accesses(kernel.statements[n].value)
    )
    return [kernel.buffer(name) for name in read if name not in written]


def _bytes(buffer: Buffer) -> int:
    return prod(numeric(size, ASSUMED_EXTENT) for size in buffer.shape) * buffer.dtype.bits // 8


def _asking(schedule: Schedule, numbers: Sequence[int], buffer: Buffer, room: float) -> Schedule:
    """Return the schedule with the busiest statement that reads an array again asking for it.

    It is the same if a round reads more bytes of the array than there is ``room`` for.
    """
    readers = [n for n in numbers if _reads(schedule.statements[n], buffer.name)]
    able = [n for n in readers[1:] if _has_time(schedule.statements[n], buffer)]
    if not able:
        return schedule
    number = max(able, key=lambda n: least_cycles(schedule.statements[n].mapping))
    own = schedule.statements[number]
    variable = own.levels[0].variable
    steps = [level.step for level in own.levels if level.variable == variable]
    extents = {v.name: v.extent for v in own.mapping.matching.statement.variables}
    rounds = numeric(extents[variable], ASSUMED_EXTENT) / steps[0]
    if _bytes(buffer) / rounds > room:
        return schedule
    ahead = steps[0] // steps[-1]
    found = tuple(
        Early(n, ahead, variable)
        for n, (_, access) in enumerate(inputs(own.mapping))
        if access.buffer == buffer.name and _moves(own, access)
    )
    return schedule.with_statement(number, replace(own, early=found))


def _reads(own: StatementSchedule, name: str) -> bool:
    """Return whether a statement reads of an array what moves with its outermost loop."""
    pairs = inputs(own.mapping)
    return any(access.buffer == name and _moves(own, access) for _, access in pairs)


def _moves(own: StatementSchedule, access: Access) -> bool:
    reads = any(index.reads for index in access.indices)
    return not reads and bool(own.levels) and own.levels[0].variable in access.names


def _has_time(own: StatementSchedule, buffer: Buffer) -> bool:
    """Return whether a statement is busy long enough for each line, and asks for nothing yet."""
    if own.within is not None or own.early:
        return False
    return least_cycles(own.mapping) >= HINT * _bytes(buffer) / LINE
