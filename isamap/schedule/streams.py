"""Pages that a block walks side by side.

Hardware fetches lines ahead of a walk through memory, page by page, and follows so many pages at a
time.  A block of more rows than that waits for most of its lines: where each element is touched
once, and where an operand comes from beyond the second cache.
"""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index
from isamap.ir.nodes import Buffer
from isamap.mapping.fragments.layout import linear
from isamap.schedule.flows import Flow
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import ASSUMED_EXTENT, Shape
from isamap.schedule.treatment import Treatments, inputs, numeric

PAGE = 4096
"""Bytes within which hardware fetches ahead: the smallest pages of common processors."""

WRITTEN = 2
"""Walks that one through results counts as: lines are fetched first, and go back later."""

Rows = tuple[tuple[str, float], ...]
"""The variables over which an access walks pages, and what part of one, or how many, a tile of each
has.
"""


@dataclass(frozen=True, slots=True)
class Walks:
    """The pages that the accesses of a statement walk, and how many hardware follows."""

    accesses: tuple[Rows, ...]
    followed: int

    def too_many(self, block: Dict[str, int]) -> bool:
        """Return whether a block of several tiles walks more pages than hardware follows."""
        pages = sum(self._pages(rows, block) for rows in self.accesses)
        return pages > max(self.followed, sum(self._pages(rows, {}) for rows in self.accesses))

    def _pages(self, rows: Rows, block: Dict[str, int]) -> int:
        return prod(max(1, ceil(block.get(v, 1) * of_tile)) for v, of_tile in rows)


def walks(
    shape: Shape,
    chosen: Sequence[Treatment],
    accelerator: Accelerator,
    treatments: Treatments,
    far: Sequence[Flow],
) -> Walks:
    """Return how the accesses of a statement walk that no cache holds.

    These are all of a statement without reductions whose arrays do not fit, and those that are
    ``far`` of others.
    """
    cache = max(accelerator.storages, key=lambda storage: storage.streams or 0, default=None)
    if cache is None or not cache.streams:
        return Walks((), 0)
    target = shape.mapping.matching.statement.target
    if not shape.reductions:
        touched = {access.buffer for _, access in inputs(shape.mapping)} | {target.buffer}
        if sum(_bytes(treatments.buffers[name]) for name in touched) <= (cache.size or 0):
            return Walks((), 0)
    found: list[Rows] = []
    if not shape.reductions:
        offset = linear(treatments.buffers[target.buffer], target.indices)
        found += [_rows(shape, offset, target.dtype.bytes)] * WRITTEN
    positions = {flow.access for flow in far}
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        if shape.reductions and n not in positions:
            continue
        reference = treatments.reference(operand, access, chosen[n])
        if reference is not None:
            found.append(_rows(shape, reference.offset, access.dtype.bytes))
    return Walks(tuple(found), cache.streams)


def _bytes(buffer: Buffer) -> int:
    return prod(numeric(e, ASSUMED_EXTENT) for e in buffer.shape) * buffer.dtype.bytes


def _rows(shape: Shape, offset: Index, size: int) -> Rows:
    found = []
    for v in shape.outputs:
        if v in offset.names and offset.is_linear_in([v]):
            step = abs(numeric(offset.coefficient(v), ASSUMED_EXTENT)) * size
            found.append((v, min(shape.tile[v], step * shape.tile[v] / PAGE)))
    return tuple(found)
