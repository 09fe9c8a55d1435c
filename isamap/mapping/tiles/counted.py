"""Axes along which an instruction is told how far to go: what lies beyond needs no filling."""

from collections.abc import Mapping as Dict

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const
from isamap.ir.nodes import Buffer
from isamap.mapping.fragments.layout import PlacedDigit
from isamap.mapping.laws.positions import digits
from isamap.mapping.matching import Mapping


def counted_axes(mapping: Mapping) -> Dict[str, tuple[str, tuple[PlacedDigit, ...]]]:
    """Return the axes that an extent of the instruction ends: it, and the digits on the axis.

    They are axes that the target does not see, as those of sums.  The positions in use are their
    first ones, of which each call gives the number; of operands in memory that have the extent as
    a dimension :func:`~isamap.mapping.fragments.fit.fit` gives it.
    """
    return mapping.answer("counted", lambda: _counted_axes(mapping))


def _counted_axes(mapping: Mapping) -> Dict[str, tuple[str, tuple[PlacedDigit, ...]]]:
    needle = mapping.matching.needle
    owned = frozenset[str]().union(*(index.names for index in needle.target.indices))
    summed = [axis for axis in needle.axes if axis.name not in owned]
    named = {axis.name: _end(needle.entry, axis.name, axis.extent) for axis in summed}
    names = list(named.values())
    ends = {a: name for a, name in named.items() if name is not None and names.count(name) == 1}
    if not ends:
        return {}
    found = digits(mapping.matching, mapping.tile)
    extents = {v.name: v.extent for v in mapping.matching.statement.variables}
    moving = {a: {v for d in own for v in d.form.names} for a, own in found.items()}
    return {
        axis: (name, found[axis])
        for axis, name in ends.items()
        if all(moving[axis].isdisjoint(other) for a, other in moving.items() if a != axis)
        and _begin(found[axis], mapping.tile, extents)
    }


def _end(entry: Entry, axis: str, size: int) -> str | None:
    """Return the extent of an instruction, any number up to all, that ends all loops of an axis."""
    instruction = entry.instruction
    along = [v for s in instruction.statements for v in s.variables if v.name == axis]
    names = {v.extent.name for v in along}
    name = names.pop() if len(names) == 1 else None
    span = next((e.range for e in instruction.extents if e.name == name), None)
    if name is None or span is None or span[0] > 1 or span[1] <= size:
        return None
    # What a constraint says of all of them need not hold of fewer.
    asked = any(name in constraint.names for constraint in entry.constraints)
    return None if asked or any(_has(o, name) for o in instruction.operands) else name


def _has(operand: Buffer, extent: str) -> bool:
    return any(extent in size.names for size in (*operand.shape, *(operand.strides or ())))


def _begin(own: tuple[PlacedDigit, ...], tile: Dict[str, int], extents: Dict[str, Index]) -> bool:
    """Return whether the positions in use are the first ones, however few of a tile are alive."""
    weight = 1
    for place, digit in enumerate(reversed(own), 1):
        variable = digit.form.name
        if variable is None or digit.weight != weight:
            return False
        if place < len(own) and (extents[variable] % tile[variable]) != const(0):
            return False
        weight *= digit.extent
    return True
