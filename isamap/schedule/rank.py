"""Ordering mappings by a closed form, before any of them is lowered."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import gcd, inf, log2, prod

from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Permissions
from isamap.mapping.fragments.fragment import Reference
from isamap.mapping.fragments.layout import direct
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.producer import MEMORY_KINDS
from isamap.mapping.matching import Mapping, Matching
from isamap.mapping.tiles.moved import moved_store
from isamap.mapping.tiles.operand import fragment, operand_shape, taken_access
from isamap.mapping.tiles.shared import accesses_of, brought
from isamap.schedule.copied import COPY_BYTES, RUN_CYCLES, SINGLE_CYCLES, WOVEN
from isamap.schedule.schedule import Treatment
from isamap.schedule.treatment import KINDS, PACKED, Shared, Treatments, numeric

ASSUMED_EXTENT = 256
"""What a symbolic extent is taken for."""

COPY = 1.0
"""Cycles an element that is copied into a packed operand, or out of a staged result."""

REUSED = 10.0
"""How often a block of registers uses a fragment that is loaded once, at most."""

BESIDES = 0.1
"""What loads take of the time in which units compute, or those of the loads' time."""

PADDED = 0.25
"""Cycles an element of a padded copy, or what less it takes where only borders are copied."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A mapping with its rough count, and how its operands can be treated."""

    cycles: float
    mapping: Mapping
    treatments: Treatments


class Ranking:
    """Mappings of one statement in the order of their rough counts, the least first.

    A count grows as more of it is known, so that most mappings are counted only until they are
    known not to be next.
    """

    def __init__(
        self,
        mappings: Iterable[Mapping],
        producers: Producers,
        buffers: Dict[str, Buffer],
        permissions: Permissions,
    ) -> None:
        self._given = tuple(mappings)
        self._producers = producers
        self._buffers = buffers
        self._permissions = permissions
        self._shared = Shared()
        self._treatments: dict[int, Treatments] = {}
        self._counts: dict[int, Iterator[float]] = {}
        # The count so far, whether it is whole, and the mapping's number.
        self._waiting = [(least_cycles(m), False, n) for n, m in enumerate(self._given)]
        heapify(self._waiting)
        self._ranked: list[tuple[float, int]] = []

    def at(self, place: int, limit: float = inf) -> Ranked | None:
        """Return the mapping at a place, None where there is none or it is not below the limit.

        Without a limit, those come too that cannot be lowered, last.
        """
        while len(self._ranked) <= place:
            if not self._waiting or (limit < inf and self._waiting[0][0] >= limit):
                return None
            cycles, whole, n = heappop(self._waiting)
            if whole:
                self._ranked.append((cycles, n))
            else:
                more = next(self._counting(n), None)
                heappush(self._waiting, (cycles, True, n) if more is None else (more, False, n))
        cycles, n = self._ranked[place]
        if limit < inf and cycles >= limit:
            return None
        return Ranked(cycles, self._given[n], self._treatments[n])

    def __iter__(self) -> Iterator[Ranked]:
        place = 0
        while (found := self.at(place)) is not None:
            yield found
            place += 1

    def _counting(self, n: int) -> Iterator[float]:
        if n not in self._counts:
            mapping = self._given[n]
            self._treatments[n] = Treatments(
                mapping, self._producers, self._buffers, self._permissions, self._shared
            )
            self._counts[n] = quick_cycles(mapping, self._treatments[n])
        return self._counts[n]


