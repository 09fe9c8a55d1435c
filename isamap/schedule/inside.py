"""Where operands are copied: inside the outer loops that choose what of them is needed."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from math import prod

from isamap.ir.index import const
from isamap.ir.nodes import Access
from isamap.mapping.fragments.layout import padded
from isamap.schedule.schedule import Level, Treatment
from isamap.schedule.shape import Shape
from isamap.schedule.treatment import COPIED, Treatments, inputs

LEAST = 1024
"""Elements of a piece below which its copies cost more than what they save."""

TWICE = 1.1
"""How many times the elements of a copy may be copied where its pieces overlap."""


def copied_inside(
    shape: Shape, levels: Sequence[Level], kinds: Sequence[Treatment], treatments: Treatments
) -> tuple[int, ...]:
    """Return for each access inside how many levels it is copied; 0 before all of them.

    That is the outermost levels over variables that the access depends on: each of its elements is
    copied once, as it would be before all loops, and is used while it is still in a cache.
    Where pieces overlap, as windows do, copies are made inside fewer levels.  Constants are
    copied ahead of all calls instead, and what is gathered from several places in one piece.
    """
    found = []
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        depth = 0
        buffer = treatments.buffers[access.buffer]
        if kinds[n] in COPIED and buffer.role != "const" and not treatments.is_gathered(operand):
            used = access.names & shape.extents.keys()
            left = dict(shape.extents)
            for level in levels:
                if level.variable not in used:
                    break
                left[level.variable] = level.step
                if prod(left[v] for v in used) < LEAST:
                    break
                pieces = prod(-(-extent // left[v]) for v, extent in shape.extents.items())
                whole, piece = (
                    _elements(operand, access, kinds[n], own, treatments)
                    for own in (shape.extents, left)
                )
                if whole is None or piece is None or pieces * piece > TWICE * whole:
                    break
                depth += 1
        found.append(depth)
    return tuple(found) if any(found) else ()


def _elements(
    operand: str, access: Access, kind: Treatment, extents: Dict[str, int], treatments: Treatments
) -> int | None:
    """Return the elements of a copy of what so many iterations read; None if it is not known."""
    return (
        _box(access, extents)
        if kind == "padded"
        else treatments.packed_elements(operand, access, kind, extents)
    )


def _box(access: Access, extents: Dict[str, int]) -> int | None:
    """Return the elements of the box that an access reaches; None if some index is not linear."""
    if any(index.reads or not index.is_linear_in(extents) for index in access.indices):
        return None
    layout = padded("", access, {v: const(extent) for v, extent in extents.items()})
    sizes = [extent.constant for extent in layout.shape] if layout else [None]
    return None if None in sizes else prod(size for size in sizes if size is not None)
