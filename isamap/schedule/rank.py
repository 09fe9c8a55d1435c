"""Ordering mappings by a closed form, before any of them is lowered."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Dict
from heapq import heappop, heappush
from math import inf, prod

from isamap.ir.nodes import Buffer, Permissions
from isamap.mapping.fragment import Reference
from isamap.mapping.layout import direct
from isamap.mapping.matching import Mapping
from isamap.mapping.operand import fragment
from isamap.mapping.produce import MEMORY_KINDS, Producers
from isamap.schedule.treatment import Treatments, inputs, numeric

ASSUMED_EXTENT = 256
"""What a symbolic extent is taken for."""

COPY = 1.0
"""Cycles an element that is copied into a packed operand, or out of a staged result."""


def ranked(
    mappings: Iterable[Mapping],
    producers: Producers,
    buffers: Dict[str, Buffer],
    permissions: Permissions,
    limit: float = inf,
) -> Iterator[tuple[float, Mapping]]:
    """Yield mappings with their rough counts, the least first; only those below a finite limit.

    No count is less than that of the calls alone, so that mappings are counted when their calls
    say that they may be next, and most never.
    """
    waiting: list[tuple[float, int]] = []
    given = tuple(mappings)
    for calls, n in sorted((_calls(mapping), n) for n, mapping in enumerate(given)):
        if calls >= limit:
            break
        while waiting and waiting[0][0] < calls:
            cycles, first = heappop(waiting)
            yield cycles, given[first]
        cycles = quick_cycles(given[n], producers, buffers, permissions)
        if cycles < limit or limit == inf:
            heappush(waiting, (cycles, n))
    while waiting:
        cycles, first = heappop(waiting)
        yield cycles, given[first]


def _calls(mapping: Mapping) -> float:
    """Return the cycles of a mapping's calls if nothing else took time."""
    tiles = (
        -(-numeric(v.extent, ASSUMED_EXTENT) // mapping.tile.get(v.name, 1))
        for v in mapping.matching.statement.variables
    )
    return prod(tiles) * float(mapping.matching.needle.entry.throughput)


def quick_cycles(
    mapping: Mapping,
    producers: Producers,
    buffers: Dict[str, Buffer],
    permissions: Permissions,
) -> float:
    """Return a rough count of cycles: calls, packing, staging, and loads without any reuse.

    Infinity if some operand cannot reach the instruction.
    """
    matching = mapping.matching
    statement = matching.statement
    extents = {v.name: numeric(v.extent, ASSUMED_EXTENT) for v in statement.variables}
    tiles = {v: -(-extent // mapping.tile.get(v, 1)) for v, extent in extents.items()}
    calls = prod(tiles.values())
    cycles = _calls(mapping)
    treatments = Treatments(mapping, producers, buffers, permissions)
    for operand, _ in matching.fed:
        kinds = treatments.feasible(operand)
        if kinds is None:
            return inf
        cycles += calls * 0.1 * treatments.own_cost(operand, kinds)
        for (name, access), kind in zip(
            [pair for pair in inputs(mapping) if pair[0] == operand], kinds, strict=True
        ):
            reference = treatments.reference(name, access, kind)
            if kind == "packed" and reference is not None and reference.dense is not None:
                used = frozenset().union(*(i.names for i in access.indices))
                held = prod(tiles[v] for v in tiles if v in used)
                cycles += COPY * held * prod(reference.dense)
            elif kind == "padded":
                cycles += COPY * prod(
                    numeric(e, ASSUMED_EXTENT) for e in buffers[access.buffer].shape
                )
    return cycles + _staging(mapping, producers, buffers, tiles, treatments.ragged)


def _staging(
    mapping: Mapping,
    producers: Producers,
    buffers: Dict[str, Buffer],
    tiles: Dict[str, int],
    ragged: frozenset[str],
) -> float:
    """Return the cycles of results that no instruction stores directly."""
    statement = mapping.matching.statement
    needle = mapping.matching.needle
    operand = needle.entry.instruction.operand(needle.target.buffer)
    place = producers.accelerator.storage(operand.storage or "")
    if place.kind in MEMORY_KINDS:
        return 0.0
    extents = {v.name: v.extent for v in statement.variables}
    target = direct(buffers[statement.target.buffer], statement.target, extents, buffers)
    reference = Reference(target.array, target.offset)
    used = frozenset().union(*(i.names for i in statement.target.indices))
    results = prod(tiles[v] for v in tiles if v in used)
    elements = prod(extent.constant or 1 for extent in operand.shape)
    for partial in (frozenset[str](), ragged):
        wanted = fragment(mapping, operand.name, partial, None)
        if wanted is None or producers.store(wanted, reference) is None:
            return COPY * 2 * results * elements
    return 0.0
