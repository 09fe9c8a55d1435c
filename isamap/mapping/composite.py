"""Layouts of placements on axes that operands see only in sums: levels and factors.

Which digits step together, and with which factors, is not part of a placement's (form, axis) pairs;
it is what makes them legal.  The solver proposes the pairs by what is necessary under any layout;
here layouts are tried, each decided by :mod:`isamap.mapping.functional`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, permutations, product
from typing import TypeAlias

from isamap.ir.nodes import Permissions
from isamap.mapping.functional import Laid, Layout, is_legal_layout, summed
from isamap.mapping.linear import Vector, dependencies, primitive
from isamap.mapping.matching import Matching, Placement
from isamap.mapping.padded import SumRoom
from isamap.mapping.positions import sums
from isamap.mapping.problem import Local, Problem, problem
from isamap.mapping.room import axis_extent
from isamap.mapping.rows import row
from isamap.mapping.seen import Seen

Placed: TypeAlias = frozenset[tuple[int, int]]

MOST_DIGITS = 6
"""Digits of one component on axes of sums for which ways to step together are tried."""

MOST_PERMUTED = 3
"""Digits on a merged axis of which all orders are tried."""

MOST_LAYOUTS = 16
"""Layouts of one matching, up to the order of levels, that tiles are sought for."""


def layout_of(whole: Problem, placements: Sequence[Placement]) -> Layout | None:
    """Return placements as a layout; None if one is outside the form set."""
    numbers = {form: n for n, form in enumerate(whole.forms)}
    found = set()
    for placement in placements:
        vector = row(placement.form, whole.variables)
        form = numbers.get(primitive(vector))
        if form is None or placement.axis not in whole.axes:
            return None
        lead = next(v for v, c in enumerate(vector) if c)
        factor = vector[lead] // whole.forms[form][lead]
        if placement.form != whole.indices[form] * factor:
            return None
        found.add(Laid(form, whole.axes.index(placement.axis), factor, placement.level))
    return frozenset(found)


def placements_of(whole: Problem, layout: Layout) -> tuple[Placement, ...]:
    """Return a layout as placements, by axis, outermost first."""
    ordered = sorted(layout, key=lambda d: (d.axis, -d.level, d.form))
    return tuple(
        Placement(whole.indices[d.form] * d.factor, whole.axes[d.axis], d.level) for d in ordered
    )


def lay_out(whole: Problem, problems: Iterable[Local], placed: Placed) -> tuple[Placement, ...]:
    """Return legal (form, axis) pairs as placements, in the simplest layout that is legal.

    ``problems`` are the laws' data for each choice of constants under which they may be legal.
    """
    if not whole.seen:
        return whole.placements(placed)
    for local in problems:
        if (layout := first_layout(local, placed)) is not None:
            return placements_of(whole, layout)
    raise AssertionError("the placements are legal")


def is_roomier(local: Local, one: Placed, other: Placed) -> bool:
    """Return whether ``one`` needs at least the room of ``other`` on every axis.

    Compared are all tiles of extents 2, 3 and 5, each in the layouts and orders of levels that suit
    it.
    """
    support = sorted({v for f, _ in one for v, c in enumerate(local.forms[f]) if c})
    for extents in product((2, 3, 5), repeat=len(support)):
        tile = [1] * local.size
        for v, extent in zip(support, extents, strict=True):
            tile[v] = extent
        rooms = _rooms(local, other, tuple(tile))
        for mine in _rooms(local, one, tuple(tile)):
            if not any(all(x <= y for x, y in zip(r, mine, strict=True)) for r in rooms):
                return False
    return True


@lru_cache(maxsize=65_536)
def _rooms(local: Local, placed: Placed, tile: Vector) -> tuple[Vector, ...]:
    """Return the extents of all axes that layouts of placements need for a tile."""
    mixed = summed(local)
    totals = tuple(dict.fromkeys(total for own in local.seen for total in own.sums))
    found: dict[Vector, None] = {}
    for layout in layouts(local, placed):
        free = [
            axis_extent([local.forms[d.form] for d in layout if d.axis == a], tile)
            for a in range(local.axes)
        ]
        digits = tuple(
            (d.axis, d.level, tuple(d.factor * c for c in local.forms[d.form]))
            for d in sorted(layout, key=lambda d: (d.axis, -d.level, d.form))
            if d.axis in mixed
        )
        for reach in SumRoom(totals, digits, ()).extents(tile):
            found.setdefault(tuple(reach.get(a, free[a]) for a in range(local.axes)))
    return tuple(found)


def arrangements(matching: Matching, permissions: Permissions) -> tuple[Matching, ...]:
    """Return a matching in each way to lay its digits out that tiles should be sought for.

    On axes that occur in sums these are the legal layouts; on merged axes the orders of the digits,
    if there are no more than three.
    """
    needle = matching.needle
    if sums(needle):
        whole = problem(matching.statement, needle, matching.operands, permissions)
        layout = layout_of(whole, matching.placements)
        assert layout is not None
        placed = frozenset((d.form, d.axis) for d in layout)
        for filling in whole.fillings:
            if whole.is_open(filling) and (found := layouts(whole.local(filling), placed)):
                return tuple(replace(matching, placements=placements_of(whole, o)) for o in found)
        return (matching,)
    on_axes = []
    for axis in needle.axes:
        own = tuple(p for p in matching.placements if p.axis == axis.name)
        free = axis.parts and len(own) <= MOST_PERMUTED
        on_axes.append(tuple(permutations(own)) if free else (own,))
    return tuple(
        replace(matching, placements=tuple(chain(*choice))) for choice in product(*on_axes)
    )


def has_layout(local: Local, placed: Placed) -> bool:
    """Return whether some layout of placements is legal."""
    return first_layout(local, placed) is not None


def first_layout(local: Local, placed: Placed) -> Layout | None:
    """Return the legal layout that needs least room, by few levels and small factors."""
    return next(iter(layouts(local, placed)), None)


@lru_cache(maxsize=65_536)
def layouts(local: Local, placed: Placed) -> tuple[Layout, ...]:
    """Return legal layouts of placements, the simplest first, at most :data:`MOST_LAYOUTS`.

    Components of variables have levels of their own, those of the first one outermost; a tile may
    need another order (:mod:`isamap.mapping.padded`).  For each component the layouts with fewest
    levels are taken and, if these need factors, also those without.
    """
    components = _components(local, placed)
    parts = [best for part in components if (best := _best(local, part))]
    if len(parts) < len(components):
        return ()
    mixed = summed(local)
    return tuple(_stacked(choice, mixed) for choice in islice(product(*parts), MOST_LAYOUTS))


def finest_layout(local: Local, placed: Placed) -> Layout:
    """Return the layout in which no two digits step together: operands see each by itself."""
    return frozenset(Laid(f, a, 1, n) for n, (a, f) in enumerate(sorted((a, f) for f, a in placed)))


def _components(local: Local, placed: Placed) -> list[Placed]:
    """Split placements by the components of their variables, outermost first."""
    group = list(range(local.size))
    for vector in (r for rows in local.rows for r in rows):
        used = {group[v] for v, c in enumerate(vector) if c}
        group = [min(used) if g in used else g for g in group]

    def of(form: int) -> int:
        return min(group[v] for v, c in enumerate(local.forms[form]) if c)

    return [
        frozenset((f, a) for f, a in placed if of(f) == name)
        for name in sorted({of(f) for f, _ in placed})
    ]


def _stacked(choice: Sequence[Layout], mixed: frozenset[int]) -> Layout:
    """Return the layouts of components as one, the first one's levels outermost."""
    found: set[Laid] = set()
    base = 0
    for part in reversed(choice):
        for d in part:
            found.add(Laid(d.form, d.axis, d.factor, d.level + base if d.axis in mixed else 0))
        base += 1 + max((d.level for d in part if d.axis in mixed), default=-1)
    return frozenset(found)


