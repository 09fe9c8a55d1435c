"""A mapping in the numbers that rules for schedules ask for."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from isamap.ir.nodes import Access
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.shared import brought
from isamap.schedule.schedule import Level
from isamap.schedule.treatment import inputs, numeric

ASSUMED_EXTENT = 1009
"""What a symbolic extent is taken for when a block is chosen: large, and a multiple of nothing."""

_APART = 64
"""Bits by which the offsets of one index are kept apart from those of the next one."""

Steps: TypeAlias = tuple[tuple[frozenset[str], tuple[tuple[str, int], ...]], ...]
"""How an access moves: for each index its variables, and how far an iteration of each goes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A mapping with the numbers that a block is chosen by.

    ``reads`` has for each operand how its accesses move, the variables that do it, and how many
    accesses are alike in that.
    """

    mapping: Mapping
    extents: Dict[str, int]
    tile: Dict[str, int]
    outputs: tuple[str, ...]
    reductions: tuple[str, ...]
    frozen: frozenset[str]
    reads: Dict[str, tuple[tuple[Steps, frozenset[str], int], ...]]
    places: dict[tuple[Steps, tuple[tuple[str, int], ...]], int] = field(default_factory=dict)


def read_shape(mapping: Mapping) -> Shape:
    """Return the numbers of a mapping; symbols are taken for :data:`ASSUMED_EXTENT`."""
    statement = mapping.matching.statement
    names = [v.name for v in statement.variables]
    extents = {v.name: numeric(v.extent, ASSUMED_EXTENT) for v in statement.variables}
    used = statement.target.names
    alone: set[str] = set()
    for index in statement.target.indices:
        own = index.names & extents.keys()
        if len(own) == 1 and index.is_linear_in(own):
            alone |= own
    return Shape(
        mapping,
        extents,
        {v: mapping.tile.get(v, 1) for v in names},
        tuple(v for v in names if v in used),
        tuple(v for v in names if v not in used),
        frozenset(v for v in names if v in used and v not in alone),
        {operand: _reads(mapping, operand) for operand, _ in brought(mapping.matching)},
    )


def is_symbolic(shape: Shape, variable: str) -> bool:
    """Return whether the extent of a variable is known when the code runs only."""
    variables = shape.mapping.matching.statement.variables
    return next(v.extent for v in variables if v.name == variable).constant is None


def block_of(shape: Shape, levels: Iterable[Level]) -> dict[str, int]:
    """Return the register block inside some levels, as tiles of each variable."""
    steps = {**shape.extents, **{level.variable: level.step for level in levels}}
    return {v: -(-steps[v] // shape.tile[v]) for v in shape.extents}


def fragments_of(shape: Shape, operand: str, block: Dict[str, int]) -> int:
    """Return how many different fragments of an operand a block reads."""
    return max(sum(fragments_by_access(shape, operand, block)), 1)


def fragments_by_access(shape: Shape, operand: str, block: Dict[str, int]) -> list[int]:
    """Return how many fragments a block reads by each access that an operand is made from.

    Accesses that differ in constants only move alike, and are one.
    """
    counts = []
    for steps, used, number in shape.reads[operand]:
        own = tuple((v, t) for v, t in block.items() if v in used)
        if (steps, own) not in shape.places:
            shape.places[steps, own] = _count_places(shape, steps, own)
        counts.append(number * shape.places[steps, own])
    return counts


def _count_places(shape: Shape, steps: Steps, block: tuple[tuple[str, int], ...]) -> int:
    shared = frozenset(v for names, _ in steps if len(names) > 1 for v in names)
    if not shared:
        return prod(tiles for _, tiles in block)
    factors = [dict(own) for _, own in steps]
    offsets = {0}
    count = 1
    for v, tiles in block:
        if v not in shared:
            count *= tiles
        elif tiles > 1:
            # Each index has digits of its own in one number, further apart than it ever moves.
            step = sum(own.get(v, 0) << (_APART * n) for n, own in enumerate(factors))
            step *= shape.tile[v]
            offsets = {offset + step * n for offset in offsets for n in range(tiles)}
    return count * len(offsets)


def _reads(mapping: Mapping, operand: str) -> tuple[tuple[Steps, frozenset[str], int], ...]:
    alike = Counter(_steps(access) for name, access in inputs(mapping) if name == operand)
    return tuple(
        (steps, frozenset().union(*(names for names, _ in steps)), number)
        for steps, number in alike.items()
    )


def _steps(access: Access) -> Steps:
    return tuple(
        (
            index.names,
            tuple(
                (v, numeric(index.coefficient(v), ASSUMED_EXTENT) or 1) for v in sorted(index.names)
            ),
        )
        for index in access.indices
    )
