"""Places of arrays that a loop nest touches, and the bytes that come into caches for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, prod

from isamap.schedule.walk import walk


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that come into a cache, how many of them no hardware fetches ahead, and how many go
    back, written; the cycles that these wait in the first one for others to leave.
    """

    bytes: float = 0.0
    unforeseen: float = 0.0
    written: float = 0.0
    leaving: float = 0.0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.bytes + other.bytes,
            self.unforeseen + other.unforeseen,
            self.written + other.written,
            self.leaving + other.leaving,
        )

    def times(self, factor: float) -> "Traffic":
        """Return the traffic of so many times as much."""
        return Traffic(
            self.bytes * factor,
            self.unforeseen * factor,
            self.written * factor,
            self.leaving * factor,
        )


@dataclass(frozen=True, slots=True)
class Coming:
    """Traffic by the part of the time in which it comes: 1 is all of it.

    Shorter parts are taken to lie in longer ones.
    """

    during: Mapping[float, Traffic] = field(default_factory=dict)

    def __add__(self, other: "Coming") -> "Coming":
        parts = dict.fromkeys((*self.during, *other.during))
        none = Traffic()
        return Coming({p: self.during.get(p, none) + other.during.get(p, none) for p in parts})

    def times(self, factor: float) -> "Coming":
        """Return the traffic of so many times as much."""
        return Coming({part: traffic.times(factor) for part, traffic in self.during.items()})

    @property
    def whole(self) -> Traffic:
        """All of it."""
        return sum(self.during.values(), Traffic())


@dataclass(slots=True)
class Site:
    """The places of one array that are read or written with the same strides in the same loops.

    At each place there are so many ``elements``, the last ``span - 1`` from the first, and
    ``stretch`` of them next to each other.  ``written`` are those that something is stored to,
    ``past`` those that are loaded past the first cache.
    """

    array: str
    loops: tuple[tuple[str, float, int], ...]  # counter, count, stride in elements; outermost first
    offsets: set[int]
    elements: int
    span: int
    stretch: int
    written: bool = False
    past: bool = False

    def footprint(self, depth: int) -> float:
        """Elements touched by the loops from ``depth`` inwards."""
        trips = prod(count for _, count, stride in self.loops[depth:] if stride)
        return len(self.offsets) * self.elements * trips

    def walks(self, regional: bool) -> tuple[float, float]:
        """Elements that are touched one after the other before the next ones lie elsewhere, and in
        how many places side by side: to hardware that is ``regional`` places that meet are one.
        """
        length, gaps = self._together()
        beside = (gaps + 1) * self.elements / self.stretch
        loops = [(n, stride) for _, n, stride in reversed(self.loops)]
        alone = walk(length, loops)
        return max(alone, walk(self.stretch, loops, self.places()) if regional else 0.0), beside

    def places(self) -> list[float]:
        """Where stretches begin that are touched in one iteration of all loops."""
        rows = max(1, self.elements // self.stretch)
        apart = (self.span - self.stretch) / max(1, rows - 1)
        return [offset + n * apart for offset in self.offsets for n in range(rows)]

    def _together(self) -> tuple[int, int]:
        """Elements next to each other in one iteration of all loops, and the gaps after such.

        Where what lies between is no longer than a stretch, such as the end of a row, another site
        has it, or it lies in the same lines.
        """
        places = sorted(self.offsets)
        far = 2 * self.stretch
        gaps = [n for n, (low, high) in enumerate(pairwise(places)) if high - low > far]
        return self.stretch + places[gaps[0] if gaps else -1] - places[0], len(gaps)

    def run(self, depth: int) -> float:
        """Elements next to each other that the loops from ``depth`` inwards touch."""
        length, _ = self._together()
        moves = sorted((abs(stride), count) for _, count, stride in self.loops[depth:] if stride)
        total = float(length)
        for stride, count in moves:
            if stride > total:
                break
            total += stride * max(0.0, count - 1)
        return total

    def reach(self, depth: int) -> tuple[float, float]:
        """The first element that the loops from ``depth`` inwards touch, and the one after all."""
        moves = [stride * max(0.0, count - 1) for _, count, stride in self.loops[depth:]]
        low = min(self.offsets) + sum(move for move in moves if move < 0)
        high = max(self.offsets) + sum(move for move in moves if move > 0)
        return low, high + self.span


def lines_of(length: float, line: int) -> float:
    """Return how many times its own bytes a piece of so many bytes takes in whole lines.

    It begins at any multiple of the bytes that it has in common with a line.
    """
    if length < 1:
        return 1.0  # loops that are never entered
    common = gcd(round(length), line)
    return (length + line - common) / length


def touched_elements(sites: Sequence[Site], depth: int) -> float:
    """Return how many elements of one array its sites touch in the loops from ``depth`` inwards."""
    ends = [site.reach(depth) for site in sites]
    whole = max(high for _, high in ends) - min(low for low, _ in ends)
    return min(sum(site.footprint(depth) for site in sites), whole)