@lru_cache(maxsize=65_536)
def _best(local: Local, placed: Placed) -> tuple[Layout, ...]:
    """Return the legal layouts of one component that are worth a look, the simplest first."""
    mixed = summed(local)
    on_sums = sorted((a, f) for f, a in placed if a in mixed)
    rest = frozenset(Laid(f, a) for f, a in placed if a not in mixed)
    if not on_sums:
        return (rest,) if is_legal_layout(local, rest) else ()
    legal: list[tuple[tuple[int, int], Layout]] = []
    for levels in _partitions(on_sums):
        for factors in product(*(_factors(local, placed, level) for level in levels)):
            layout = rest | {
                Laid(f, a, factor, len(levels) - 1 - n)
                for n, (level, own) in enumerate(zip(levels, factors, strict=True))
                for (a, f), factor in zip(level, own, strict=True)
            }
            size = max(abs(factor) for own in factors for factor in own)
            if is_legal_layout(local, layout):
                legal.append(((len(levels), size), layout))
    if not legal:
        return ()
    ranked = sorted(legal, key=lambda item: (item[0], _canonical(item[1])))
    least = ranked[0]
    plain = next((item for item in ranked if item[0][1] == 1), least)
    return tuple(dict.fromkeys((least[1], plain[1])))


def _canonical(layout: Layout) -> list[tuple[int, int, int, int]]:
    return sorted((d.axis, -d.level, d.form, -d.factor) for d in layout)


Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""(axis, form) pairs."""


def _partitions(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[Pairs, ...]]:
    """Yield the ways to put digits on levels, no two of an axis on one; the finest if too many."""
    if len(pairs) > MOST_DIGITS:
        yield tuple((pair,) for pair in pairs)
        return
    if not pairs:
        yield ()
        return
    first, rest = pairs[0], pairs[1:]
    for levels in _partitions(rest):
        yield ((first,), *levels)
        for n, level in enumerate(levels):
            if all(axis != first[0] for axis, _ in level):
                yield (*levels[:n], (first, *level), *levels[n + 1 :])


def _factors(local: Local, placed: Placed, level: Pairs) -> tuple[Vector, ...]:
    """Return factors for the digits of a level that are worth a try, the first one positive.

    Worth a try are those with which a sum that some operand sees becomes one of its rows.
    """
    if len(level) == 1:
        return ((1,),)
    inner = [any(local.forms[f][v] for f, _ in placed) for v in range(local.size)]
    choices: list[dict[int, None]] = [{1: None} for _ in level]
    for own, rows in zip(local.seen, local.rows, strict=True):
        for r in rows:
            cut = tuple(c if keep else 0 for c, keep in zip(r, inner, strict=True))
            for solution in _solutions(local, level, own, cut):
                for choice, factor in zip(choices, solution, strict=True):
                    if factor:
                        choice.setdefault(factor)
                        choice.setdefault(-factor)
    found: dict[Vector, None] = {}
    for factors in product(*choices):
        reduced = primitive(factors)
        found.setdefault(reduced)
    return tuple(found)


def _solutions(local: Local, level: Pairs, own: Seen, wanted: Vector) -> Iterator[Vector]:
    """Yield factors (0: any) with which a sum of an operand is a multiple of a row."""
    for total in own.sums:
        used = [n for n, (a, _) in enumerate(level) if total[a]]
        vectors = [tuple(total[level[n][0]] * c for c in local.forms[level[n][1]]) for n in used]
        for dependency in dependencies([*vectors, tuple(-c for c in wanted)]):
            if dependency[-1] and all(dependency[:-1]):
                factors = [0] * len(level)
                for n, factor in zip(used, primitive(dependency[:-1]), strict=True):
                    factors[n] = factor
                yield tuple(factors)
