"""The oracle where operands see sums of axes: every iteration of an instruction, one by one."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import TypeAlias

import numpy as np

from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.mapping.laws.positions import digits
from isamap.mapping.matching import Matching
from isamap.mapping.needles.needles import operand_accesses

Point: TypeAlias = dict[str, int]
Places: TypeAlias = Callable[[Point], Point]
"""Where an iteration of the kernel's tile is on each axis of the instruction."""


def places_of(matching: Matching, tile: Mapping[str, int]) -> Places:
    """Return where the mapping's own digits put an iteration."""
    on_axes = digits(matching, tile)

    def places(x: Point) -> Point:
        return {
            axis: sum((d.form.evaluate(x) - d.low) * d.weight for d in own)
            for axis, own in on_axes.items()
        }

    return places


def computes(
    matching: Matching,
    tile: Mapping[str, int],
    places: Places,
    rng: np.random.Generator,
    fill: Mapping[str, int | None],
) -> bool:
    """Return whether a sum of products over a tile comes out right.

    Elements that no iteration uses hold what ``fill`` says, or garbage.  False also where a place
    is outside the instruction, or one element would have to hold two.  Where the instruction reads
    an operand at several places that is tried in tiles beside the first one, too.
    """
    still = {v.name: 0 for v in matching.statement.variables}
    origins = [still]
    if matching.needle.places:
        steps = {
            v.name: tile.get(v.name, 1)
            for v in matching.statement.variables
            if (v.extent.constant or 0) > tile.get(v.name, 1)
        }
        origins += [{**still, name: step} for name, step in steps.items()]
    return all(_computes(matching, tile, places, rng, fill, origin) for origin in origins)


def _computes(
    matching: Matching,
    tile: Mapping[str, int],
    places: Places,
    rng: np.random.Generator,
    fill: Mapping[str, int | None],
    origin: Point,
) -> bool:
    needle, statement = matching.needle, matching.statement
    variables = [v.name for v in statement.variables]
    box = [range(tile.get(name, 1)) for name in variables]
    values: dict[tuple[str, tuple[int, ...]], int] = {}
    held: dict[str, dict[tuple[int, ...], int]] = {
        needle.owner(name): {} for name, _ in matching.operands
    }
    owners: dict[tuple[int, ...], tuple[int, ...]] = {}
    wanted: dict[tuple[int, ...], int] = {}
    read = operand_accesses(needle)
    for point in product(*box):
        x = dict(zip(variables, point, strict=True))
        y = places(x)
        if any(not 0 <= y[axis.name] < axis.extent for axis in needle.axes):
            return False
        y |= _pieces(matching, y)
        term = 1
        here = {name: value + origin[name] for name, value in x.items()}
        for name, expr in matching.operands:
            assert isinstance(expr, Access)
            cell = (expr.buffer, _at(expr.indices, here))
            value = values.setdefault(cell, int(rng.integers(1, 1 << 16)))
            register = held[needle.owner(name)]
            if register.setdefault(_at(read[name].indices, y), value) != value:
                return False
            term *= value
        target = _at(statement.target.indices, here)
        wanted[target] = wanted.get(target, 0) + term
        if owners.setdefault(target, own := _at(needle.target.indices, y)) != own:
            return False
    if len(set(owners.values())) < len(owners):
        return False
    got: dict[tuple[int, ...], int] = {}
    for position in product(*(range(axis.extent) for axis in needle.axes)):
        y = {axis.name: p for axis, p in zip(needle.axes, position, strict=True)}
        y |= _pieces(matching, y)
        term = 1
        for name, _ in matching.operands:
            filler = fill.get(name)
            other = 77_777 if filler is None else filler
            term *= held[needle.owner(name)].get(_at(read[name].indices, y), other)
        element = _at(needle.target.indices, y)
        got[element] = got.get(element, 0) + term
    return all(got[owners[target]] == value for target, value in wanted.items())


def _pieces(matching: Matching, y: Point) -> Point:
    found = {}
    for axis in matching.needle.axes:
        rest = y[axis.name]
        for name, extent in reversed(axis.parts):
            rest, found[name] = divmod(rest, extent)
    return found


def _at(indices: tuple[Index, ...], point: Point) -> tuple[int, ...]:
    return tuple(int(index.evaluate(point)) for index in indices)
