"""What copies of elements cost, by what is contiguous on both of their sides."""

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeAlias

from isamap.ir.index import Index
from isamap.lower.nodes import Copy
from isamap.schedule.copied import WOVEN

COPY_BYTES = 8.0
"""Bytes a cycle of a copy whose innermost counter is contiguous on both sides."""

RUN_CYCLES = 1.0
"""Cycles of each stretch of elements that such a copy moves, on top."""

WEAVE_BYTES = 6.0
"""Bytes a cycle of a copy that weaves a few rows: it is read along one counter, written along the
next inner one.  Compilers make vectors of that: 2 to 16 rows of 1, 2 and 4 bytes were woven at 6 to
19 bytes a cycle on a Sapphire Rapids, in the first cache.
"""

ASIDE_CYCLES = 8.0
"""Cycles of a copy aside: the load that follows is wider than the stores, and waits for them."""

PIECE_CYCLES = 2.0
"""Cycles of each stretch of elements that it moves, and of each element that has a condition."""

WOVEN_ROW = 16
"""Bytes of each of these rows, at least: of shorter ones no vectors are made."""

SINGLE_CYCLES = 0.75
"""Cycles an element of a copy that moves or weaves a few at a time."""

SCATTER_CYCLES = 1.5
"""Cycles an element of any other copy."""

Value: TypeAlias = Callable[[Index], float]
"""What an index is."""


def copy_cycles(copy: Copy, value: Value, sizes: Mapping[str, int]) -> float:
    """Return the cycles of a copy of elements; those of an array have so many bytes, ``sizes``."""
    elements = prod(max(0.0, value(count)) for _, count in copy.counters)
    last, before = [*(c for c, _ in reversed(copy.counters)), "", ""][:2]
    if value(copy.target_offset.coefficient(last)) != 1:
        return elements * SCATTER_CYCLES
    if copy.source is None or value(copy.source_offset.coefficient(last)) == 1:
        runs = elements / _run(copy, value)
        stretches = elements * sizes[copy.target] / COPY_BYTES + runs * RUN_CYCLES
        # Short stretches are moved element by element.
        return min(stretches, elements * SINGLE_CYCLES)
    woven = value(copy.source_offset.coefficient(before)) == 1
    size = sizes[copy.target]
    woven = woven and value(copy.counters[-1][1]) <= WOVEN
    if not woven:
        return elements * SCATTER_CYCLES
    long = value(copy.counters[-2][1]) * size >= WOVEN_ROW
    return elements * (size / WEAVE_BYTES if long else SINGLE_CYCLES)


def aside_cycles(copy: Copy, value: Value) -> float:
    """Return the cycles of a copy aside, amid computations in registers."""
    counts = [max(1.0, value(count)) for _, count in copy.counters]
    last = copy.counters[-1][0] if copy.counters else ""
    if not any(last in condition.names for condition in copy.conditions):
        counts = counts[:-1]
    return ASIDE_CYCLES + PIECE_CYCLES * prod(counts)


def _run(copy: Copy, value: Value) -> float:
    """Return how many elements of a copy follow each other, there and here."""
    piece = 1.0
    for counter, count in reversed(copy.counters):
        offsets = (copy.target_offset, *([copy.source_offset] if copy.source else []))
        if any(value(offset.coefficient(counter)) != piece for offset in offsets):
            break
        piece *= max(1.0, value(count))
    return piece
