"""Extents of the inner variables: the few tiles of a matching that are worth a look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from math import prod

from isamap.mapping.linear import Vector
from isamap.mapping.matching import Mapping, Matching
from isamap.mapping.room import axis_extent
from isamap.mapping.rows import row

MOST_TILES = 8
"""Tiles of one matching that are returned unless more are asked for."""

MOST_CANDIDATES = 2048
"""Combinations of extents that are looked at for variables that share axes."""

MOST_EXTENTS = 12
"""Extents that are tried for one variable."""


def tiles(matching: Matching, limit: int = MOST_TILES) -> tuple[Mapping, ...]:
    """Return the best tiles of a matching by utilisation, at most ``limit``, best first.

    Half of the places are kept for tiles in which each axis serves one form only: they read memory
    in the simplest way.  Where several extents take the same number of steps the largest that fits
    is chosen, so that only the last tile is short.  A symbolic extent counts as large: its tail is
    neglected.
    """
    inner = matching.inner
    extents = {v.name: v.extent.constant for v in matching.statement.variables}
    axes = [axis for axis in matching.needle.axes if axis.extent > 1]
    box = _Box(
        tuple(tuple(row(form, inner) for form in matching.on_axis(axis.name)) for axis in axes),
        tuple(axis.extent for axis in axes),
        tuple(extents[name] for name in inner),
    )
    spent = prod(box.rooms)
    return tuple(
        Mapping(matching, dict(zip(inner, choice.tile, strict=True)), choice.done / spent)
        for choice in _best(box, limit)
    )


@dataclass(frozen=True, slots=True)
class _Box:
    """Forms on each axis, the room of each axis, and the extents of the variables."""

    forms: tuple[tuple[Vector, ...], ...]
    rooms: tuple[int, ...]
    extents: tuple[int | None, ...]

    def fits(self, tile: Sequence[int], axes: Sequence[int]) -> bool:
        return all(axis_extent(self.forms[a], tile) <= self.rooms[a] for a in axes)

    def axes_of(self, variable: int) -> frozenset[int]:
        return frozenset(
            a for a, forms in enumerate(self.forms) if any(form[variable] for form in forms)
        )


@dataclass(frozen=True, slots=True)
class _Choice:
    """A tile, the iterations that it does on average, and how many forms share an axis."""

    tile: tuple[int, ...]
    done: float
    shared: int

    @property
    def order(self) -> tuple[float, int, tuple[int, ...]]:
        """Best first; among equals those long in the later variables, which lie closer together."""
        return -self.done, self.shared, tuple(-t for t in reversed(self.tile))


@lru_cache(maxsize=4096)
def _best(box: _Box, limit: int) -> tuple[_Choice, ...]:
    """Combine the best choices for each group of variables that share axes."""
    parts = [_group_choices(box, variables, limit) for variables in _groups(box)]
    whole = []
    for choices in islice(product(*parts), MOST_CANDIDATES):
        tile = tuple(max(ts) for ts in zip(*(c.tile for c in choices), strict=True))
        whole.append(_Choice(tile, prod(c.done for c in choices), sum(c.shared for c in choices)))
    return _select(whole, limit)


def _select(choices: Sequence[_Choice], limit: int) -> tuple[_Choice, ...]:
    """Return the best choices; from the second half on, the best ones without shared axes first."""
    ranked = sorted(choices, key=lambda c: c.order)
    chosen = ranked[: max(1, limit // 2)]
    chosen += [c for c in ranked if c not in chosen and not c.shared][: limit - len(chosen)]
    chosen += [c for c in ranked if c not in chosen][: limit - len(chosen)]
    return tuple(sorted(chosen, key=lambda c: c.order))


def _groups(box: _Box) -> tuple[tuple[int, ...], ...]:
    """Return the variables that share axes, directly or through others."""
    group = list(range(len(box.extents)))
    for forms in box.forms:
        used = {group[v] for form in forms for v, c in enumerate(form) if c}
        group = [min(used) if g in used else g for g in group]
    return tuple(
        tuple(v for v, g in enumerate(group) if g == name) for name in sorted(set(group))
    ) or ((),)


def _group_choices(box: _Box, variables: tuple[int, ...], limit: int) -> tuple[_Choice, ...]:
    axes = sorted(frozenset().union(*(box.axes_of(v) for v in variables)))
    found: dict[tuple[int, ...], _Choice] = {}
    for tile in islice(_fitting(box, variables, axes), MOST_CANDIDATES):
        grown = _grown(box, tile, variables)
        if grown not in found:
            found[grown] = _choice(box, grown, variables, axes)
    return _select(tuple(found.values()), limit)


def _fitting(
    box: _Box, variables: tuple[int, ...], axes: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Yield the tiles that fit among those with sensible extents of ``variables``."""
    most = MOST_EXTENTS if len(variables) <= 3 else MOST_EXTENTS // 2
    tried = {v: _candidates(box, v, most) for v in variables}

    def extend(tile: tuple[int, ...], left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if not left:
            yield tile
            return
        v = left[-1]
        for t in tried[v]:
            longer = (*tile[:v], t, *tile[v + 1 :])
            if box.fits(longer, axes):
                yield from extend(longer, left[:-1])

    yield from extend((1,) * len(box.extents), variables)


def _candidates(box: _Box, variable: int, most: int) -> tuple[int, ...]:
    """Return extents to try, from the largest down, 1 included.

    They are the powers of two and the extents that need fewest iterations for their number of
    steps; if those are too many, the ones that leave no tail come first.
    """
    extent = box.extents[variable]
    room = min((box.rooms[a] for a in box.axes_of(variable)), default=1)
    top = room if extent is None else min(room, extent)
    tried = [top, 1, *(1 << n for n in range(1, top.bit_length()))]
    if extent is None:
        tried.append(top // 3)
    else:
        steps = dict.fromkeys(-(-extent // t) for t in range(1, top + 1))
        least = [-(-extent // n) for n in steps]
        tried += sorted(least, key=lambda t: (extent % t != 0, -t))
    kept = tuple(dict.fromkeys(t for t in tried if 1 <= t <= top))[:most]
    return tuple(sorted(kept, reverse=True))


def _grown(box: _Box, tile: tuple[int, ...], variables: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tile with each extent above 1 as large as fits."""
    current = list(tile)
    for v in reversed(variables):
        if current[v] == 1:
            continue
        axes = sorted(box.axes_of(v))
        extent = box.extents[v]
        low, high = current[v], min(box.rooms[a] for a in axes)
        high = high if extent is None else min(high, extent)
        while low < high:
            middle = (low + high + 1) // 2
            current[v] = middle
            if box.fits(current, axes):
                low = middle
            else:
                high = middle - 1
        current[v] = low
    return tuple(current)


def _choice(
    box: _Box, tile: tuple[int, ...], variables: tuple[int, ...], axes: Sequence[int]
) -> _Choice:
    done = 1.0
    for v in variables:
        extent = box.extents[v]
        done *= tile[v] if extent is None else extent / -(-extent // tile[v])
    shared = 0
    for a in axes:
        moving = sum(
            any(c and t > 1 for c, t in zip(form, tile, strict=True)) for form in box.forms[a]
        )
        shared += max(0, moving - 1)
    return _Choice(tile, done, shared)
