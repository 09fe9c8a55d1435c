"""What the model knows of a statement and of a machine: numbers only."""

from dataclasses import dataclass
from typing import TypeAlias

Group: TypeAlias = tuple[tuple[int, int], ...]
"""An index: pairs of a dimension's number and its coefficient, which is not 0."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a nest reads, or reads and writes: one group for each of its indices.

    No dimension is in two groups.  ``bytes`` are those of an element.  ``rows`` says how it lies in
    memory, for what a transfer costs that goes to many places: each index, the last first, with the
    extent of the array there; nothing where a tile is in one place.
    """

    name: str
    groups: tuple[Group, ...]
    bytes: float
    written: bool = False
    rows: tuple[tuple[Group, int], ...] = ()

    @property
    def dims(self) -> frozenset[int]:
        """The dimensions that it depends on."""
        return frozenset(dim for group in self.groups for dim, _ in group)


@dataclass(frozen=True, slots=True)
class Nest:
    """A statement: iterations over all combinations of dimensions, and what they touch.

    Tiles are multiples of ``units``, one a dimension (without any: of 1), of which the last one may
    be partial.
    """

    extents: tuple[int, ...]
    operands: tuple[Operand, ...]
    units: tuple[int, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """How many units each dimension has, the partial one too."""
        return tuple(-(-e // u) for e, u in zip(self.extents, self.steps, strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """The unit of each dimension."""
        return self.units or (1,) * len(self.extents)

    @property
    def whole(self) -> tuple[int, ...]:
        """The tile that holds everything: extents rounded up to units."""
        return tuple(n * u for n, u in zip(self.counts, self.steps, strict=True))


@dataclass(frozen=True, slots=True)
class Memory:
    """A level that holds tiles: ``capacity`` bytes that may be used of it, and the ``bandwidth``
    in bytes a cycle with which the next level outside fills it.

    Each stretch of elements side by side costs ``start`` cycles more.  ``results`` is the bandwidth
    of what is written, where it is another one: results that come and go are waited for.
    """

    capacity: float
    bandwidth: float
    start: float = 0.0
    results: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Memories, innermost (registers) first, and iterations computed a cycle at best (``rate``),
    infinitely many where nothing is computed.

    Where the first one holds a ``block``, its tile is one unit of each dimension, which fits.
    ``exposed`` is the part of transfers that takes time of its own beside computing; what
    ``results`` is the bandwidth of is exposed wholly.
    """

    memories: tuple[Memory, ...]
    rate: float
    block: bool = False
    exposed: float = 1.0
