"""What moves into each memory under a chain of tiles, for many chains at once.

A chain has a tile for each memory, innermost first; each divides the next, and the last need not
divide the extents nor end where they do.  Loops between two tiles come in classes: one operand is
*stationary*, the loops that it does not depend on being innermost.  A tile is held until another
one of its operand is needed.

With T the tile at a memory, U the one outside it and S the sum of an operand's footprints over all
tiles T, what moves is S times a number M of refetches.  From the outside in,

- M is that of U where T and U are the same in all dimensions of the operand: its loops here have a
  single trip, and whatever stayed put outside stays put;
- the number of tiles U over the operand's other dimensions, if it is stationary here;
- the number of tiles T over its other dimensions, otherwise.

Exact where the tiles divide the extents; where they do not, at most too much: see
:mod:`isamap.model.exact`.  Results are written M times and read back M - 1 times.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from isamap.model.footprint import Floats, distinct, summed
from isamap.model.nest import Machine, Nest, Operand

Tile = Sequence[Floats]
"""An array for each dimension: a batch of tiles."""


def footprint(operand: Operand, tile: Tile) -> Floats:
    """Return the elements of an operand that tiles touch."""
    parts = (distinct([c for _, c in g], [tile[d] for d, _ in g]) for g in operand.groups)
    return _product(parts, tile)


def all_tiles(operand: Operand, extents: Sequence[int], tile: Tile) -> Floats:
    """Return the sum of an operand's footprints over all tiles of the nest."""
    parts = (
        summed([c for _, c in g], [extents[d] for d, _ in g], [tile[d] for d, _ in g])
        for g in operand.groups
    )
    return _product(parts, tile)


def refetches(operand: Operand, extents: Sequence[int], tile: Tile) -> Floats:
    """Return how many tiles there are over the dimensions that an operand does not depend on."""
    dims = [dim for dim in range(len(extents)) if dim not in operand.dims]
    return _product((np.ceil(extents[dim] / tile[dim]) for dim in dims), tile)


def _product(parts: Iterable[Floats], tile: Tile) -> Floats:
    total: Floats | None = None
    for part in parts:
        total = part if total is None else total * part
    if total is None:
        return np.ones_like(tile[0])
    if np.shape(total) == np.shape(tile[0]):
        return total
    return np.asarray(np.broadcast_to(total, np.shape(tile[0])))


def held(nest: Nest, tile: Tile) -> Floats:
    """Return the bytes of one tile of every operand."""
    inside = tile
    if nest.whole != nest.extents:
        inside = [np.minimum(own, extent) for own, extent in zip(tile, nest.extents, strict=True)]
    return np.asarray(sum(own.bytes * footprint(own, inside) for own in nest.operands))


def stretch(operand: Operand, tile: Tile) -> Floats:
    """Return how many elements of a tile lie side by side in memory, holes of strides included."""
    length, whole = np.ones_like(tile[0]), np.ones(np.shape(tile[0]), bool)
    for number, (group, extent) in enumerate(operand.rows):
        reach: Floats | float = 1.0
        for dim, coefficient in group:
            reach = reach + (tile[dim] - 1) * abs(coefficient)
        here = np.minimum(reach, extent)
        length = length * (np.where(whole, here, 1) if number else here)
        whole &= np.greater_equal(reach, extent)
        if not whole.any():
            break
    return length


def pace(operand: Operand, machine: Machine, level: int, tile: Tile) -> Floats:
    """Return the cycles that each element of tiles takes that moves into a memory.

    One number where it is the same for all.
    """
    memory = machine.memories[level]
    if operand.written and memory.results is not None:
        return np.asarray(operand.bytes / memory.results, tile[0].dtype)
    each = np.asarray(operand.bytes / memory.bandwidth * machine.exposed, tile[0].dtype)
    if memory.start and operand.rows:
        return np.asarray(each + memory.start * machine.exposed / stretch(operand, tile))
    return each


def moved(operand: Operand, sums: Floats, times: Floats) -> Floats:
    """Return the elements that move, given the sum of footprints and the refetches."""
    return sums * (2 * times - 1) if operand.written else sums * times


def cycles(
    nest: Nest, machine: Machine, tiles: Sequence[Tile], classes: Sequence[NDArray[np.int64]]
) -> Floats:
    """Return the cycles of chains: computing, and what is exposed of each memory's transfers, one
    after the other.

    ``tiles[l][d]`` are the ranges of dimension d in memory l; ``classes[l]`` numbers the operand
    that is stationary between memory l and the next.  Infinite where a tile does not fit.  Ranges
    may be of type float32, which is enough to rank: it is exact up to 2**24 only.
    """
    first = tiles[0][0]
    total = np.full_like(first, prod(map(float, nest.extents)) / machine.rate)
    outer: Tile = [np.full_like(first, extent) for extent in nest.whole]
    counts = [np.ones_like(first) for _ in nest.operands]
    times = list(counts)
    for level in reversed(range(len(machine.memories))):
        memory, tile = machine.memories[level], tiles[level]
        same = [own == other for own, other in zip(tile, outer, strict=True)]
        trips = [np.ceil(extent / own) for extent, own in zip(nest.extents, tile, strict=True)]
        for number, own in enumerate(nest.operands):
            here = _product((trips[d] for d in range(len(trips)) if d not in own.dims), tile)
            changed = np.where(classes[level] == number, counts[number], here)
            stays = reduce(np.logical_and, (same[dim] for dim in own.dims))
            times[number] = np.where(stays, times[number], changed)
            counts[number] = here
            sums = all_tiles(own, nest.extents, tile) * pace(own, machine, level, tile)
            total += moved(own, sums, times[number])
        total[held(nest, tile) > memory.capacity] = np.inf
        outer = tile
    return total


def bound(nest: Nest, machine: Machine) -> float:
    """Return cycles that no chain undercuts: computing, and everything moved once everywhere."""
    whole = [np.array([float(extent)]) for extent in nest.extents]
    moving = sum(
        float(np.sum(footprint(own, whole) * pace(own, machine, level, whole)))
        for level in range(len(machine.memories))
        for own in nest.operands
    )
    iterations = float(np.prod([float(extent) for extent in nest.extents]))
    return iterations / machine.rate + moving
