"""From a statement, its mapping and a machine's description to what the model knows: numbers.

Dimensions are the statement's variables, and their units register blocks.  An array that the
instruction is brought elements of is an operand for each way in which it is indexed; accesses that
differ in constants only are one.  An index that is no linear form (a product of variables, a
quotient, a value that is read) counts every combination of its variables as an element of its own,
and so do indices that share a variable: never too few.  Indices that lie in a buffer's padding
count, too.

The first memory holds the register block: the registers or the scratchpad that the instruction
works on.  The others are the caches beyond it, and
scratchpads that all has to pass through.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import ceil, inf, prod

import numpy as np

from isamap.hw.accelerator import Accelerator, Storage
from isamap.ir.index import Index
from isamap.ir.nodes import Buffer
from isamap.mapping.compose.composed import Composed
from isamap.mapping.matching import Mapping as LegalMapping
from isamap.mapping.tiles.shared import accesses_of, brought
from isamap.model.nest import Group, Machine, Memory, Nest, Operand
from isamap.model.traffic import footprint, held
from isamap.model.useful import useful_share

HELD = 2 / 3
"""The part of a cache that what is held may take: then it stays, however addresses fall."""

AT_ONCE = 16
"""Lines that are on their way at once.  A stretch of lines side by side is fetched ahead; where
each stretch begins, that is all that hides the latency."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """A statement under a mapping: its ``nest`` on its ``machine``.

    ``fills`` names the storage that fills each memory, ``sizes`` are the bytes of all of it.
    ``limits`` are cycles that the calls take
    at least, by what limits them: units, 'issue' and 'chain' (of updates of the results of a
    block, one block after the other). ``chain`` are those of the updates of one result, which other
    blocks may shorten no further. ``touched`` are bytes of each buffer that are read or written
    whatever its indices hold.
    """

    nest: Nest
    machine: Machine
    fills: tuple[str, ...]
    sizes: tuple[float, ...]
    limits: Mapping[str, float]
    chain: float
    touched: Mapping[str, float]


def model_of(
    mapping: LegalMapping,
    accelerator: Accelerator,
    buffers: Mapping[str, Buffer],
    extents: Mapping[str, int],
    block: Mapping[str, int],
    packed: Container[str] = (),
) -> Modelled:
    """Return what the model knows of a mapped statement.

    ``extents`` has a number for each of its variables (and for each symbol in a stride, which
    counts as 1 otherwise), ``block`` the iterations of each in a register block.  Buffers that are
    ``packed`` lie in the order in which they are read.
    """
    names = [v.name for v in mapping.matching.statement.variables]
    # A statement without variables is one iteration of a dimension that nothing depends on.
    ranges = tuple(max(1, extents[v]) for v in names) or (1,)
    operands, touched = _operands(mapping, buffers, names, ranges, extents, packed)
    nest = Nest(ranges, operands, tuple(block[v] for v in names) or (1,))
    share = useful_share(mapping, buffers, extents, unknown=0.0)
    limits = _limits(mapping, accelerator, extents, block, share)
    chain = _chain(mapping, extents, share)
    room = float(held(nest, [np.array([float(step)]) for step in nest.steps])[0])
    memories, fills, sizes = _memories(mapping, accelerator, block, room)
    computing = max(limits.values())
    if not computing:  # not known, or all calls would take padding: none is made, in no time
        share = useful_share(mapping, buffers, extents, unknown=1.0)
        computing = max(_limits(mapping, accelerator, extents, block, share).values())
        target = mapping.matching.statement.target.buffer
        touched = {target: touched[target]}  # nothing is read where nothing is computed
    rate = prod(map(float, ranges)) / computing if computing else inf
    machine = Machine(memories, rate, block=True)
    return Modelled(nest, machine, fills, sizes, limits, chain, touched)


def least(statements: Sequence[Modelled], kept: Container[str] = ()) -> dict[str, float]:
    """Return cycles that no schedule of some statements undercuts, each by itself.

    That is what limits the calls, and every byte moved once into each memory, by the storage that
    it comes from; as many as a memory holds may be in it from the last time, but for the results,
    which leave the registers.  What lies in the buffers ``kept`` need not.
    """
    found: dict[str, float] = {}
    bytes_: dict[str, float] = {}
    fills: dict[str, tuple[float, float]] = {}
    targets = dict.fromkeys(own.nest.operands[0].name for own in statements)
    for own in statements:
        for name, cycles in own.limits.items():
            before = found.get(name, 0.0)
            # Chains of different results, and statements, may run side by side.
            found[name] = max(before, own.chain) if name == "chain" else before + cycles
        for buffer, amount in own.touched.items():
            if buffer not in kept:
                bytes_[buffer] = max(bytes_.get(buffer, 0.0), amount)
        for name, size, memory in zip(own.fills, own.sizes, own.machine.memories, strict=True):
            fills[name] = size, memory.bandwidth
    amount = sum(bytes_.values())
    moving = {name: max(0.0, amount - size) / speed for name, (size, speed) in fills.items()}
    results = sum(bytes_.get(name, 0.0) for name in targets)
    for name in list(fills)[:1]:
        moving[name] = max(moving[name], results / fills[name][1])
    return found | moving


# --- operands -----------------------------------------------------------------------------------
def _operands(
    mapping: LegalMapping,
    buffers: Mapping[str, Buffer],
    names: list[str],
    ranges: tuple[int, ...],
    values: Mapping[str, int],
    packed: Container[str],
) -> tuple[tuple[Operand, ...], dict[str, float]]:
    """Return the operands, and the bytes that are touched of each buffer for sure."""
    matching = mapping.matching
    target = matching.statement.target
    read = [a for name, _ in brought(matching) for a in accesses_of(matching, name)]
    places = [(a.buffer, a.indices) for a in (target, *read)]
    places += [(r.buffer, r.indices) for _, own in places for index in own for r in index.reads]
    found: list[Operand] = []
    touched: dict[str, float] = {}
    whole = [np.array([float(extent)]) for extent in ranges]
    for number, (name, indices) in enumerate(places):
        buffer = buffers[name]
        groups, exact = _groups(indices, names, values)
        rows = () if name in packed or not exact else _rows(buffer, indices, names, values)
        own = Operand(name, groups, buffer.dtype.bytes, number == 0, rows)
        if all((name, groups) != (other.name, other.groups) for other in found):
            found.append(own)
        size = prod(_number(extent, values) for extent in buffer.shape)
        amount = own.bytes * min(size, float(footprint(own, whole)[0])) if exact else 0.0
        touched[name] = max(touched.get(name, 0.0), amount)
    return tuple(found), touched


def _groups(
    indices: Iterable[Index], names: list[str], values: Mapping[str, int]
) -> tuple[tuple[Group, ...], bool]:
    """Return the groups of some indices, and whether they are linear forms that share nothing."""
    forms: list[Group] = []
    exact = True
    for index in indices:
        used = [v for v in names if v in index.names]
        if index.is_linear_in(used):
            factors = [(names.index(v), _number(index.coefficient(v), values)) for v in used]
            forms.append(tuple((dim, factor) for dim, factor in factors if factor))
        else:
            exact = False
            forms += [((names.index(v), 1),) for v in used]
    met: list[tuple[set[int], list[Group]]] = []
    for form in filter(None, forms):
        dims, own = {dim for dim, _ in form}, [form]
        for other in [one for one in met if one[0] & dims]:
            met.remove(other)
            dims, own = dims | other[0], own + other[1]
        met.append((dims, own))
    groups: list[Group] = []
    for dims, own in met:
        exact &= len(own) == 1
        groups += own if len(own) == 1 else [((dim, 1),) for dim in sorted(dims)]
    return tuple(groups), exact


def _rows(
    buffer: Buffer, indices: Sequence[Index], names: list[str], values: Mapping[str, int]
) -> tuple[tuple[Group, int], ...]:
    """Return how an array lies under its linear indices: see :class:`Operand`."""
    found = []
    for index, extent in zip(reversed(indices), reversed(buffer.shape), strict=True):
        used = [v for v in names if v in index.names]
        form = [(names.index(v), _number(index.coefficient(v), values)) for v in used]
        found.append((tuple(form), _number(extent, values)))
    return tuple(found)


def _number(index: Index, values: Mapping[str, int]) -> int:
    return int(index.evaluate({name: values.get(name, 1) for name in index.names}, lambda *_: 1))


# --- the machine --------------------------------------------------------------------------------
def _limits(
    mapping: LegalMapping,
    accelerator: Accelerator,
    extents: Mapping[str, int],
    block: Mapping[str, int],
    share: float,
) -> dict[str, float]:
    """Return what limits the calls of which a ``share`` does anything."""
    statement, entry = mapping.matching.statement, mapping.matching.needle.entry
    tile = {v: mapping.tile.get(v, 1) for v in extents}
    tiles = {v.name: ceil(max(1, extents[v.name]) / tile[v.name]) for v in statement.variables}
    calls = share * prod(tiles.values())
    results = statement.target.names
    inflight = prod(max(1, block[v] // tile[v]) for v in tiles if v in results)
    parts = len(entry.parts) if isinstance(entry, Composed) else 1
    found = {unit: calls * float(cycles) for unit, cycles in entry.busy.items()}
    found["issue"] = calls * parts / max(1, accelerator.issue)
    if any(v not in results for v in tiles if tiles[v] > 1):
        found["chain"] = calls * float(mapping.matching.needle.chain) / inflight
    return found


def _chain(mapping: LegalMapping, extents: Mapping[str, int], share: float) -> float:
    """Return the cycles of the updates of one result, of which a ``share`` does anything."""
    statement = mapping.matching.statement
    tiles = (
        ceil(max(1, extents[v.name]) / mapping.tile.get(v.name, 1))
        for v in statement.variables
        if v.name not in statement.target.names
    )
    return share * prod(tiles) * float(mapping.matching.needle.chain)


def _memories(
    mapping: LegalMapping, accelerator: Accelerator, block: Mapping[str, int], least_room: float
) -> tuple[tuple[Memory, ...], tuple[str, ...], tuple[float, ...]]:
    """Return the memories, the nearest first, from where each is filled, and its size.

    A cache with less than the ``least_room`` of a block keeps nothing.
    """
    needle = mapping.matching.needle
    storages = accelerator.storages
    used = {needle.operand(name).storage for name, _ in brought(mapping.matching)}
    used.add(needle.operand(needle.target.buffer).storage)
    near = [s for s in storages if s.name in used and s.kind in ("registers", "scratchpad")]
    # What works on memory itself holds no block.
    first = max(map(storages.index, near), default=-1)
    beyond = [
        s
        for s in storages[first + 1 :]
        if s.kind in ("cache", "memory")
        or (s.kind == "scratchpad" and _passed(s, used, accelerator))
    ]
    rooms = [(_room(near), 1.0)]
    rooms += [(float(s.size), HELD if s.kind == "cache" else 1.0) for s in beyond if s.size]
    found, names, sizes = [], [], []
    for number, ((size, part), storage) in enumerate(zip(rooms, beyond, strict=False)):
        if storage.read and (not number or part * size >= least_room):
            results = None if number else _waiting(mapping, storage, block)
            start = float(storage.latency) / AT_ONCE if number else 0.0
            found.append(Memory(part * size, float(storage.read), start, results))
            names.append(storage.name)
            sizes.append(size)
    return tuple(found), tuple(names), tuple(sizes)


def _passed(scratchpad: Storage, used: AbstractSet[str | None], accelerator: Accelerator) -> bool:
    """Return whether all that these storages hold comes through a scratchpad and leaves through it:
    instructions on others do not connect them with memory."""
    reached = {s.name for s in accelerator.storages if s.kind == "memory"}
    places = {s.name for s in accelerator.storages if s.kind != "immediate"}
    joined = [places & {o.storage for o in e.instruction.operands} for e in accelerator.entries]
    joined = [own for own in joined if scratchpad.name not in own]
    found: set[str] = set()
    while reached != found:
        found = set(reached)
        reached = found.union(*(own for own in joined if not found.isdisjoint(own)))
    return reached.isdisjoint(used)


def _waiting(mapping: LegalMapping, storage: Storage, block: Mapping[str, int]) -> float:
    """Return bytes a cycle of a block's results on their way in or out, which the calls wait for.

    Once for each way they are moved, and half of the latencies pass."""
    statement, entry = mapping.matching.statement, mapping.matching.needle.entry
    used = statement.target.names
    size = prod(block[v.name] for v in statement.variables if v.name in used)
    size *= statement.target.dtype.bytes
    read = float(storage.read or 1)
    moving = size / read + size / float(storage.write or read)
    return 2 * size / (moving + float(storage.latency + entry.latency))


def _room(storages: Iterable[Storage]) -> float:
    """Return the bytes of the storages that hold a block."""
    return sum(
        float(s.size) if s.size else (s.count or 1) * (s.bits or 8) / 8
        for s in storages
        if s.within is None
    )
