"""The room that levels of digits need on axes of sums, and the order of levels that fits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isamap.mapping.axes.linear import Vector

MOST_ORDERS = 24
"""Orders of the levels that are tried; with four levels these are all."""

Ints: TypeAlias = NDArray[np.int64]

Digit: TypeAlias = tuple[int, int, Vector]
"""Axis, level and form with its factor."""


@dataclass(frozen=True, slots=True)
class Joint:
    """One dimension of an operand that is read at several places.

    ``places`` are the sum of axes that each place sees of it, and a constant.  Axes of a joint have
    one weight for each level; the constants are on level 0, whose weight is 1.  Unless the target
    tells the positions (``owned``), positions that differ by constants must be told apart as well.
    """

    places: tuple[tuple[Vector, int], ...]
    owned: bool

    @property
    def axes(self) -> frozenset[int]:
        """The axes along the dimension."""
        return frozenset(a for total, _ in self.places for a, c in enumerate(total) if c)

    @property
    def shift(self) -> int:
        """By how much constants differ at most."""
        constants = [constant for _, constant in self.places]
        return max(constants) - min(constants)


@dataclass(frozen=True, slots=True)
class SumRoom:
    """Digits on axes of sums, and the extents of these axes as ``(axis, extent)``.

    ``totals`` are the sums that operands see.  Axes that share sums have one weight for each level.
    It is the least with which every sum, and every axis by itself, determines its part on each
    level: a step of the level exceeds all that the lower ones reach, however their digits are
    combined.
    """

    totals: tuple[Vector, ...]
    digits: tuple[Digit, ...]
    rooms: tuple[tuple[int, int], ...]
    joints: tuple[Joint, ...] = ()

    @property
    def axes(self) -> frozenset[int]:
        """All axes that have levels."""
        found = frozenset(a for total in self.totals for a, c in enumerate(total) if c)
        return found.union(*(joint.axes for joint in self.joints))

    @property
    def is_shifted(self) -> bool:
        """Whether level 0 holds constants."""
        return any(joint.shift for joint in self.joints)

    def groups(self) -> tuple["SumRoom", ...]:
        """Return the parts of axes that share sums, directly or through others."""
        joined: list[frozenset[int]] = []
        links = [frozenset(a for a, c in enumerate(vector) if c) for vector in self.totals]
        for axes in (*links, *(joint.axes for joint in self.joints if joint.axes)):
            apart = [g for g in joined if not g & axes]
            joined = [*apart, axes.union(*(g for g in joined if g & axes))]
        return tuple(
            SumRoom(
                tuple(t for t in self.totals if any(t[a] for a in axes)),
                tuple(digit for digit in self.digits if digit[0] in axes),
                tuple(room for room in self.rooms if room[0] in axes),
                tuple(joint for joint in self.joints if joint.axes & axes),
            )
            for axes in joined
        )

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Yield orders of the levels, outermost first; the order of their numbers comes first."""
        levels = sorted({level for _, level, _ in self.digits}, reverse=True)
        if self.is_shifted and 0 in levels:
            return ((*order, 0) for order in islice(permutations(levels[:-1]), MOST_ORDERS))
        return islice(permutations(levels), MOST_ORDERS)

    def weights(
        self, order: Sequence[int], tile: Ints
    ) -> tuple[dict[tuple[int, int], Ints], dict[int, Ints]]:
        """Return the weight of each digit, by axis and level, and the extent of each axis.

        ``self`` is one group; ``tile`` has a row for each tile.
        """
        spans = {(a, at): _span(form, tile) for a, at, form in self.digits}
        axes = sorted(self.axes)
        nothing = np.zeros(len(tile), np.int64)
        views = [_View(({a: c for a, c in enumerate(t) if c},), nothing) for t in self.totals]
        views += [_View(({a: 1},), nothing) for a in axes]
        for joint in self.joints:
            sums = tuple({a: c for a, c in enumerate(t) if c} for t, _ in joint.places)
            views.append(_View(sums, nothing + joint.shift * (1 if joint.owned else 2)))
        found: dict[tuple[int, int], Ints] = {}
        extent = {a: nothing + 1 for a in axes}
        for level in reversed(order):
            here = {a: spans[a, level] for a in axes if (a, level) in spans}
            weight = nothing + 1
            # Constants lie on level 0, and what is on it besides steps with them.
            if level > 0 or not self.is_shifted:
                for view in views:
                    weight = view.least(weight, here)
            views = [view.with_level(weight, here) for view in views]
            for a, (span, _) in here.items():
                found[a, level] = weight
                extent[a] = extent[a] + weight * span
        return found, extent

    def fits(self, tile: Ints) -> NDArray[np.bool_]:
        """Return which rows of ``tile`` fit in some order of the levels."""
        good = np.ones(len(tile), np.bool_)
        for group in self.groups():
            open_ = np.flatnonzero(good)
            for order in group.orders():
                if not len(open_):
                    break
                open_ = open_[~group._fit_in(order, tile[open_])]
            good[open_] = False
        return good

    def _fit_in(self, order: Sequence[int], tile: Ints) -> NDArray[np.bool_]:
        _, extent = self.weights(order, tile)
        good = np.ones(len(tile), np.bool_)
        for axis, room in self.rooms:
            good &= extent[axis] <= room
        return good

    def fitting(self, tile: Sequence[int]) -> dict[tuple[int, int], int]:
        """Return new numbers for the levels, by axis and level, with which a tile fits."""
        row = np.array([tile], np.int64)
        found: dict[tuple[int, int], int] = {}
        for group in self.groups():
            order = next(o for o in group.orders() if group._fit_in(o, row).all())
            base = int(group.is_shifted and 0 not in order)
            number = {level: len(order) - 1 - n + base for n, level in enumerate(order)}
            found.update({(a, level): number[level] for a, level, _ in group.digits})
        return found

    def extents(self, tile: Sequence[int]) -> Iterator[dict[int, int]]:
        """Yield the extents of the axes, for each order of the levels of each group."""
        row = np.array([tile], np.int64)
        found: list[dict[int, int]] = [{}]
        for group in self.groups():
            own = [group.weights(order, row)[1] for order in group.orders()]
            numbers = [{a: int(e[0]) for a, e in extent.items()} for extent in own]
            found = [{**one, **other} for one in found for other in numbers]
        return iter(found)


