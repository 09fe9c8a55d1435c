"""Layouts of placements on axes that operands see only in sums: levels and factors.

Which digits step together, and with which factors, is not part of a placement's (form, axis) pairs;
it is what makes them legal.  The solver proposes the pairs by what is necessary under any layout;
here layouts are tried, each decided by :mod:`isamap.mapping.laws.functional`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, permutations, product
from typing import TypeAlias

from isamap.ir.nodes import Permissions
from isamap.mapping.axes.linear import Vector, primitive
from isamap.mapping.axes.padded import Joint, SumRoom
from isamap.mapping.axes.room import axis_extent
from isamap.mapping.axes.rows import row
from isamap.mapping.laws.factors import Pairs, scaled
from isamap.mapping.laws.factors import factors as factors_of
from isamap.mapping.laws.functional import Laid, Layout, is_legal_layout, summed
from isamap.mapping.laws.places import groups_of, part_of
from isamap.mapping.laws.positions import levelled
from isamap.mapping.laws.problem import Local, Problem, problem
from isamap.mapping.matching import Matching, Placement

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
    shared = local_joints(local)
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
        for reach in SumRoom(totals, digits, (), shared).extents(tile):
            found.setdefault(tuple(reach.get(a, free[a]) for a in range(local.axes)))
    return tuple(found)


def local_joints(local: Local) -> tuple[Joint, ...]:
    """Return the dimensions of operands that are read at several places."""
    found = []
    for register in local.registers:
        for dim in zip(*(place.dims for place in register.places), strict=True):
            joint = Joint(dim, owned=False)
            found.append(replace(joint, owned=joint.axes <= local.owning))
    return tuple(found)


def arrangements(matching: Matching, permissions: Permissions) -> tuple[Matching, ...]:
    """Return a matching in each way to lay its digits out that tiles should be sought for.

    On axes with levels these are the legal layouts; on merged axes the orders of the digits,
    if there are no more than three.
    """
    needle = matching.needle
    if levelled(needle):
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
    need another order (:mod:`isamap.mapping.axes.padded`).  For each component the layouts with
    fewest levels are taken and, if these need factors, also those without.
    """
    components = _components(local, placed)
    parts = [best for part in components if (best := _best(_alone(local, part), part))]
    if len(parts) < len(components):
        return ()
    mixed = summed(local)
    found = (_stacked(choice, mixed, _is_shifted(local)) for choice in product(*parts))
    if local.registers:  # Variables that are not placed have a say in these.
        found = (layout for layout in found if is_legal_layout(local, layout))
    return tuple(islice(found, MOST_LAYOUTS))


def _alone(local: Local, placed: Placed) -> Local:
    """Return the problem with those rows of registers that a component has a part in."""
    if not local.registers:
        return local
    used = {v for f, _ in placed for v, c in enumerate(local.forms[f]) if c}
    group = groups_of(local.size, (r for rows in local.rows for r in rows), local.registers)
    own = [v for v in range(local.size) if group[v] in {group[u] for u in used}]
    return replace(local, registers=tuple(part_of(r, own) for r in local.registers))


def finest_layout(local: Local, placed: Placed) -> Layout:
    """Return the layout in which no two digits step together: operands see each by itself."""
    first = int(_is_shifted(local))
    pairs = sorted((a, f) for f, a in placed)
    return frozenset(Laid(f, a, 1, n) for n, (a, f) in enumerate(pairs, first))


def _components(local: Local, placed: Placed) -> list[Placed]:
    """Split placements by the components of their variables, outermost first."""
    group = groups_of(local.size, (r for rows in local.rows for r in rows), local.registers)

    def of(form: int) -> int:
        return min(group[v] for v, c in enumerate(local.forms[form]) if c)

    return [
        frozenset((f, a) for f, a in placed if of(f) == name)
        for name in sorted({of(f) for f, _ in placed})
    ]


def _stacked(choice: Sequence[Layout], mixed: frozenset[int], shifted: bool) -> Layout:
    """Return the layouts of components as one, the first one's levels outermost.

    Where places are ``shifted`` level 0 stays what it is.
    """
    found: set[Laid] = set()
    base = 0
    for part in reversed(choice):
        for d in part:
            level = 0 if d.axis not in mixed or (shifted and d.level == 0) else d.level + base
            found.add(Laid(d.form, d.axis, d.factor, level))
        highest = max((d.level for d in part if d.axis in mixed), default=int(shifted) - 1)
        base += highest + 1 - int(shifted)
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
    for base, levels in product(_bases(local), _partitions(on_sums)):
        last = len(levels) - 1
        choices = [
            scaled(local, placed, level)
            if n == last and base == 0 and _is_shifted(local)
            else factors_of(local, placed, level)
            for n, level in enumerate(levels)
        ]
        for factors in product(*choices):
            layout = rest | {
                Laid(f, a, factor, last - n + base)
                for n, (level, own) in enumerate(zip(levels, factors, strict=True))
                for (a, f), factor in zip(level, own, strict=True)
            }
            size = max(abs(factor) for own in factors for factor in own)
            if is_legal_layout(local, layout):
                legal.append(((len(levels) + base, size), layout))
    if not legal:
        return ()
    ranked = sorted(legal, key=lambda item: (item[0], _canonical(item[1])))
    least = ranked[0]
    plain = next((item for item in ranked if item[0][1] == 1), least)
    return tuple(dict.fromkeys((least[1], plain[1])))


def _is_shifted(local: Local) -> bool:
    return any(register.is_shifted for register in local.registers)


def _bases(local: Local) -> tuple[int, ...]:
    """Return the levels on which the digits of a component may begin.

    Level 0 holds the constants of places, if there are any: digits may step with them if they are
    of the operand's own variables, or lie outside.
    """
    shifted = [register.joint for register in local.registers if register.is_shifted]
    return (0,) if not shifted else (0, 1) if any(shifted) else (1,)


def _canonical(layout: Layout) -> list[tuple[int, int, int, int]]:
    return sorted((d.axis, -d.level, d.form, -d.factor) for d in layout)


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
