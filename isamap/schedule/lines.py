"""Iterations that are taken two at a time, so that lines are asked for ahead half as often."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from isamap.hw.accelerator import LINE, Accelerator
from isamap.schedule.flows import Flow
from isamap.schedule.schedule import Early, Level
from isamap.schedule.shape import Shape, block_of, fragments_of
from isamap.schedule.treatment import inputs

SCARCE = 24
"""Instructions of a block to each line that it asks for: with fewer, asking is 4 % of them."""

SHARED = 4
"""Iterations that share a line, at least: with fewer, what asking takes is not worth more code."""


def paired(
    shape: Shape,
    levels: Sequence[Level],
    early: Sequence[Early],
    far: Sequence[Flow],
    made: Dict[str, int],
    accelerator: Accelerator,
) -> tuple[Level, ...]:
    """Return the loops with two iterations of the innermost one in a block, where many share lines.

    ``early`` is what a block of one iteration asks for, ``far`` has the inputs from far away, and
    a fragment of an operand is ``made`` by so many instructions.
    The loops stay where asking costs little, and where loads convert.  (Compilers bring early what
    takes long, for which there are no registers then, nor are there for more than two iterations.)
    """
    cache = accelerator.prefetched
    needle = shape.mapping.matching.needle
    converts = any(needle.operand(o).dtype != access.dtype for o, access in inputs(shape.mapping))
    if cache is None or not levels or converts:
        return tuple(levels)
    inner = levels[-1]
    block = block_of(shape, levels)
    fragments = {name: fragments_of(shape, name, block) for name in made}
    asked = {one.access for one in early if not one.shared and one.variable == inner.variable}
    coming = [fragments[f.operand] * f.bytes for f in far if f.access in asked]
    calls = prod(block.values())
    instructions = calls * needle.entry.length
    instructions += sum(count * made[name] for name, count in fragments.items())
    if not coming or instructions >= SCARCE * len(coming):
        return tuple(levels)
    step = 2 * inner.step
    if SHARED * max(coming) > (cache.line or LINE) or step > shape.extents[inner.variable]:
        return tuple(levels)
    return tuple(
        replace(level, step=-(-level.step // step) * step)
        if level.variable == inner.variable
        else level
        for level in levels
    )
