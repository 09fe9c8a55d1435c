"""The checker on a tile: the laws by their meaning, iteration by iteration.

It shares no code with :func:`isamap.mapping.checks.legal.violations`, which ranks vectors.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isamap.ir.index import Index
from isamap.ir.nodes import Literal, Permissions
from isamap.ir.statements import accesses, read_indices
from isamap.mapping.groups import whole_variables
from isamap.mapping.laws.killing import best_fillings
from isamap.mapping.laws.places import skeleton
from isamap.mapping.laws.positions import digits, levelled
from isamap.mapping.laws.positions import extent as extent_of
from isamap.mapping.matching import Axis, Matching
from isamap.mapping.needles.needles import operand_accesses

Ints: TypeAlias = NDArray[np.int64]


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
    the result may be spread over several places, whose contents are combined afterwards.  Law 5 is
    looked at in the first tile, in those that are next to it along one variable, and in one that
    is next to it along all.
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
    shared = _shared(matching)
    for group in shared:
        numbered = _alike([read[matching.operands[n - 1][0]].indices for n in group], z)
        for n, numbers in zip(group, numbered, strict=True):
            places[n] = numbers
    used = [place[image] for place in places]
    if not all(_is_function(u, k) for u, k in zip(used, kernel, strict=True)):
        return False
    if not all(_agree(matching, group, used, tile, x) for group in shared):
        return False
    if len(np.unique(image)) != len(image):
        return False
    if not split and not _is_function(kernel[0], used[0]):
        return False
    strays = np.isin(places[0], used[0])
    strays[image] = False
    in_use = list(used)
    for group in shared:
        for n in group:
            in_use[n] = np.concatenate([used[m] for m in group])
    unused = {
        name: ~np.isin(places[n][strays], in_use[n])
        for n, (name, _) in enumerate(matching.operands, 1)
    }
    return any(_silent(sets, unused, int(strays.sum())) for sets in _killing(matching, permissions))


def _shared(matching: Matching) -> list[list[int]]:
    """Return the numbers of places that are one operand, for each that has several."""
    needle = matching.needle
    owners: dict[str, list[int]] = {}
    for n, (name, _) in enumerate(matching.operands, 1):
        if needle.operand(name).contents is None:
            owners.setdefault(needle.owner(name), []).append(n)
    return [group for group in owners.values() if len(group) > 1]


def _alike(places: Sequence[Sequence[Index]], points: Dict[str, Ints]) -> list[Ints]:
    """Return numbers for elements that are equal exactly if their indices are, at all places."""
    columns = [_columns(indices, points) for indices in places]
    _, numbers = np.unique(np.concatenate(columns, axis=1), axis=1, return_inverse=True)
    cuts = np.cumsum([column.shape[1] for column in columns])[:-1]
    return np.split(numbers.reshape(-1), cuts)


def _agree(
    matching: Matching,
    group: list[int],
    used: Sequence[Ints],
    tile: Dict[str, int],
    x: Dict[str, Ints],
) -> bool:
    """Return whether no element of a register would have to hold two of the kernel's."""
    exprs = [matching.operands[n - 1][1] for n in group]
    kinds = [skeleton(expr) for expr in exprs]
    width = 1 + max(len(read_indices(expr)) for expr in exprs)
    keys = np.concatenate([used[n] for n in group])
    still = np.zeros_like(next(iter(x.values())))
    for origin in _origins(matching, tile):
        here = {**x, **{name: x.get(name, still) + first for name, first in origin.items()}}
        rows = np.zeros((width, 0), np.int64)
        for expr, kind in zip(exprs, kinds, strict=True):
            own = np.zeros((width, len(still)), np.int64)
            own[0] = kinds.index(kind)
            own[1 : 1 + len(read_indices(expr))] = _columns(read_indices(expr), here)
            rows = np.concatenate([rows, own], axis=1)
        _, values = np.unique(rows, axis=1, return_inverse=True)
        if not _is_function(keys, values.reshape(-1)):
            return False
    return True


def _origins(matching: Matching, tile: Dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield the first iterations of some tiles."""
    variables = matching.statement.variables
    still = {v.name: 0 for v in variables}
    steps = {
        v.name: tile.get(v.name, 1)
        for v in variables
        if v.extent.constant is None or v.extent.constant > tile.get(v.name, 1)
    }
    yield still
    for name, step in steps.items():
        yield {**still, name: step}
    yield {**still, **steps}


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
    shared = matching.needle.places
    for filling in best_fillings(body, reduction, free, fixed, permissions.finite, shared=shared):
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
    if levelled(matching.needle) or any(axis.parts for axis in matching.needle.axes):
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
    number = np.zeros_like(next(iter(points.values())))
    for column in _columns(indices, points):
        low, high = int(column.min()), int(column.max())
        number = number * (high - low + 1) + (column - low)
    return number


def _columns(indices: Sequence[Index], points: Dict[str, Ints]) -> Ints:
    """Return the value of each index at each point, a row for each; other names stand still."""
    names = frozenset().union(*(index.names for index in indices))
    first = next(iter(points.values()))
    still = {name: np.zeros_like(first) for name in names}

    def read(_buffer: str, where: tuple[Ints, ...]) -> Ints:
        return sum(where, np.zeros_like(first))

    found = [np.broadcast_to(i.evaluate({**still, **points}, read), first.shape) for i in indices]
    return np.array(found, np.int64).reshape(len(found), len(first))


def _is_function(keys: Ints, values: Ints) -> bool:
    """Return whether equal keys always have equal values."""
    pairs = np.unique(np.stack([keys, values]), axis=1)
    return bool(len(np.unique(keys)) == pairs.shape[1])
