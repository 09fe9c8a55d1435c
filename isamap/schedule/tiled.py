"""Loops of the analytical model around several register blocks, for a statement that waits for
caches with the loops of the rules.
"""

from math import log

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.mapping.fragments.layout import linear
from isamap.schedule.first import blocks_for, with_levels
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.shape import ASSUMED_EXTENT, Shape, is_symbolic, read_shape
from isamap.schedule.tilings import Tiling, levels_of, tilings
from isamap.schedule.treatment import Treatments, inputs, numeric

BLOCKS = 4
"""Register blocks, the best score first, that the model makes loops for."""

EACH = 2
"""Tilings of a block that are tried."""

ALIKE = 0.02
"""Tilings whose cycles are this close, as a part of them, are taken for equal."""

TRIED = 4
"""Tilings of all blocks that are tried: each block's best before others, the model's best first."""


def tiled_schedules(
    start: StatementSchedule,
    accelerator: Accelerator,
    kernel: Kernel,
    treatments: Treatments,
    threads: int,
) -> list[StatementSchedule]:
    """Return schedules like ``start`` with loops of the model, what it likes best first.

    ``kernel`` is of the statement alone, with its extents bound.  Results are complete when they
    leave the registers: what it costs that they come and go in parts, no estimate says well.  Of
    loops that the model likes as much, those come first that walk along rows of the target.
    """
    mapping = start.mapping
    shape = read_shape(mapping)
    if any(is_symbolic(shape, v) for v in shape.extents):
        return []
    come, blocks = blocks_for(shape, start.operands, accelerator, treatments)
    pairs = zip(inputs(mapping), start.operands, strict=True)
    packed = {access.buffer for (_, access), kind in pairs if kind == "packed"}
    found: list[tuple[int, float, int, dict[str, int], Tiling]] = []
    for block in blocks[:BLOCKS]:
        made = list(tilings(shape, kernel, accelerator, block, packed, complete=True))
        made.sort(key=lambda t: (round(log(t.cycles) / ALIKE), _pitch(shape, t, kernel)))
        found += [(n, t.cycles, len(found), block, t) for n, t in enumerate(made[:EACH])]
    found.sort(key=lambda one: one[:3])
    return [
        with_levels(
            shape,
            levels_of(shape, tiling, block, threads),
            start.operands,
            treatments,
            come.far,
            accelerator,
        )
        for *_, block, tiling in found[:TRIED]
    ]


def _pitch(shape: Shape, tiling: Tiling, kernel: Kernel) -> int:
    """Return how far apart in the target two blocks are that follow each other."""
    target = shape.mapping.matching.statement.target
    buffer = next(buffer for buffer in kernel.buffers if buffer.name == target.buffer)
    offset = linear(buffer, target.indices)
    inner = next((v for v, _ in reversed(tiling.loops) if v in shape.outputs), None)
    if inner is None or not offset.is_linear_in([inner]):
        return 0
    return abs(numeric(offset.coefficient(inner), ASSUMED_EXTENT))
