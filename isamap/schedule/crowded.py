"""Rows that a block walks side by side and whose lines fall into the same sets of a cache.

A line that holds the elements of several iterations is worth that only if it stays in the cache
until they come, and so is one that hardware has fetched ahead.  Rows that lie a multiple of the
cache's way apart share a set, which has room for one line of each way.
"""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd, prod

from isamap.hw.accelerator import LINE, Accelerator
from isamap.schedule.pitches import ALIASED
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import ASSUMED_EXTENT, Shape
from isamap.schedule.treatment import PACKED, Treatments, inputs, numeric


@dataclass(frozen=True, slots=True)
class Crowding:
    """How often lines are fetched again because others pushed them out of their set.

    ``rows`` has for each such access the bytes from one tile to the next, by variable.  A set holds
    ``ways`` of their lines, of ``line`` bytes, and lines ``way`` bytes apart are in one set; a line
    that is fetched again costs ``fetch`` cycles.
    """

    rows: tuple[tuple[tuple[str, int], ...], ...] = ()
    ways: int = 0
    way: int = 0
    line: int = LINE
    fetch: float = 0.0
    known: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)

    def cycles(self, block: Dict[str, int]) -> float:
        """Return the cycles of one pass of a block that go into fetching lines again."""
        found = 0
        for steps in self.rows:
            own = tuple((step, block[v]) for v, step in steps if block.get(v, 1) > 1)
            if prod(count for _, count in own) > self.ways:
                if own not in self.known:
                    self.known[own] = self._pushed_out(own)
                found += self.known[own]
        return found * self.fetch

    def _pushed_out(self, own: tuple[tuple[int, int], ...]) -> int:
        """Return how many lines of a block lie in sets that do not hold all of theirs."""
        lines = {
            sum(step * n for (step, _), n in zip(own, place, strict=True)) // self.line
            for place in product(*(range(count) for _, count in own))
        }
        sets: dict[int, int] = {}
        for line in lines:
            at = line % (self.way // self.line)
            sets[at] = sets.get(at, 0) + 1
        return sum(number for number in sets.values() if number > self.ways)


def crowding(
    shape: Shape, chosen: Sequence[Treatment], accelerator: Accelerator, treatments: Treatments
) -> Crowding:
    """Return what the operands of a mapping that are read where they lie do to the first cache."""
    caches = [s for s in accelerator.storages if s.kind == "cache" and s.size]
    cache = caches[0] if caches else None
    if cache is None or not cache.read or not cache.size or not cache.ways:
        return Crowding()
    way, line = cache.size // cache.ways, cache.line or LINE
    moving = [v for v in shape.reductions if shape.extents[v] > 1]
    along = _along(shape) if not moving else None
    if along is not None:
        moving = [along]
    found = []
    for (operand, access), treatment in zip(inputs(shape.mapping), chosen, strict=True):
        reference = treatments.reference(operand, access, treatment)
        if reference is None or treatment in PACKED:
            continue
        steps = {}
        names = sorted(reference.offset.names & shape.extents.keys())
        if not reference.offset.is_linear_in(names):
            continue
        for v in names:
            factor = abs(numeric(reference.offset.coefficient(v), ASSUMED_EXTENT))
            steps[v] = factor * shape.tile[v] * access.dtype.bytes
        inner = [v for v in moving if v in steps]
        # The next lines are fetched ahead while a block has the ones before.
        if inner and min(steps[v] for v in inner) <= line:
            outer = tuple((v, s) for v, s in steps.items() if v in shape.outputs and v not in inner)
            # Rows of any other pitch spread over the sets.
            if any(gcd(step, way) >= ALIASED * line for _, step in outer):
                found.append(outer)
    # Lines that other operands need but once are the first to leave: they take one place.  Results
    # that are stored in each pass need as many lines as each input.
    ways = max(1, cache.ways - 1 if along is None else cache.ways // (len(found) + 1))
    fetch = float(line / cache.read)
    if along is not None:
        # The next cache sends the line; one of results leaves and comes back as well.
        later = caches[1].read if len(caches) > 1 and caches[1].read else cache.read
        fetch = float(2 * line / later)
    return Crowding(tuple(found), ways, way, line, fetch)


def _along(shape: Shape) -> str | None:
    """Return the variable along which results lie side by side."""
    target = shape.mapping.matching.statement.target
    last = target.indices[-1].name if target.indices else None
    return last if last in shape.outputs else None
