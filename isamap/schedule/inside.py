"""Where operands are packed: inside the outer loops that choose what of them is needed."""

from collections.abc import Sequence
from math import prod

from isamap.schedule.schedule import Level, Treatment
from isamap.schedule.shape import Shape
from isamap.schedule.treatment import PACKED, Treatments, inputs

LEAST = 1024
"""Elements of a piece below which its copies cost more than what they save."""


def packed_inside(
    shape: Shape, levels: Sequence[Level], kinds: Sequence[Treatment], treatments: Treatments
) -> tuple[int, ...]:
    """Return for each access inside how many levels it is packed; 0 before all of them.

    That is the outermost levels over variables that the access depends on: each of its elements is
    packed once, as it would be before all loops, and is used while it is still in a cache.
    Constants are packed ahead of all calls instead, and what is gathered from several places in one
    piece.
    """
    found = []
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        depth = 0
        buffer = treatments.buffers[access.buffer]
        if kinds[n] in PACKED and buffer.role != "const" and not treatments.is_gathered(operand):
            used = frozenset().union(*(i.names for i in access.indices)) & shape.extents.keys()
            left = dict(shape.extents)
            for level in levels:
                if level.variable not in used:
                    break
                left[level.variable] = level.step
                if prod(left[v] for v in used) < LEAST:
                    break
                depth += 1
        found.append(depth)
    return tuple(found) if any(found) else ()
