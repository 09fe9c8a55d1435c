"""The checker: is a matching legal?  By the laws' linear form, and by their meaning on a tile.

The two share no code: :func:`violations` ranks vectors, :func:`legal_on_tile` goes through every
iteration of the instruction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from isamap.ir.index import Index
from isamap.ir.nodes import Access, Literal, Permissions
from isamap.mapping.filler import legal_family
from isamap.mapping.killing import killing_families
from isamap.mapping.laws import Breach, breaches
from isamap.mapping.matching import Matching
from isamap.mapping.needles import operand_accesses
from isamap.mapping.problem import Problem, problem
from isamap.mapping.rows import as_form, read_indices

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a matching breaks, told in the kernel's names.

    ``law`` is 1 to 4; 0 where a placement is none at all or the kernel forbids it.
    """

    law: int
    message: str


def violations(
    matching: Matching,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> tuple[Violation, ...]:
    """Return the laws that a matching breaks; none if it is legal for every tile that fits."""
    whole = problem(matching.statement, matching.needle, matching.operands, permissions)
    if legal_family(whole, matching) is not None:
        return ()
    placed = whole.placed(matching.placements)
    if placed is None:
        return (Violation(0, "something is placed that is no form of this statement"),)
    family = whole.families[0]
    found = [_told(whole, matching, breach) for breach in breaches(whole.local(family), placed)]
    if not whole.is_open(family):
        found.append(
            Violation(4, "an axis of the instruction cannot be padded: no constant keeps it silent")
        )
    return tuple(dict.fromkeys(found))


def _told(whole: Problem, matching: Matching, breach: Breach) -> Violation:
    form = as_form(breach.vector, whole.variables)
    name = whole.operands[breach.operand]
    target = matching.statement.target.buffer
    match breach.law:
        case 0:
            return Violation(0, f"{form} may not be reordered: the kernel forbids reassociation")
        case 1:
            return Violation(1, f"operand {name} would need different elements for each {form}")
        case 2:
            return Violation(2, f"elements of {target} would be spread over places of {name}")
        case 4:
            return Violation(4, f"padding repeats iterations: no single operand sees {form}")
        case _:
            return Violation(4, "padding repeats iterations: no single operand ties the digits")


# --- on a tile ----------------------------------------------------------------------------------
def legal_on_tile(
    matching: Matching,
    tile: Mapping[str, int],
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> bool:
    """Return whether the four laws hold at one tile, by their meaning as statements about sets.

    Goes through all iterations of the tile and of the instruction, so both must be small.  A tile
    that does not fit the axes is not legal.
    """
    box = {name: tile.get(name, 1) for name in matching.inner}
    images = list(_images(matching, box))
    if any(image is None for _, image in images):
        return False
    pairs = [(x, z) for x, z in images if z is not None]
    needle = matching.needle
    operands = {name: operand_accesses(needle)[name] for name, _ in matching.operands}
    kernel = {
        name: _elements(read_indices(expr), (x for x, _ in pairs))
        for name, expr in matching.operands
    }
    owner = _elements(matching.statement.target.indices, (x for x, _ in pairs))
    names = [axis.name for axis in needle.axes]
    places = {
        name: _places(access, names, (z for _, z in pairs)) for name, access in operands.items()
    }
    written = _places(needle.target, names, (z for _, z in pairs))
    if not all(_is_function(places[name], kernel[name]) for name in places):
        return False
    if not _is_function(written, owner) or not _is_function(owner, written):
        return False
    image = {z for _, z in pairs}
    if len(image) != len(pairs):
        return False
    strays = [z for z in product(*(range(axis.extent) for axis in needle.axes)) if z not in image]
    owned = set(written)
    live = [
        z
        for z, place in zip(strays, _places(needle.target, names, strays), strict=True)
        if place in owned
    ]
    unused = {
        name: [p not in set(places[name]) for p in _places(access, names, live)]
        for name, access in operands.items()
    }
    return any(_silent(sets, unused, len(live)) for sets in _killing(matching, permissions))


def _silent(
    sets: Sequence[frozenset[str]], unused: Mapping[str, Sequence[bool]], count: int
) -> bool:
    return all(
        any(all(unused[name][n] for name in killing) for killing in sets) for n in range(count)
    )


def _killing(matching: Matching, permissions: Permissions) -> Iterator[tuple[frozenset[str], ...]]:
    """Yield the families of killing sets that constants in unused elements can give."""
    fixed = tuple((n, e) for n, e in matching.operands if isinstance(e, Literal))
    free = tuple(n for n, e in matching.operands if not isinstance(e, Literal))
    needle = matching.needle
    for family in killing_families(needle.value, needle.reduction, free, fixed, permissions.finite):
        yield family.sets


def _images(
    matching: Matching, tile: Mapping[str, int]
) -> Iterator[tuple[dict[str, int], Point | None]]:
    """Yield each iteration of the tile with the instruction's iteration, None if outside."""
    layout = [
        (axis.extent, [_digit(form, tile) for form in matching.on_axis(axis.name)])
        for axis in matching.needle.axes
    ]
    for values in product(*(range(extent) for extent in tile.values())):
        x = dict(zip(tile, values, strict=True))
        z: list[int] = []
        fits = True
        for extent, digits in layout:
            position = 0
            for form, low, divisor, reach in digits:
                position = position * reach + (form.evaluate(x) - low) // divisor
            fits = fits and position < extent and prod(d[3] for d in digits) <= extent
            z.append(position)
        yield x, tuple(z) if fits else None


def _digit(form: Index, tile: Mapping[str, int]) -> tuple[Index, int, int, int]:
    """Return a form, its least value over the tile, its step and how many steps it takes."""
    low = high = 0
    steps = []
    for name in form.names:
        factor = form.coefficient(name).constant
        assert factor is not None
        if tile[name] > 1:
            steps.append(factor)
            low += min(0, factor * (tile[name] - 1))
            high += max(0, factor * (tile[name] - 1))
    divisor = gcd(*steps) or 1
    return form, low, divisor, (high - low) // divisor + 1


def _elements(indices: Sequence[Index], points: Iterable[Mapping[str, int]]) -> list[Point]:
    """Return the element that each iteration reaches; outer variables and sizes stand still."""
    names = sorted(frozenset().union(*(index.names for index in indices)))
    still = dict.fromkeys(names, 0)
    return [
        tuple(
            index.evaluate({**still, **x}, lambda _buffer, where: sum(where)) for index in indices
        )
        for x in points
    ]


def _places(access: Access, axes: Sequence[str], points: Iterable[Point]) -> list[Point]:
    return _elements(access.indices, (dict(zip(axes, z, strict=True)) for z in points))


def _is_function(keys: Sequence[Point], values: Sequence[Point]) -> bool:
    """Return whether equal keys always have equal values."""
    seen: dict[Point, Point] = {}
    return all(seen.setdefault(k, v) == v for k, v in zip(keys, values, strict=True))
