"""Axes that the same operands see are one axis: a variable may lie across both."""

from collections.abc import Set
from math import prod

from isamap.ir.nodes import Access, Expr
from isamap.ir.statements import accesses
from isamap.mapping.axes.seen import seen_by
from isamap.mapping.matching import Axis


def merge_twins(
    target: Access,
    value: Expr,
    axes: tuple[Axis, ...],
    fixed: Set[str],
    others: tuple[Access, ...] = (),
) -> tuple[Axis, ...]:
    """Return the axes with those merged that every operand sees alone or does not see at all.

    Only axes in ``fixed`` are merged: the extent of another one may follow the live elements.  The
    first twin is the outermost part of the merged axis, which stands in its place.  ``others`` are
    accesses of operands that the value does not read.
    """
    operands = {access.buffer: access for access in (target, *accesses(value), *others)}
    seen = [seen_by(access, axes) for access in operands.values()]
    twins: dict[object, list[Axis]] = {}
    for n, axis in enumerate(axes):
        key: object = n
        if axis.extent > 1 and axis.name in fixed and all(s is not None for s in seen):
            views = [s for s in seen if s is not None]
            if not any(total[n] for s in views for total in s.sums):
                key = tuple(n in s.alone for s in views)
        twins.setdefault(key, []).append(axis)
    return tuple(_merged(group) for group in twins.values())


def _merged(group: list[Axis]) -> Axis:
    if len(group) == 1:
        return group[0]
    name = "*".join(axis.name for axis in group)
    parts = tuple((axis.name, axis.extent) for axis in group)
    return Axis(name, prod(extent for _, extent in parts), parts=parts)
