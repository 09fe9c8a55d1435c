"""Axes of an instruction that lie one inside another along a dimension, as in ``r[16*b + l]``.

Such a dimension is several, with the elements in the same order: ``s8[32]`` is ``s8[2, 16]``.
"""

from collections.abc import Iterable, Iterator, Mapping

from isamap.ir.index import Index, const
from isamap.ir.nodes import Statement


def extents_of(statement: Statement) -> dict[str, int | None]:
    """Return the extents of a statement's variables that are numbers, None for others."""
    return {v.name: v.extent.constant for v in statement.variables}


def unfold(
    indices: Iterable[Index], shape: Iterable[int], extents: Mapping[str, int | None]
) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Return the axis along each dimension of an operand, and its shape, sums of axes unfolded.

    None where an index is neither an axis nor a sum of axes each of which steps exactly over those
    inside it.  Only the extent of the outermost of these may be another than a number.  The axis is
    "" where the index is 0, along a dimension of one element.
    """
    axes: list[str] = []
    sizes: list[int] = []
    for index, size in zip(indices, shape, strict=True):
        own: list[tuple[str, int]] | None
        if index.name is not None:
            own = [(index.name, size)]
        elif size == 1 and index == const(0):
            own = [("", 1)]
        else:
            own = _unfolded(index, size, extents)
        if own is None:
            return None
        axes += [axis for axis, _ in own]
        sizes += [extent for _, extent in own]
    names = [axis for axis in axes if axis]
    return (tuple(axes), tuple(sizes)) if len(set(names)) == len(names) else None


def _unfolded(
    index: Index, size: int, extents: Mapping[str, int | None]
) -> list[tuple[str, int]] | None:
    """Return the axes of a sum with their extents along a dimension, the outermost first."""
    steps = dict(_steps(index))
    if len(steps) < 2 or steps.keys() != index.names or index.offset:
        return None
    found: list[tuple[str, int]] = []
    outer = size
    for axis in sorted(steps, key=lambda axis: -steps[axis]):
        if outer % steps[axis]:
            return None
        extent = outer // steps[axis]
        if found and extents.get(axis) != extent:
            return None
        found.append((axis, extent))
        outer = steps[axis]
    return found if outer == 1 else None


def _steps(index: Index) -> Iterator[tuple[str, int]]:
    """Yield the axes of an index that is linear in them, with their factors."""
    if not index.is_linear_in(index.names):
        return
    for axis in index.names:
        step = index.coefficient(axis).constant
        if step is not None and step > 0:
            yield axis, step
