"""What moves under any order of loops and any tiles, exactly: no iteration is executed.

A loop's trips are all alike but the last one, whose range may be shorter; so the pieces of a nest
that differ are few, and each is counted once.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from isamap.model.nest import Operand
from isamap.model.traffic import footprint

Loop = tuple[int, int]
"""A dimension and the range of one trip; outer loops come first."""


def transfers(operand: Operand, extents: Sequence[int], loops: Sequence[Loop]) -> tuple[int, int]:
    """Return the elements that are fetched, and the tiles, for loops around one held tile.

    The tile that is held stays until a trip needs another one.
    """

    @cache
    def amount(ranges: tuple[int, ...]) -> int:
        return int(footprint(operand, [np.array([float(r)]) for r in ranges])[0])

    @cache
    def count(at: int, ranges: tuple[int, ...]) -> tuple[int, int]:
        """Return elements and tiles fetched by loops ``at`` and further in, nothing being held."""
        if at == len(loops):
            return amount(ranges), 1
        dim, step = loops[at]
        full, rest = divmod(ranges[dim], step)
        pieces = [(full, step)] * (full > 0) + [(1, rest)] * (rest > 0)
        elements = tiles = 0
        for times, size in pieces:
            inner = count(at + 1, (*ranges[:dim], size, *ranges[dim + 1 :]))
            if dim not in operand.dims and inner[1] == 1:
                # One tile, the same in every trip: it stays, also into the last trip.
                return inner
            elements += times * inner[0]
            tiles += times * inner[1]
        return elements, tiles

    return count(0, tuple(extents))
