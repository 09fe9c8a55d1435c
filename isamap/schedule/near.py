"""Reductions that are cut outside the results, so that what is read as it lies stays in the first
cache while blocks pass it again.

Rows of a panel that lie far apart come line by line, which no hardware fetches ahead; what comes
once and is then used from the first cache need not.
"""

from collections.abc import Sequence
from itertools import takewhile
from math import prod

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access
from isamap.schedule.cut import touched
from isamap.schedule.overlap import cut_tails
from isamap.schedule.schedule import Level, StatementSchedule
from isamap.schedule.shape import block_of, is_symbolic, read_shape
from isamap.schedule.treatment import PACKED, inputs

HELD = 1 / 2
"""The part of the first cache that a panel may fill."""

SHORTEST = 64
"""Iterations of a reduction at least between two times that results come and go."""

AGAIN = 4
"""Blocks that pass a panel in turn, at least."""


def cut_near(schedule: StatementSchedule, accelerator: Accelerator) -> tuple[Level, ...] | None:
    """Return a schedule's loops with its longest reduction cut so that what blocks in turn read as
    it lies stays in the first cache; None where that is so already, or would not pay.

    The cut is outside the loops in which the panel is passed again.  Tails of parts do not overlap.
    """
    shape, levels = read_shape(schedule.mapping), schedule.levels
    first = next((s.size for s in accelerator.storages if s.kind == "cache" and s.size), None)
    outer = list(takewhile(lambda level: level.variable in shape.outputs, levels))
    inner = [level.variable for level in levels[len(outer) :]]
    if first is None or any(is_symbolic(shape, v) for v in shape.extents):
        return None
    if not inner or set(inner) & set(shape.outputs):
        return None  # results are in parts already
    longest = max(inner, key=lambda v: shape.extents[v])
    steps = {v: n * shape.tile[v] for v, n in block_of(shape, levels).items()}
    whole = steps | {v: shape.extents[v] for v in shape.reductions}
    cuts: list[tuple[int, int]] = []
    for (_, access), kind in zip(inputs(schedule.mapping), schedule.operands, strict=True):
        again = _passed_again(access, outer)
        at = len(outer) - len(again)
        passes = prod(-(-shape.extents[level.variable] // level.step) for level in again)
        panel = touched(access, whole)
        if kind in PACKED or longest not in access.names or passes < AGAIN:
            continue
        if panel > HELD * first:
            most = int(shape.extents[longest] * HELD * first / panel)
            cuts.append((_even(shape.extents[longest], most, steps[longest]), at))
    if not cuts or min(cuts)[0] < max(SHORTEST, steps[longest] + 1):
        return None
    step, at = min(cuts)
    return cut_tails((*levels[:at], Level(longest, step), *levels[at:]))


def _passed_again(access: Access, outer: Sequence[Level]) -> list[Level]:
    """Return the innermost of some loops, all that do not move an access."""
    return list(takewhile(lambda level: level.variable not in access.names, outer[::-1]))


def _even(extent: int, most: int, step: int) -> int:
    """Return the iterations of about equal parts of at most so many, several steps at a time as far
    as that is possible: little is left of each part then.
    """
    each = -(-extent // -(-extent // max(1, most)))
    for unit in (8 * step, 4 * step, 2 * step):
        if (rounded := -(-each // unit) * unit) <= most:
            return rounded
    return most // step * step
