"""How many elements a tile reaches, exactly, for many tiles at once.

An index group is a linear form ``a*i + b*j + ...`` over dimensions of the nest; a tile gives each
dimension a range.  With two dimensions, ranges m and n, and A, B the coefficients over their common
divisor, ``m*n - max(0, m - B) * max(0, n - A)`` values are different (``i`` and ``j`` that lead to
the same value differ by multiples of B and A).  With more, the values are enumerated once for each
combination of ranges.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def distinct(coefficients: Sequence[int], ranges: Sequence[Floats]) -> Floats:
    """Return the number of different values of a form over tiles; one array a dimension."""
    assert all(coefficients)
    if len(ranges) == 1:
        return ranges[0]
    if len(ranges) == 2:
        (m, n), (a, b) = ranges, _reduced(coefficients)
        return np.asarray(m * n - np.maximum(0, m - b) * np.maximum(0, n - a))
    columns = np.broadcast_arrays(*ranges)
    table = [
        enumerated(tuple(coefficients), tuple(map(int, row))) for row in zip(*columns, strict=True)
    ]
    return np.array(table, float)


def counted(coefficients: Sequence[int], ranges: Sequence[int]) -> int:
    """Return :func:`distinct` of one tile, as an exact integer."""
    if len(ranges) == 1:
        return ranges[0]
    if len(ranges) == 2:
        (m, n), (a, b) = ranges, _reduced(coefficients)
        return m * n - max(0, m - b) * max(0, n - a)
    return enumerated(tuple(coefficients), tuple(ranges))


def summed(coefficients: Sequence[int], extents: Sequence[int], tiles: Sequence[Floats]) -> Floats:
    """Return the sum of :func:`distinct` over all tiles of a box, the partial ones too.

    One number where it is the same for all.
    """
    if len(tiles) == 1:
        return np.asarray(extents[0], tiles[0].dtype)
    if len(tiles) == 2:
        a, b = _reduced(coefficients)
        rest = _beyond(extents[0], tiles[0], b) * _beyond(extents[1], tiles[1], a)
        return np.asarray(extents[0] * extents[1] - rest)
    total = np.zeros(np.shape(tiles[0]))
    split = [_split(extent, tile) for extent, tile in zip(extents, tiles, strict=True)]
    for last in product((False, True), repeat=len(tiles)):
        counts, ranges = np.ones(np.shape(tiles[0])), []
        for is_last, (whole, rest), tile in zip(last, split, tiles, strict=True):
            counts = counts * (rest > 0 if is_last else whole)
            ranges.append(np.where(rest > 0, rest, 1.0) if is_last else tile)
        total += counts * distinct(coefficients, ranges)
    return total


def _split(extent: int, tile: Floats) -> tuple[Floats, Floats]:
    """Return how many whole tiles a dimension has, and what is left."""
    # Exact: a quotient that is no integer is farther from one than rounding goes.
    whole = np.floor(extent / tile)
    return whole, extent - whole * tile


def _beyond(extent: int, tile: Floats, shift: int) -> Floats:
    """Return the sum over a dimension's tiles of what is left of each beyond ``shift``."""
    whole, rest = _split(extent, tile)
    return np.asarray(whole * np.maximum(0, tile - shift) + np.maximum(0, rest - shift))


def _reduced(coefficients: Sequence[int]) -> tuple[int, int]:
    a, b = map(abs, coefficients)
    return a // gcd(a, b), b // gcd(a, b)


@cache
def enumerated(coefficients: tuple[int, ...], ranges: tuple[int, ...]) -> int:
    """Return the number of different values of a form, by taking them all if they have gaps."""
    parts = sorted((abs(c), n) for c, n in zip(coefficients, ranges, strict=True) if n > 1)
    step = parts[0][0] if parts else 1
    reach = 0
    for coefficient, count in parts:
        if coefficient % step or coefficient > reach + step:
            break
        reach += coefficient * (count - 1)
    else:
        return reach // step + 1
    values = np.zeros(1, np.int64)
    for coefficient, count in zip(coefficients, ranges, strict=True):
        values = np.unique(values[:, None] + coefficient * np.arange(count)[None, :])
    return len(values)
