"""Execution of element copies."""

from collections.abc import Callable

import numpy as np

from isamap.interp.cells import Box, blocks
from isamap.interp.evaluate import Frame
from isamap.interp.rounding import Values
from isamap.lower.nodes import Copy
from isamap.sim.memory import Environment, LoweredFault, Memory, Number

_ROOM = 1 << 20
"""Points of a copy that are done at once."""


def compile_copy(node: Copy, memory: Memory) -> Callable[[Environment], None]:
    """Return the function that executes a copy: a few array operations."""
    target = memory.array(node.target)
    source = None if node.source is None else memory.array(node.source)
    if source is not None and source.dtype != target.dtype:
        raise LoweredFault(f"copy of {source.dtype} {source.name} to {target.dtype} {target.name}")
    if source is None and node.fill is None:
        raise LoweredFault(f"copy to {target.name} has neither a source nor a fill")
    fill = None if node.fill is None else memory.arithmetic.constant(node.fill)
    counts = [(name, memory.number(count)) for name, count in node.counters]
    to, come = memory.number(node.target_offset), memory.number(node.source_offset)
    conditions = [memory.number(condition) for condition in node.conditions]

    def copy(environment: Environment) -> None:
        box = tuple((name, 0, int(count(environment))) for name, count in counts)
        for piece in blocks(box, _ROOM):
            points = environment | dict(Frame(piece).values)
            addresses = _spread(to, points, piece)
            live = _live(conditions, points, piece)
            if node.source is None:
                assert fill is not None
                memory.write(node.target, addresses[live], fill, "copy")
                continue
            # Only live points have a source: elsewhere an index that is read may not exist.
            some = points if live.all() else environment | _chosen(piece, live)
            sources = np.broadcast_to(np.asarray(come(some), np.int64), _shape(piece, live))
            content = memory.read(node.source, sources.reshape(-1), "copy")
            memory.write(node.target, addresses[live], content, "copy")
            if fill is not None and not live.all():
                memory.write(node.target, addresses[~live], fill, "copy")

    return copy


def _chosen(box: Box, live: Values) -> dict[str, Values]:
    """Return the counters at the live points of a box, in order."""
    grids = np.broadcast_arrays(*(Frame(box).values[name] for name, _, _ in box))
    return {name: grid[live] for (name, _, _), grid in zip(box, grids, strict=True)}


def _shape(box: Box, live: Values) -> tuple[int, ...]:
    """Return the shape of what an expression gives at the live points of a box."""
    return tuple(n for _, _, n in box) if live.all() else (int(live.sum()),)


def _spread(number: Number, points: Environment, box: Box) -> Values:
    shape = tuple(count for _, _, count in box)
    return np.broadcast_to(np.asarray(number(points), np.int64), shape)


def _live(conditions: list[Number], points: Environment, box: Box) -> Values:
    live = np.ones(tuple(count for _, _, count in box), np.bool_)
    for condition in conditions:
        live &= np.asarray(condition(points)) >= 0
    return live
