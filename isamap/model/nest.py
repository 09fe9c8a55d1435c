"""What the model knows of a statement and of a machine: numbers only."""

from dataclasses import dataclass
from typing import TypeAlias

Group: TypeAlias = tuple[tuple[int, int], ...]
"""An index: pairs of a dimension's number and its coefficient, which is not 0."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a nest reads, or reads and writes: one group for each of its indices.

    No dimension is in two groups.  ``bytes`` are those of an element.
    """

    name: str
    groups: tuple[Group, ...]
    bytes: float
    written: bool = False

    @property
    def dims(self) -> frozenset[int]:
        """The dimensions that it depends on."""
        return frozenset(dim for group in self.groups for dim, _ in group)


@dataclass(frozen=True, slots=True)
class Nest:
    """A statement: iterations over all combinations of dimensions, and what they touch."""

    extents: tuple[int, ...]
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """A level that holds tiles: ``capacity`` bytes that may be used of it, and the ``bandwidth``
    in bytes a cycle with which the next level outside fills it."""

    capacity: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Machine:
    """Memories, innermost (registers) first, and iterations computed a cycle at best."""

    memories: tuple[Memory, ...]
    rate: float