@dataclass(frozen=True, slots=True)
class _View:
    """What must tell its levels apart: sums of positions, of which any two may be compared.

    ``low`` and ``high`` bound the part of each sum on the levels so far, ``shift`` is by how much
    constants may differ besides.
    """

    sums: tuple[dict[int, int], ...]
    shift: Ints
    low: tuple[Ints, ...] = ()
    high: tuple[Ints, ...] = ()

    def least(self, weight: Ints, here: dict[int, tuple[Ints, Ints]]) -> Ints:
        """Return a weight that is no less, and enough for the next level."""
        step = np.zeros_like(weight)
        for own in self.sums:
            for a in own.keys() & here.keys():
                step = np.gcd(step, abs(own[a]) * here[a][1])
        reach = self.shift
        if self.low:
            reach = reach + np.max(self.high, axis=0) - np.min(self.low, axis=0)
        least = -(-(1 + reach) // np.maximum(step, 1))
        return np.where(step > 0, np.maximum(weight, least), weight)

    def with_level(self, weight: Ints, here: dict[int, tuple[Ints, Ints]]) -> "_View":
        """Return the view with one more level."""
        none = (np.zeros_like(weight),) * len(self.sums)
        low, high = list(self.low or none), list(self.high or none)
        for n, own in enumerate(self.sums):
            for a in own.keys() & here.keys():
                part = weight * own[a] * here[a][0]
                low[n], high[n] = low[n] + np.minimum(part, 0), high[n] + np.maximum(part, 0)
        return replace(self, low=tuple(low), high=tuple(high))


def _span(form: Vector, tile: Ints) -> tuple[Ints, Ints]:
    """Return the range of a form over each tile, and the common step of its values."""
    factors = np.abs(np.array(form, np.int64))
    span = ((tile - 1) * factors).sum(axis=1)
    return span, np.gcd.reduce(np.where(tile > 1, factors, 0), axis=1)
