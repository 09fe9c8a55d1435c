"""The checker: is a matching legal?  By the laws' linear form, and by their meaning on a tile.

The two share no code: :func:`violations` ranks vectors, :func:`legal_on_tile` goes through every
iteration of the instruction.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isamap.ir.index import Index
from isamap.ir.nodes import Literal, Permissions
from isamap.ir.statements import accesses, read_indices
from isamap.mapping import functional
from isamap.mapping.composite import layout_of
from isamap.mapping.filler import legal_filling
from isamap.mapping.groups import whole_variables
from isamap.mapping.killing import best_fillings
from isamap.mapping.laws import Breach, breaches
from isamap.mapping.matching import Axis, Matching
from isamap.mapping.needles import operand_accesses
from isamap.mapping.positions import digits, sums
from isamap.mapping.positions import extent as extent_of
from isamap.mapping.problem import Local, Problem, problem
from isamap.mapping.rows import as_form

Ints: TypeAlias = NDArray[np.int64]


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
    outer = whole_variables(matching.statement) - set(matching.inner)
    if outer:
        text = f"what comes after the reduction over {min(outer)} needs all of it at once"
        return (Violation(3, text),)
    if legal_filling(whole, matching) is not None:
        return ()
    filling = whole.fillings[0]
    broken = _breaches(whole, matching, whole.local(filling))
    if broken is None:
        return (Violation(0, "something is placed that is no form of this statement"),)
    found = [_told(whole, matching, breach) for breach in broken]
    if not whole.is_open(filling):
        found.append(
            Violation(4, "an axis of the instruction cannot be padded: no constant keeps it silent")
        )
    return tuple(dict.fromkeys(found))


def _breaches(whole: Problem, matching: Matching, local: Local) -> tuple[Breach, ...] | None:
    if whole.seen:
        layout = layout_of(whole, matching.placements)
        if layout is None:
            return None
        return tuple(Breach(*found) for found in functional.breaches(local, layout))
    placed = whole.placed(matching.placements)
    return None if placed is None else tuple(breaches(local, placed))


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
    tile: Dict[str, int],
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
    *,
    split: bool = False,
) -> bool:
    """Return whether the four laws hold at one tile, by their meaning as statements about sets.

    Goes through all iterations of the tile and of the instruction, so both must be small.  A tile
    that does not fit the axes is not legal.  That a repeated product would do no harm in a
    reduction such as ``max=`` is not made use of.  With ``split`` law 2 is left out: an element of
    the result may be spread over several places, whose contents are combined afterwards.
    """
    needle = matching.needle
    names = matching.inner
    extents = {v.name: v.extent.constant for v in matching.statement.variables}
    if any(tile.get(v, 1) != extents[v] for v in whole_variables(matching.statement)):
        return False
    x = _grid(names, [tile.get(name, 1) for name in names])
    image = _image(matching, {name: tile.get(name, 1) for name in names}, x)
    if image is None:
        return False
    axes = tuple(axis.name for axis in needle.axes)
    z = _pieces(needle.axes, _grid(axes, [axis.extent for axis in needle.axes]))
    read = operand_accesses(needle)
    # Operand 0 is the target.
    places = [_elements(needle.target.indices, z)]
    places += [_elements(read[name].indices, z) for name, _ in matching.operands]
    kernel = [_elements(matching.statement.target.indices, x)]
    kernel += [_elements(read_indices(expr), x) for _, expr in matching.operands]
    used = [place[image] for place in places]
    if not all(_is_function(u, k) for u, k in zip(used, kernel, strict=True)):
        return False
    if len(np.unique(image)) != len(image):
        return False
    if not split and not _is_function(kernel[0], used[0]):
        return False
    strays = np.isin(places[0], used[0])
    strays[image] = False
    unused = {
        name: ~np.isin(places[n][strays], used[n])
        for n, (name, _) in enumerate(matching.operands, 1)
    }
    return any(_silent(sets, unused, int(strays.sum())) for sets in _killing(matching, permissions))


def _silent(
    sets: tuple[frozenset[str], ...], unused: Dict[str, NDArray[np.bool_]], count: int
) -> bool:
    """Return whether every stray meets unused elements in all operands of some killing set."""
    killed = np.zeros(count, np.bool_)
    for operands in sets:
        killed |= np.logical_and.reduce([unused[name] for name in operands])
    return bool(killed.all())


def _killing(matching: Matching, permissions: Permissions) -> Iterator[tuple[frozenset[str], ...]]:
    """Yield the killing sets of each choice of constants in unused elements."""
    reduction, body = matching.needle.repeated
    # An operand that only what follows a reduction reads cannot keep the reduction silent.
    read = {access.buffer for access in accesses(body)}
    fed = [(n, e) for n, e in matching.fed if n in read]
    fixed = tuple((n, e) for n, e in fed if isinstance(e, Literal))
    free = tuple(n for n, e in fed if not isinstance(e, Literal))
    for filling in best_fillings(body, reduction, free, fixed, permissions.finite):
        yield filling.sets


def _grid(names: Sequence[str], extents: Sequence[int]) -> dict[str, Ints]:
    """Return the coordinates of all points of a box, one flat array for each name."""
    if not names:
        return {"": np.zeros(1, np.int64)}  # A box without dimensions has one point.
    points = np.indices(tuple(extents)).reshape(len(extents), -1)
    return dict(zip(names, points, strict=True))


def _pieces(axes: Sequence[Axis], z: Dict[str, Ints]) -> dict[str, Ints]:
    """Return the coordinates of points for each variable of the instruction."""
    found = dict(z)
    for axis in axes:
        inside = 1
        for name, extent in reversed(axis.parts):
            found[name] = z[axis.name] // inside % extent
            inside *= extent
    return found


def _image(matching: Matching, tile: Dict[str, int], x: Dict[str, Ints]) -> Ints | None:
    """Return the flat iteration of the instruction for each iteration of the tile."""
    total = np.zeros_like(next(iter(x.values())))
    if sums(matching.needle) or any(axis.parts for axis in matching.needle.axes):
        for axis in matching.needle.axes:
            own = digits(matching, tile)[axis.name]
            if extent_of(own) > axis.extent:
                return None
            total = total * axis.extent
            for digit in own:
                total = total + (digit.form.evaluate(x) - digit.low) * digit.weight
        return total
    for axis in matching.needle.axes:
        position = np.zeros_like(total)
        taken = 1
        for form in matching.on_axis(axis.name):
            low, divisor, reach = _range(form, tile)
            position = position * reach + (form.evaluate(x) - low) // divisor
            taken *= reach
        if taken > axis.extent:
            return None
        total = total * axis.extent + position
    return total


def _range(form: Index, tile: Dict[str, int]) -> tuple[int, int, int]:
    """Return a form's least value over the tile, its step and how many steps it takes."""
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
    return low, divisor, (high - low) // divisor + 1


def _elements(indices: Sequence[Index], points: Dict[str, Ints]) -> Ints:
    """Return a number for the element that each point reaches; other names stand still."""
    names = frozenset().union(*(index.names for index in indices))
    first = next(iter(points.values()))
    still = {name: np.zeros_like(first) for name in names}

    def read(_buffer: str, where: tuple[Ints, ...]) -> Ints:
        return sum(where, np.zeros_like(first))

    number = np.zeros_like(first)
    for index in indices:
        column = np.broadcast_to(index.evaluate({**still, **points}, read), first.shape)
        low, high = int(column.min()), int(column.max())
        number = number * (high - low + 1) + (column - low)
    return number


def _is_function(keys: Ints, values: Ints) -> bool:
    """Return whether equal keys always have equal values."""
    pairs = np.unique(np.stack([keys, values]), axis=1)
    return bool(len(np.unique(keys)) == pairs.shape[1])
