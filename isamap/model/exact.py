"""What moves under any order of loops and any tiles, exactly: no iteration is executed.

A loop's trips are all alike but the last one, whose range may be shorter; so the pieces of a nest
that differ are few, and each is counted once.
"""

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from isamap.model.footprint import Floats, counted
from isamap.model.nest import Machine, Nest, Operand
from isamap.model.traffic import held, pace

Loop = tuple[int, int]
"""A dimension and the range of one trip; outer loops come first."""


def transfers(operand: Operand, extents: Sequence[int], loops: Sequence[Loop]) -> tuple[int, int]:
    """Return the elements that are fetched, and the tiles, for loops around one held tile.

    The tile that is held stays until a trip needs another one.
    """

    @cache
    def amount(ranges: tuple[int, ...]) -> int:
        return prod(
            counted([c for _, c in group], [ranges[dim] for dim, _ in group])
            for group in operand.groups
        )

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


def judged(nest: Nest, machine: Machine, loops: Sequence[Loop]) -> tuple[float, ...]:
    """Return cycles of transfers under any loops around the innermost tile: those of results that
    come and go (``Memory.results``), then those of each memory.

    Each memory keeps what the most loops touch that fit it; the first one holds the innermost tile.
    What one keeps of the whole nest is in it from the last time, and nothing moves into it.  The
    order in which elements come, from wherever it is, is that of the first cache's tiles.
    """
    ranges = [list(nest.extents)]
    for dim, step in loops:
        ranges.append([min(step, r) if d == dim else r for d, r in enumerate(ranges[-1])])
    rooms = held(nest, [np.array(own, float) for own in zip(*ranges, strict=True)])
    depths = []
    for number, memory in enumerate(machine.memories):
        depth = len(loops)
        while (number or not machine.block) and depth and rooms[depth - 1] <= memory.capacity:
            depth -= 1
        depths.append(depth)
    found = [0.0] * len(depths)
    settling = 0.0
    for own in nest.operands:
        # Loops that go on where a tile ends make its stretches longer.
        ahead = depths[min(1, len(depths) - 1)]
        beside = {dim for dim, _ in own.rows[0][0]} if own.rows else set()
        while ahead and loops[ahead - 1][0] in beside:
            ahead -= 1
        near = _tile(ranges[ahead])
        moving = {depth: _moving(own, nest.extents, loops[:depth]) for depth in set(depths)}
        for number, depth in enumerate(depths):
            if number and not depth:
                continue
            taken = moving[depth] * float(np.sum(pace(own, machine, number, near)))
            if own.written and machine.memories[number].results is not None:
                settling += taken
            else:
                found[number] += taken
    return settling, *found


def _moving(operand: Operand, extents: Sequence[int], loops: Sequence[Loop]) -> int:
    """Return the elements that are fetched and brought back."""
    elements, _ = transfers(operand, extents, loops)
    if operand.written:
        elements += elements - transfers(operand, extents, ())[0]
    return elements


def _tile(ranges: Sequence[int]) -> list[Floats]:
    return [np.array([float(r)]) for r in ranges]
