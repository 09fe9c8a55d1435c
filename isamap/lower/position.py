"""Where in the iteration domain a piece of the loop nest stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from isamap.ir.index import Index, const
from isamap.mapping.fragments.fragment import Fragment

UNKNOWN = 1 << 40
"""Iterations of a loop of which only the run tells how many it has: no loop has more."""


@dataclass(frozen=True, slots=True)
class Position:
    """First iteration and live iterations of each variable, and the ranges of the counters.

    ``origin`` is in terms of counters and symbols.  ``live`` is a number or, in the tail of a
    symbolic extent, an expression of at least 1.  ``ranges`` gives both ends of every counter and
    symbol, for the decisions that can be taken while lowering; ``given`` are conditions in terms of
    them that hold here, too.
    """

    origin: Mapping[str, Index]
    live: Mapping[str, Index]
    ranges: Mapping[str, tuple[int, int]]
    given: frozenset[Index] = frozenset()

    def moved(self, variable: str, origin: Index, live: Index) -> "Position":
        """Return the position with one variable elsewhere."""
        origins = {**self.origin, variable: origin}
        return Position(origins, {**self.live, variable: live}, self.ranges, self.given)

    def first(self) -> "Position":
        """Return the position of the statement's first iterations, with as many alive."""
        return replace(self, origin=dict.fromkeys(self.origin, const(0)))

    def where(self, conditions: Iterable[Index]) -> "Position":
        """Return the position where conditions hold."""
        given = self.given.union(conditions)
        return Position(self.origin, self.live, self.ranges, given)

    def counting(self, counter: str, count: Index) -> "Position":
        """Return the position inside a loop."""
        last = count.constant
        span = (0, last - 1) if last is not None else (0, UNKNOWN)
        return replace(self, ranges={**self.ranges, counter: span})

    def at(self, index: Index) -> Index:
        """Return an expression over variables in terms of counters, at the first iteration."""
        return index.substitute(self.origin)

    def undecided(self, conditions: tuple[Index, ...]) -> tuple[Index, ...] | None:
        """Return the conditions that may fail here; None if one always does."""
        left: list[Index] = []
        for condition in dict.fromkeys(map(self.at, conditions)):
            bounds = condition.bounds(self.ranges)
            if (bounds is not None and bounds[1] < 0) or self._is_refuted(condition):
                return None
            if (bounds is None or bounds[0] < 0) and not self._is_refuted(-condition - 1):
                left.append(condition)
        return tuple(left)

    def _is_refuted(self, condition: Index) -> bool:
        """Return whether a condition and a given one never hold together: their sum is less than
        zero everywhere."""
        sums = ((condition + known).constant for known in self.given)
        return any(total is not None and total < 0 for total in sums)

    def is_nonnegative(self, index: Index) -> bool:
        """Return whether an expression in counters and symbols is known never to be negative."""
        bounds = index.bounds(self.ranges)
        return bounds is not None and bounds[0] >= 0

    def partial(self, tile: Mapping[str, int]) -> frozenset[str]:
        """Return the variables of which less than a tile is alive."""
        return frozenset(v for v, extent in tile.items() if self.live[v].constant != extent)

    def live_extent(self, fragment: Fragment, dim: int) -> Index:
        """Return how many elements of a fragment's dimension are alive; they are its first."""
        digits = [digit for digit in fragment.dims[dim] if digit.tile > 1]
        if not digits:
            return const(1)
        first, reach = digits[0], 1
        for digit in digits[1:]:
            reach *= digit.tile
        values = const(1)
        for part in first.pieces:
            cut = part.variable in fragment.partial
            values += (self.live[part.variable] - 1 if cut else const(part.tile - 1)) * part.step
        return values * reach
