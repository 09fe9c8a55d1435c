"""Where digits lie on their axes: the weights of mixed radix, padded where sums need it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd

import numpy as np

from isamap.ir.index import Index, total, var
from isamap.ir.statements import accesses
from isamap.mapping.axes.linear import Vector
from isamap.mapping.axes.padded import Joint, SumRoom
from isamap.mapping.axes.rows import row
from isamap.mapping.axes.seen import seen_at
from isamap.mapping.fragments.layout import PlacedDigit
from isamap.mapping.matching import Axis, Matching, Needle


def sums(needle: Needle) -> tuple[Vector, ...]:
    """Return the sums of axes that operands of a needle see; none if all indices are plain."""
    found = (needle.target, *accesses(needle.value))
    return _sums(tuple(access.indices for access in found), needle.axes)


@lru_cache(maxsize=1024)
def _sums(indices: tuple[tuple[Index, ...], ...], axes: tuple[Axis, ...]) -> tuple[Vector, ...]:
    found: dict[Vector, None] = {}
    for group in indices:
        seen = seen_at(group, axes)
        assert seen is not None, "needles have linear accesses"
        found.update(dict.fromkeys(seen.sums))
    return tuple(found)


def joints(needle: Needle) -> tuple[Joint, ...]:
    """Return the dimensions of operands that a needle reads at several places."""
    if not needle.places:
        return ()
    read = {access.buffer: access.indices for access in accesses(needle.value)}
    owners = dict.fromkeys(owner for _, owner in needle.places)
    groups = tuple(
        tuple(read[n] for n in read if needle.owner(n) == owner)
        for owner in owners
        if needle.operand(owner).contents is None
    )
    return _joints(groups, needle.target.indices, needle.axes)


@lru_cache(maxsize=1024)
def _joints(
    groups: tuple[tuple[tuple[Index, ...], ...], ...],
    target: tuple[Index, ...],
    axes: tuple[Axis, ...],
) -> tuple[Joint, ...]:
    seen = seen_at(target, axes)
    assert seen is not None, "needles have linear accesses"
    names = [axis.name if axis.extent > 1 else "" for axis in axes]
    found = []
    for places in groups:
        for dim in zip(*places, strict=True):
            sums_ = tuple((row(index, names), index.offset) for index in dim)
            joint = Joint(sums_, owned=False)
            found.append(replace(joint, owned=joint.axes <= seen.alone))
    return tuple(found)


def levelled(needle: Needle) -> frozenset[int]:
    """Return the axes whose digits have levels: in sums, or along operands of several places."""
    found = frozenset(a for t in sums(needle) for a, c in enumerate(t) if c)
    return found.union(*(joint.axes for joint in joints(needle)))


def digits(matching: Matching, tile: Mapping[str, int]) -> dict[str, tuple[PlacedDigit, ...]]:
    """Return the digits on each axis, outermost first; those with one value are left out."""
    axes = matching.needle.axes
    mixed = levelled(matching.needle)
    found: dict[str, tuple[PlacedDigit, ...]] = {}
    for n, axis in enumerate(axes):
        if n not in mixed:
            found[axis.name] = _radix(matching.on_axis(axis.name), tile)
    if not mixed:
        return found
    inner = matching.inner
    room = sum_room(matching)
    weights: dict[tuple[int, int], int] = {}
    row_ = np.array([[tile.get(v, 1) for v in inner]], np.int64)
    for group in room.groups():
        own, _ = group.weights(next(group.orders()), row_)
        weights.update({key: int(weight[0]) for key, weight in own.items()})
    for n in sorted(mixed):
        name = axes[n].name
        placed = [p for p in matching.placements if p.axis == name and moving(p.form, tile)]
        found[name] = tuple(
            _digit(p.form, tile, weights[n, p.level], 1)
            for p in sorted(placed, key=lambda p: -p.level)
        )
    return found


def sum_room(matching: Matching) -> SumRoom:
    """Return the digits on axes with levels; axes of extent 1 have no room."""
    totals = sums(matching.needle)
    axes = matching.needle.axes
    numbers = {axis.name: n for n, axis in enumerate(axes)}
    mixed = levelled(matching.needle)
    inner = matching.inner
    digits_ = tuple(
        (numbers[p.axis], p.level, row(p.form, inner))
        for p in matching.placements
        if numbers[p.axis] in mixed
    )
    rooms = tuple((n, axes[n].extent) for n in sorted(mixed))
    return SumRoom(totals, digits_, rooms, joints(matching.needle))


def piece_digits(
    axes: Sequence[Axis], on_axes: Mapping[str, tuple[PlacedDigit, ...]]
) -> dict[str, tuple[PlacedDigit, ...]]:
    """Return the digits along each variable of the instruction, those of merged axes split."""
    found: dict[str, tuple[PlacedDigit, ...]] = {}
    for axis in axes:
        weight = axis.extent
        for name, size in axis.pieces:
            weight //= size
            if axis.parts:
                found[name] = _part(on_axes[axis.name], weight, size)
            else:
                found[name] = on_axes[axis.name]
    return found


def _part(on_axis: tuple[PlacedDigit, ...], start: int, size: int) -> tuple[PlacedDigit, ...]:
    """Return the digits of ``position // start % size``, a part of a merged axis.

    They are the axis's own where each lies in one part.
    """
    own: list[PlacedDigit] = []
    for digit in on_axis:
        if digit.weight >= start * size or digit.weight * digit.extent <= start:
            continue
        inside = digit.weight * digit.extent <= start * size
        if digit.weight % start or not inside:
            place = total((d.form - d.low) * d.weight for d in on_axis)
            return (PlacedDigit(place // start % size, 0, size, 1),)
        own.append(replace(digit, weight=digit.weight // start))
    return tuple(own)


def extent(on_axis: Iterable[PlacedDigit]) -> int:
    """Return how many positions digits reach."""
    return 1 + sum((digit.extent - 1) * digit.weight for digit in on_axis)


def moving(form: Index, tile: Mapping[str, int]) -> dict[str, int]:
    """Return the coefficients of the variables of a form that have more than one iteration."""
    found: dict[str, int] = {}
    for v in sorted(form.names):
        if tile.get(v, 1) > 1:
            factor = form.coefficient(v).constant
            assert factor is not None, "placed forms have numbers as coefficients"
            found[v] = factor
    return found


def _digit(form: Index, tile: Mapping[str, int], weight: int, step: int) -> PlacedDigit:
    factors = {v: c // step for v, c in moving(form, tile).items()}
    reduced = total(var(v) * c for v, c in factors.items())
    low = sum(c * (tile[v] - 1) for v, c in factors.items() if c < 0)
    reach = sum(abs(c) * (tile[v] - 1) for v, c in factors.items())
    return PlacedDigit(reduced, low, reach + 1, weight)


def _radix(forms: Sequence[Index], tile: Mapping[str, int]) -> tuple[PlacedDigit, ...]:
    """Return digits in mixed radix, common factors removed.

    They leave no holes, and may lie across the parts of a merged axis: what is contiguous in memory
    is so on the axis.
    """
    live = [(form, gcd(*factors.values())) for form in forms if (factors := moving(form, tile))]
    dense: list[PlacedDigit] = []
    weight = 1
    for form, step in reversed(live):
        dense.append(_digit(form, tile, weight, step))
        weight *= dense[-1].extent
    return tuple(reversed(dense))
