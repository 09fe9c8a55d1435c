"""Extents of the inner variables: the few tiles of a matching that are worth a look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, islice, product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isamap.mapping.axes.linear import Vector
from isamap.mapping.axes.padded import SumRoom
from isamap.mapping.axes.rows import row
from isamap.mapping.groups import whole_variables
from isamap.mapping.laws.positions import levelled, sum_room
from isamap.mapping.matching import Axis, Mapping, Matching
from isamap.mapping.needles.demands import axis_rooms
from isamap.mapping.tiles.shared import wholly_shared

MOST_TILES = 8
"""Tiles of one matching that are returned unless more are asked for."""

MOST_CANDIDATES = 4096
"""Combinations of extents that are looked at for variables that share axes."""

MOST_EXTENTS = 12
"""Extents that are tried for one variable."""

MOST_CUTS = 8
"""Ways to give the parts of merged axes digits of their own that are tried."""

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Variables that share axes: the forms on each of these, its room, the variables' extents.

    ``whole`` says of each variable whether its tile must be its extent, ``grows`` whether extents
    are made as large as fits: not where an instruction demands more of them.  ``sums`` is the room
    on axes of which operands see sums, if there are any.
    """

    forms: tuple[tuple[Vector, ...], ...]
    rooms: tuple[int, ...]
    extents: tuple[int | None, ...]
    whole: tuple[bool, ...]
    grows: bool
    sums: SumRoom | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A tile, the iterations that it does on average, and how many forms share an axis."""

    tile: tuple[int, ...]
    done: float
    shared: int

    @property
    def order(self) -> tuple[float, int, tuple[int, ...]]:
        """Best first; among equals those long in the later variables, which lie closer together."""
        return -self.done, self.shared, tuple(-t for t in reversed(self.tile))


def tiles(
    matching: Matching, limit: int = MOST_TILES, candidates: int = MOST_CANDIDATES
) -> tuple[Mapping, ...]:
    """Return the best tiles of a matching by utilisation, at most ``limit``, best first.

    Half of the places are kept for tiles in which each axis serves one form only: they read memory
    in the simplest way.  Where several extents take the same number of steps the largest that fits
    is chosen, so that only the last tile is short.  A symbolic extent counts as large: its tail is
    neglected.  ``candidates`` combinations of extents are looked at for variables that share axes.
    A reduction within the value is done whole, and so are variables in which places of one operand
    differ; there is no tile where these do not fit.
    """
    inner = matching.inner
    whole = whole_variables(matching.statement) | wholly_shared(matching)
    if not whole <= set(inner):
        return ()
    known = {v.name: v.extent.constant for v in matching.statement.variables}
    axes = [axis for axis in matching.needle.axes if axis.extent > 1]
    forms = [[row(form, inner) for form in matching.on_axis(axis.name)] for axis in axes]
    sums = sum_room(matching) if levelled(matching.needle) else None
    found: dict[tuple[int, ...], Choice] = {}
    entry = matching.needle.entry
    bounds = axis_rooms(entry, {axis.name: axis.extent for axis in axes})
    bounded = [replace(axis, extent=bounds[axis.name]) for axis in axes]
    variables = [(known[v], v in whole) for v in inner]
    for on_axes, rooms in _on_parts(bounded, forms):
        for choice in _choices(
            on_axes, rooms, sums, variables, not entry.constraints, limit, candidates
        ):
            if choice.tile not in found or choice.order < found[choice.tile].order:
                found[choice.tile] = choice
    spent = prod(axis.extent for axis in axes)
    result = []
    for choice in _select(list(found.values()), limit):
        tile = dict(zip(inner, choice.tile, strict=True))
        fitting = matching if sums is None else _ordered(matching, sums, choice.tile)
        result.append(Mapping(fitting, tile, choice.done / spent))
    return tuple(result)


def _choices(
    forms: Sequence[Sequence[Vector]],
    rooms: Sequence[int],
    sums: SumRoom | None,
    known: Sequence[tuple[int | None, bool]],
    grows: bool,
    limit: int,
    candidates: int,
) -> Iterator[Choice]:
    """Yield tiles for forms on axes; of each variable its extent is known, and if it is whole."""
    size = len(known)
    extents, whole = [extent for extent, _ in known], [whole for _, whole in known]
    linked = list(forms)
    if sums is not None:
        linked.append([form for _, _, form in sums.digits])
    groups = _groups(linked, size)
    parts = []
    for variables in groups:
        own = [a for a, fs in enumerate(forms) if any(f[v] for f in fs for v in variables)]

        def cut(form: Vector, variables: tuple[int, ...] = variables) -> Vector:
            return tuple(form[v] for v in variables)

        part = None
        if sums is not None:
            digits = tuple((a, at, cut(f)) for a, at, f in sums.digits if any(cut(f)))
            part = replace(sums, digits=digits) if digits else None
        # Neither the order of axes, nor that of forms, nor a sign changes what fits.
        on_axes = sorted(
            (tuple(sorted(tuple(map(abs, cut(f))) for f in forms[a])), rooms[a]) for a in own
        )
        group = Group(
            tuple(forms for forms, _ in on_axes),
            tuple(room for _, room in on_axes),
            tuple(extents[v] for v in variables),
            tuple(whole[v] for v in variables),
            grows,
            part,
        )
        parts.append(best_choices(group, limit, candidates))
    order = [v for variables in groups for v in variables]
    for choices in product(*parts):
        extent = dict(zip(order, (t for c in choices for t in c.tile), strict=True))
        yield Choice(
            tuple(extent[v] for v in range(size)),
            prod(c.done for c in choices),
            sum(c.shared for c in choices),
        )


def _on_parts(
    axes: Sequence[Axis], forms: Sequence[Sequence[Vector]]
) -> Iterator[tuple[list[Sequence[Vector]], list[int]]]:
    """Yield the forms on each axis with its room; then with each part of merged axes by itself."""
    yield list(forms), [axis.extent for axis in axes]
    ways = []
    for axis, own in zip(axes, forms, strict=True):
        if not axis.parts or len(own) < 2:
            ways.append([[(own, axis.extent)]])
            continue
        cuts = combinations_with_replacement(range(len(own) + 1), len(axis.parts) - 1)
        ways.append(
            [
                [(own[a:b], extent) for a, b, (_, extent) in zip(
                    (0, *cut), (*cut, len(own)), axis.parts, strict=True)]
                for cut in cuts
            ]
        )  # fmt: skip
    if any(len(way) > 1 for way in ways):
        for chosen in islice(product(*ways), MOST_CUTS):
            pairs = [pair for own in chosen for pair in own]
            yield [on_part for on_part, _ in pairs], [room for _, room in pairs]


def _ordered(matching: Matching, room: SumRoom, tile: Sequence[int]) -> Matching:
    """Return a matching with its levels in an order in which the tile fits."""
    levels = room.fitting(tile)
    numbers = {axis.name: n for n, axis in enumerate(matching.needle.axes)}
    placements = [
        replace(p, level=levels.get((numbers[p.axis], p.level), 0)) for p in matching.placements
    ]
    placements.sort(key=lambda p: (numbers[p.axis], -p.level))
    return replace(matching, placements=tuple(placements))


def _groups(forms: Sequence[Sequence[Vector]], size: int) -> list[tuple[int, ...]]:
    """Return the variables that share axes, directly or through others."""
    group = list(range(size))
    for axis in forms:
        used = {group[v] for form in axis for v, c in enumerate(form) if c}
        group = [min(used) if g in used else g for g in group]
    return [tuple(v for v, g in enumerate(group) if g == name) for name in sorted(set(group))]


def _select(choices: Sequence[Choice], limit: int) -> tuple[Choice, ...]:
    """Return the best choices; from the second half on, the best ones without shared axes first."""
    ranked = sorted(choices, key=lambda c: c.order)
    chosen = ranked[: max(1, limit // 2)]
    rest = ranked[len(chosen) :]
    chosen += [c for c in rest if not c.shared][: limit - len(chosen)]
    chosen += [c for c in rest if c.shared][: limit - len(chosen)]
    return tuple(sorted(chosen, key=lambda c: c.order))


@lru_cache(maxsize=8192)
def best_choices(group: Group, limit: int, candidates: int = MOST_CANDIDATES) -> tuple[Choice, ...]:
    """Return the best tiles of variables that share axes."""
    tried = _fitting(group, candidates)
    if not len(tried):
        return ()
    grown = _grown(group, tried)
    grown = _distinct(grown if group.grows else np.concatenate([tried, grown]))
    done = np.ones(len(grown))
    for v, extent in enumerate(group.extents):
        column = grown[:, v]
        done *= column if extent is None else extent / -(-extent // column)
    shared = np.zeros(len(grown), np.int64)
    for forms in group.forms:
        moving = sum(
            ((grown > 1) & (np.array(form) != 0)).any(axis=1).astype(np.int64) for form in forms
        )
        shared += np.maximum(0, moving - 1)
    # Only the best need objects; enough of them for both halves of the choice.
    best = np.lexsort((shared, -done))
    kept = {*best[: 4 * limit].tolist(), *best[shared[best] == 0][: 4 * limit].tolist()}
    choices = [
        Choice(tuple(grown[n].tolist()), round(float(done[n]), 9), int(shared[n])) for n in kept
    ]
    return _select(choices, limit)


def _distinct(tile: Ints) -> Ints:
    """Return the rows without repetitions, the smallest first."""
    if not tile.shape[1]:
        return tile[:1]
    key = np.zeros(len(tile), np.int64)
    for v in range(tile.shape[1]):
        key = key * (int(tile[:, v].max()) + 1) + tile[:, v]
    return tile[np.unique(key, return_index=True)[1]]


def _fits(group: Group, tile: Ints, variable: int) -> NDArray[np.bool_]:
    """Return which rows of ``tile`` leave no axis too short on which ``variable`` is."""
    good = np.ones(len(tile), np.bool_)
    for forms, room in zip(group.forms, group.rooms, strict=True):
        if any(form[variable] for form in forms):
            good &= _taken(forms, tile) <= room
    if group.sums is not None and good.any():
        good[good] = group.sums.fits(tile[good])
    return good


def _taken(forms: tuple[Vector, ...], tile: Ints) -> Ints:
    """Return the positions that forms take on an axis, a number for each row of ``tile``."""
    taken = np.ones(len(tile), np.int64)
    for form in forms:
        moving = [v for v, c in enumerate(form) if c]
        if len(moving) == 1:
            taken *= tile[:, moving[0]]
            continue
        factors = np.abs(np.array(form)[moving])
        steps = tile[:, moving] - 1
        common = np.gcd.reduce(np.where(steps > 0, factors, 0), axis=1)
        taken *= 1 + (steps * factors).sum(axis=1) // np.maximum(common, 1)
    return taken


def _fitting(group: Group, candidates: int) -> Ints:
    """Return the tiles that fit among those with sensible extents, a row for each."""
    size = len(group.extents)
    most = MOST_EXTENTS if size <= 3 else MOST_EXTENTS // 2
    found = np.ones((1, size), np.int64)
    for v in reversed(range(size)):
        tried = np.array(_candidates(group, v, most), np.int64)
        longer = np.repeat(found, len(tried), axis=0)
        longer[:, v] = np.tile(tried, len(found))
        found = longer[_fits(group, longer, v)][:candidates]
        if not len(found):
            break
    return found


def _room(group: Group, variable: int) -> int:
    """Return the largest extent of a variable that could fit."""
    rooms = [
        room
        for forms, room in zip(group.forms, group.rooms, strict=True)
        if any(form[variable] for form in forms)
    ]
    extent = group.extents[variable]
    return min(rooms) if extent is None else min(*rooms, extent)


def _candidates(group: Group, variable: int, most: int) -> tuple[int, ...]:
    """Return extents to try, from the largest down, 1 included.

    They are the powers of two and the extents that need fewest iterations for their number of
    steps; if those are too many, the ones that leave no tail come first.
    """
    extent, top = group.extents[variable], _room(group, variable)
    if group.whole[variable]:
        return (extent,) if extent is not None and extent <= top else ()
    tried = [top, 1, *(1 << n for n in range(1, top.bit_length()))]
    if extent is None:
        tried.append(top // 3)
    else:
        steps = dict.fromkeys(-(-extent // t) for t in range(1, top + 1))
        least = [-(-extent // n) for n in steps]
        tried += sorted(least, key=lambda t: (extent % t != 0, -t))
    kept = tuple(dict.fromkeys(t for t in tried if 1 <= t <= top))[:most]
    return tuple(sorted(kept, reverse=True))


def _grown(group: Group, tile: Ints) -> Ints:
    """Return the tiles with each extent above 1 as large as fits, the last variable's first."""
    current = tile.copy()
    for v in reversed(range(current.shape[1])):
        low = current[:, v].copy()
        high = np.where(low > 1, _room(group, v), 1)
        own = [n for n, forms in enumerate(group.forms) if any(form[v] for form in forms)]
        alone = (sum(map(bool, form)) == 1 for n in own for form in group.forms[n] if form[v])
        if group.sums is None and all(alone):
            # A variable alone in its form, which is on an axis once, has what the others leave.
            for n in own:
                high = np.minimum(high, group.rooms[n] // (_taken(group.forms[n], current) // low))
            current[:, v] = high
            continue
        while (low < high).any():
            middle = (low + high + 1) // 2
            current[:, v] = middle
            good = _fits(group, current, v)
            low = np.where(good, middle, low)
            high = np.where(good, high, middle - 1)
        current[:, v] = low
    return current
