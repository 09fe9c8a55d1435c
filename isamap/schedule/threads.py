"""Which loops threads share out among each other."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from isamap.schedule.schedule import Level
from isamap.schedule.shape import Shape
from isamap.schedule.treatment import inputs

GRAIN = 4000
"""Cycles of a statement below which threads do not share it: they must meet afterwards."""

MOVED = 1.0
"""Cycles of a call for each fragment that no other call uses: one load a cycle, or less from afar.
Layer norms and sums of 128 rows of 768 take 1.5 to 2 times as long on one core as on two.
"""

EVEN = 0.95
"""The part of the threads' time that must be work for a loop to be shared out at once."""


def share(shape: Shape, levels: Sequence[Level], threads: int) -> list[Level]:
    """Return the loops over results with those marked that threads share out.

    That is the outermost loop which splits evenly, or the one that does so best, and all loops
    inside it: what is left over of an outer range is shared out by an inner one.
    """
    free = [n for n, level in enumerate(levels) if level.variable not in shape.frozen]
    if threads <= 1 or not free or _cycles(shape) < GRAIN:
        return [replace(level, parallel=False) for level in levels]
    even = {n: _evenness(shape, levels, n, threads) for n in free}
    good = [n for n in free if even[n] >= EVEN]
    first = good[0] if good else max(free, key=lambda n: (even[n], -n))
    return [
        replace(level, parallel=n >= first and level.variable not in shape.frozen)
        for n, level in enumerate(levels)
    ]


def _cycles(shape: Shape) -> float:
    """Return the cycles that a statement's calls take at their throughput, or to be fed."""
    calls = prod(-(-extent // shape.tile[v]) for v, extent in shape.extents.items())
    read = (access for _, access in inputs(shape.mapping))
    moved = MOVED * sum(access.names.issuperset(shape.extents) for access in read)
    return calls * max(float(shape.mapping.matching.needle.entry.throughput), moved)


def _evenness(shape: Shape, levels: Sequence[Level], at: int, threads: int) -> float:
    """Return the :func:`evenness` of sharing out the loop ``at``."""
    level = levels[at]
    outer = [other.step for other in levels[:at] if other.variable == level.variable]
    length = min(outer, default=shape.extents[level.variable])
    inner = any(other.variable not in shape.frozen for other in levels[at + 1 :])
    return evenness(length, level.step, threads, inner)


def evenness(length: int, step: int, threads: int, inner: bool) -> float:
    """Return the part of the threads' time that is work if they share out steps over a length.

    What is left over of it is shared out, too, if there are ``inner`` loops for that.
    """
    full, rest = divmod(length, step)
    over = rest / step
    longest = -(-full // threads) + (over / threads if inner else over)
    return (full + over) / (threads * longest)
