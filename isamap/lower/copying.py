"""What copies of elements cost, by what is contiguous on both of their sides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2, prod
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index
from isamap.lower.nodes import Copy
from isamap.lower.peeled import unlooked
from isamap.lower.turns import turn_of
from isamap.schedule.copied import COPY_BYTES, RUN_CYCLES, SINGLE_CYCLES, WOVEN

ASIDE_CYCLES = 8.0
"""Cycles of a copy aside: the load that follows is wider than the stores, and waits for them."""

PIECE_CYCLES = 2.0
"""Cycles of each stretch of elements that it moves, and of each element that has a condition, also
of few rows that loops weave.
"""

STAGED_CYCLES = 1 / 16
"""Cycles for which a copy waits for each byte of results that have just been stored: tiles of 1 KiB
that go through memory to be turned took 144 cycles more than as they are, where 96 are those of the
copy (``benchmarks/turned.py``, an Emerald Rapids).
"""

WOVEN_ROW = 16
"""Bytes of each of these rows, at least: of shorter ones no vectors are made."""

SCATTER_CYCLES = 1.5
"""Cycles an element of any other copy."""

ISSUED = 6
"""Instructions a cycle of the cores on which copies were timed: one that issues fewer takes longer
for what is moved an element at a time, which is all instructions.
"""

Value: TypeAlias = Callable[[Index], float]
"""What an index is."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The bytes a cycle of a copy that is contiguous on both sides, and how many times as long as
    on the cores that were timed an element takes by itself.
    """

    rate: float
    slower: float = 1.0


def pace_of(accelerator: Accelerator) -> Pace:
    """Return how fast a machine copies."""
    first = next((s for s in accelerator.storages if s.kind == "cache"), None)
    rate = float(first.write) / 2 if first and first.write else COPY_BYTES
    return Pace(rate, max(1.0, ISSUED / accelerator.issue))


def copy_cycles(copy: Copy, value: Value, sizes: Mapping[str, int], pace: Pace) -> float:
    """Return the cycles of a copy of elements; those of an array have so many bytes, ``sizes``."""
    elements = prod(max(0.0, value(count)) for _, count in copy.counters)
    scattered = elements * SCATTER_CYCLES * pace.slower
    single = elements * SINGLE_CYCLES * pace.slower
    if (turn := turn_of(copy, sizes[copy.target])) is not None:
        # Each round of shuffles makes the vectors of a block of those of the one before.
        turned = elements * sizes[copy.target] * (1 + log2(turn.block)) / pace.rate
        return min(turned, scattered)
    last, before = [*(c for c, _ in reversed(copy.counters)), "", ""][:2]
    if value(copy.target_offset.coefficient(last)) != 1:
        return scattered
    if copy.source is None or value(copy.source_offset.coefficient(last)) == 1:
        runs = elements / _run(copy, value)
        stretches = elements * sizes[copy.target] / pace.rate + runs * RUN_CYCLES * pace.slower
        # Short stretches are moved element by element.
        return min(stretches, single)
    woven = value(copy.source_offset.coefficient(before)) == 1
    size, rows = sizes[copy.target], value(copy.counters[-1][1])
    if rows > WOVEN:
        return scattered
    taken = scattered
    if woven:
        taken = elements * size * (1 + log2(max(1.0, rows))) / pace.rate
        taken = single if value(copy.counters[-2][1]) * size < WOVEN_ROW else taken
    ends = [condition for condition in copy.conditions if last in condition.names]
    plain = prod(unlooked(condition, copy.counters, value) for condition in ends)
    return plain * taken + (1 - plain) * elements * PIECE_CYCLES * pace.slower


def staged_cycles(copy: Copy, value: Value, size: int) -> float:
    """Return how long a copy waits for elements, of so many bytes each, that were just stored."""
    elements = prod(max(0.0, value(count)) for _, count in copy.counters)
    return STAGED_CYCLES * elements * size


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
