"""Pages that a block walks side by side where each element is touched once.

Hardware fetches lines ahead of a walk through memory, page by page, and follows so many pages at a
time.  A block of more rows than that waits for most of its lines.
"""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from math import prod

from isamap.ir.index import Index
from isamap.mapping.fragments.layout import linear
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import ASSUMED_EXTENT, Shape
from isamap.schedule.treatment import Treatments, inputs, numeric

PAGE = 4096
"""Bytes within which hardware fetches ahead."""

STREAMS = 32
"""Pages that it follows at a time (Intel 64 and IA-32 Architectures Optimization Reference Manual,
on the streamer of the second cache: one forward or backward walk for each of 32 pages)."""

Walks = tuple[frozenset[str], ...]
"""For each access, the variables a tile of which is a page or more from the next one."""


def walks(shape: Shape, chosen: Sequence[Treatment], treatments: Treatments) -> Walks:
    """Return how the accesses of a statement without reductions walk; nothing for others."""
    if shape.reductions:
        return ()
    target = shape.mapping.matching.statement.target
    found = [(linear(treatments.buffers[target.buffer], target.indices), target.dtype.bytes)]
    for (operand, access), treatment in zip(inputs(shape.mapping), chosen, strict=True):
        reference = treatments.reference(operand, access, treatment)
        if reference is not None:
            found.append((reference.offset, access.dtype.bytes))
    return tuple(_far(shape, offset, size) for offset, size in found)


def _far(shape: Shape, offset: Index, size: int) -> frozenset[str]:
    names = [v for v in shape.outputs if v in offset.names and offset.is_linear_in([v])]
    steps = {
        v: abs(numeric(offset.coefficient(v), ASSUMED_EXTENT)) * shape.tile[v] * size for v in names
    }
    return frozenset(v for v, step in steps.items() if step >= PAGE)


def too_many(found: Walks, block: Dict[str, int]) -> bool:
    """Return whether a block walks more pages side by side than hardware follows."""
    return sum(prod(block.get(v, 1) for v in names) for names in found) > STREAMS
