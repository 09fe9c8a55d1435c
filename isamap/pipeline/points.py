"""Which output elements a sampled check looks at: corners, edges of tiles, tails, random ones."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from isamap.ir.index import Name
from isamap.ir.nodes import Kernel
from isamap.schedule.schedule import Schedule

RANDOM_POINTS = 4096
TAIL_POINTS = 8192
# Corners and edges of many dimensions multiply; beyond this many, a random choice of them.
_EDGE_POINTS = 8192


def sample_points(shape: Sequence[int], steps: Mapping[int, set[int]], seed: int) -> np.ndarray:
    """Return element indices of an output, one a row, each once, in order.

    ``steps`` are the extents of tiles and blocks by dimension.  Taken are all combinations of the
    dimensions' edges (the first and the last element, the last of the first tile, the first of the
    last one), the elements of partial tiles (all, or 8192 of them), and 4096 different random
    elements.
    """
    if not shape:
        return np.zeros((1, 0), np.int64)
    generator = np.random.default_rng(seed)
    edges = [_edges(size, steps.get(axis, {1})) for axis, size in enumerate(shape)]
    count = min(RANDOM_POINTS, prod(shape))
    random = generator.choice(prod(shape), count, replace=False, shuffle=False)
    points = np.concatenate(
        [_combined(edges, generator), *_tails(shape, steps, generator), _rows(random, shape)]
    )
    return np.unique(points, axis=0)


def _rows(flat: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.stack(np.unravel_index(flat, tuple(shape)), axis=1)


def tile_steps(kernel: Kernel, schedule: Schedule, buffer: str) -> dict[int, set[int]]:
    """Return, by dimension of an output, the extents of tiles and blocks of its variables."""
    steps: dict[int, set[int]] = {}
    for statement, scheduled in zip(kernel.statements, schedule.statements, strict=True):
        if statement.target.buffer != buffer:
            continue
        for axis, index in enumerate(statement.target.indices):
            for atom in index.atoms:
                if isinstance(atom, Name):
                    sizes = {lv.step for lv in scheduled.levels if lv.variable == atom.name}
                    tile = scheduled.mapping.tile.get(atom.name, 1)
                    steps.setdefault(axis, set()).update(sizes | {tile})
    return steps


def _combined(edges: Sequence[Sequence[int]], generator: np.random.Generator) -> np.ndarray:
    if prod(map(len, edges)) <= _EDGE_POINTS:
        return np.array(list(product(*edges)), np.int64)
    corners = np.array(list(product(*({e[0], e[-1]} for e in edges))), np.int64)
    drawn = [generator.choice(np.array(e), _EDGE_POINTS) for e in edges]
    return np.concatenate([corners, np.stack(drawn, axis=1)])


def _edges(size: int, steps: set[int]) -> list[int]:
    """Return the first and last element, and those beside the borders of the outer tiles."""
    found = {0, size - 1}
    for step in steps:
        begin = size - size % step
        found |= {step - 1, step, begin - 1, begin}
    return sorted(point for point in found if 0 <= point < size)


def _tails(
    shape: Sequence[int], steps: Mapping[int, set[int]], generator: np.random.Generator
) -> list[np.ndarray]:
    """Return the elements of partial tiles, dimension by dimension; of many, a random choice."""
    strips = []
    for axis, size in enumerate(shape):
        if rest := max((size % step for step in steps.get(axis, ())), default=0):
            strips.append((axis, rest))
    found = []
    for axis, rest in strips:
        box = [rest if other == axis else size for other, size in enumerate(shape)]
        room = TAIL_POINTS // len(strips)
        if prod(box) <= room:
            strip = np.stack([index.ravel() for index in np.indices(box)], axis=1)
        else:
            strip = np.stack([generator.integers(0, size, room) for size in box], axis=1)
        strip[:, axis] += shape[axis] - rest
        found.append(strip)
    return found