def least_cycles(mapping: Mapping) -> float:
    """Return the cycles of a mapping's calls if nothing else took time."""
    tiles = (
        -(-numeric(v.extent, ASSUMED_EXTENT) // mapping.tile.get(v.name, 1))
        for v in mapping.matching.statement.variables
    )
    return prod(tiles) * float(mapping.matching.needle.entry.throughput)


def quick_cycles(mapping: Mapping, treatments: Treatments) -> Iterator[float]:
    """Yield a rough count of cycles: calls, packing, staging, and loads.

    A load counts for as many calls as a block of registers makes with what it brings.

    The last one is the count; those before are never more.  Infinity if some operand cannot reach
    the instruction.
    """
    matching = mapping.matching
    extents = {v.name: numeric(v.extent, ASSUMED_EXTENT) for v in matching.statement.variables}
    tiles = {v: -(-extent // mapping.tile.get(v, 1)) for v, extent in extents.items()}
    calls = prod(tiles.values())
    called, loaded, copied = least_cycles(mapping), 0.0, 0.0
    for operand, _ in brought(matching):
        loads = calls / _uses(mapping, operand, tiles)
        if treatments.is_constant(operand):  # copied once, ahead of all calls
            kinds = treatments.feasible(operand)
            if kinds is None:
                yield inf
                return
            loaded += loads * treatments.own_cost(operand, kinds)
            yield _together(called, loaded, copied)
            continue
        copies = {kind: _copied(mapping, treatments, operand, kind, tiles) for kind in KINDS}
        best, own = inf, (0.0, 0.0)
        for kind in sorted(KINDS, key=lambda kind: copies[kind]):
            least = _together(called, loaded, copied + copies[kind])
            if least >= best:
                break
            yield least
            if (cost := treatments.cost(operand, kind)) is not None:
                whole = _together(called, loaded + loads * cost, copied + copies[kind])
                if whole < best:
                    best, own = whole, (loads * cost, copies[kind])
        yield best
        if best == inf:
            return
        loaded, copied = loaded + own[0], copied + own[1]
    yield _together(called, loaded, copied) + _staging(mapping, treatments)


def _together(called: float, loaded: float, copied: float) -> float:
    """Return the cycles of calls, of loads besides, and of copies before them."""
    return max(called, loaded) + BESIDES * min(called, loaded) + copied


def _uses(mapping: Mapping, operand: str, tiles: Dict[str, int]) -> float:
    """Return how many calls a block makes with a fragment of an operand that is loaded once."""
    found = accesses_of(mapping.matching, operand)
    used = frozenset[str]().union(*(access.names for access in found))
    different = prod(count for variable, count in tiles.items() if variable in used)
    if len(found) == 1:
        places = (_places(index, mapping.tile, tiles) for index in found[0].indices)
        different = min(different, prod(places))
    return min(REUSED, prod(tiles.values()) / different)


def _places(index: Index, tile: Dict[str, int], tiles: Dict[str, int]) -> int:
    """Return how many values an index takes, fewer than there are tiles where windows overlap."""
    names = index.names & tiles.keys()
    most = prod(tiles[v] for v in names)
    steps = {v: index.coefficient(v).constant or 0 for v in names}
    if not index.is_linear_in(names) or not all(steps.values()):
        return most
    moves = {v: abs(step) * tile.get(v, 1) for v, step in steps.items()}
    reach = sum(move * (tiles[v] - 1) for v, move in moves.items())
    return min(most, 1 + reach // gcd(*moves.values())) if names else 1


def _copied(
    mapping: Mapping, treatments: Treatments, operand: str, kind: Treatment, tiles: Dict[str, int]
) -> float:
    """Return the cycles of the copies that a treatment of an operand makes, infinity if it makes
    none that the operand's accesses need.
    """
    if kind == "direct":
        return 0.0
    total = 0.0
    shape = operand_shape(mapping, operand)
    for access in accesses_of(mapping.matching, operand):
        if treatments.buffers[access.buffer].role == "const":
            continue
        if kind in PACKED:
            used = access.names
            whole = prod(shape or ())
            sizes = shape or ()
            if kind == "packed" and sizes:
                sizes = _once(mapping.matching, operand, used, sizes)
            points = prod(mapping.tile.get(v, 1) for v in tiles if v in used)
            # Where places are left without an element, all are cleared first.
            cleared = mapping.matching.needle.operand(operand).dtype.bytes / COPY_BYTES
            each = _element(mapping, operand, access, cleared) * min(prod(sizes), points)
            each += cleared * whole if points < whole else 0.0
            total += prod(tiles[v] for v in tiles if v in used) * each
        elif treatments.reference(operand, access, kind) is None:
            return inf
        else:
            sizes_there = treatments.buffers[access.buffer].shape
            total += PADDED * prod(numeric(size, ASSUMED_EXTENT) for size in sizes_there)
    return total


def _element(mapping: Mapping, operand: str, access: Access, moved: float) -> float:
    """Return the cycles of each element of an access that is copied into a packed fragment.

    What lies side by side in both is copied as a stretch, ``moved`` cycles an element.  Of a few
    rows of which the fragment has an element each, side by side, vectors are woven.
    """
    statement = mapping.matching.statement
    _, axes = taken_access(mapping.matching, operand)
    known = {axis.name for axis in mapping.matching.needle.axes}
    tile = {v.name: mapping.tile.get(v.name, 1) for v in statement.variables}
    forms = [
        form
        for axis in axes
        if axis in known
        for form in mapping.matching.on_axis(axis)
        if any(tile.get(v, 1) > 1 for v in form.names)
    ]
    last = access.indices[-1] if access.indices else None
    if not forms or last is None or len(last.names) != 1:
        return COPY
    (variable,) = last.names
    length = tile.get(variable, 1)
    if length == 1 or last.coefficient(variable).constant != 1:
        return COPY
    if forms[-1].names == last.names:
        return min(SINGLE_CYCLES, moved + RUN_CYCLES / length)
    rows = prod(tile.get(v, 1) for v in forms[-1].names)
    if len(forms) > 1 and forms[-2].names == last.names and rows <= WOVEN:
        return min(SINGLE_CYCLES, moved * (1 + log2(rows)))
    return COPY


def _once(
    matching: Matching, operand: str, used: frozenset[str], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the extents of a fragment with 1 for those along which only other variables move."""
    _, axes = taken_access(matching, operand)
    moving = {
        axis: frozenset().union(*(form.names for form in matching.on_axis(axis)))
        for axis in axes
        if axis in {a.name for a in matching.needle.axes}
    }
    return tuple(
        1 if (names := moving.get(axis)) and not names & used else extent
        for axis, extent in zip(axes, shape, strict=True)
    )


def _staging(mapping: Mapping, treatments: Treatments) -> float:
    """Return the cycles of results that the instruction does not store where they belong."""
    producers, buffers = treatments.producers, treatments.buffers
    statement, needle = mapping.matching.statement, mapping.matching.needle
    operand = needle.operand(needle.target.buffer)
    in_memory = producers.accelerator.storage(operand.storage or "").kind in MEMORY_KINDS
    extents = {v.name: v.extent for v in statement.variables}
    target = direct(buffers[statement.target.buffer], statement.target, extents, buffers)
    reference = Reference(target.array, target.offset)
    once = in_memory and statement.reduction == "="

    def besides(partial: frozenset[str], elements: int, calls: int) -> float:
        wanted = fragment(mapping, operand.name, partial, None)
        if wanted is not None and in_memory:
            if treatments.stores(wanted, reference):
                return 0.0
            if (other := moved_store(producers, mapping, partial, reference)) is not None:
                return calls * max(0.0, float(other.cost - needle.entry.throughput))
        elif wanted is not None and producers.store(wanted, reference) is not None:
            return 0.0
        # From registers they go to the stage first; what the instruction changes comes there, too.
        return COPY * (1 if once else 2) * elements

    sizes = {
        v: numeric(extent, ASSUMED_EXTENT)
        for v, extent in extents.items()
        if v in statement.target.names
    }
    tiles = {v: mapping.tile.get(v, 1) for v in sizes}
    every, calls = prod(sizes.values()), prod(sizes[v] // tiles[v] for v in sizes)
    whole = calls * prod(tiles.values())
    cycles = besides(frozenset(), whole, calls) if whole else 0.0
    if whole < every:
        rest = prod(-(-sizes[v] // tiles[v]) for v in sizes) - calls
        cycles += besides(treatments.ragged, every - whole, rest)
    return cycles
