"""A first schedule, by rules: register blocks, loop order, treatments.  No search.

The rules are those that hand-written kernels follow.  A register block has enough results in flight
to cover the latency of the instruction, fits the registers, and needs few loads for each call.
Reductions run inside the results; small ones are unrolled into the block, where neighbouring
windows share their loads.
"""

from collections.abc import Container, Sequence
from collections.abc import Mapping as Dict
from collections.abc import Set as AbstractSet
from itertools import product
from math import prod

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Accelerator, Storage
from isamap.ir.nodes import Kernel
from isamap.mapping.compose.composed import Composed
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.shared import brought
from isamap.schedule.copied import pack_aliased, pack_reused, pack_scattered
from isamap.schedule.cut import cut
from isamap.schedule.flows import Flow, early_flows
from isamap.schedule.inside import copied_inside
from isamap.schedule.lines import CALLS_IN_BODY, paired, unrolled
from isamap.schedule.plain import vectorizable
from isamap.schedule.schedule import Early, Level, StatementSchedule, Treatment
from isamap.schedule.shape import (
    Shape,
    block_of,
    fragments_by_access,
    fragments_of,
    is_symbolic,
    read_shape,
)
from isamap.schedule.supply import Supply, supply
from isamap.schedule.threads import share
from isamap.schedule.treatment import Treatments, by_operand, inputs

BLOCKS: tuple[int | None, ...] = (0, 1, 2, 4, 8, 16, 32, None)
"""Ranks of register blocks that are tried in turn, until storages hold what is needed."""


def first_schedule(
    mapping: Mapping,
    accelerator: Accelerator,
    producers: Producers,
    kernel: Kernel,
    threads: int = 1,
    rank: int | None = 0,
    treatments: Treatments | None = None,
    wanted: Sequence[Treatment] | None = None,
    rolled: AbstractSet[str] = frozenset(),
) -> StatementSchedule:
    """Return a schedule for one mapping of a statement of ``kernel``, whose extents are bound.

    Roles in ``kernel`` are those that buffers have for this statement: what is ``const`` may be
    packed ahead, at no cost for a call (:func:`isamap.ir.ahead.statement_kernel`).

    ``rank`` picks the register block, 0 being the best that should fit; None the smallest.
    ``treatments`` are the mapping's in that kernel, if they are known; how accesses are ``wanted``
    to be treated decides in place of the rules.  The block has one tile of variables that are
    ``rolled``.

    ScheduleError if an operand can reach the instruction in no way.
    """
    if treatments is None:
        buffers = {buffer.name: buffer for buffer in kernel.buffers}
        treatments = Treatments(mapping, producers, buffers, kernel.permissions)
    shape = read_shape(mapping)
    chosen = list(wanted or first_treatments(mapping, treatments))
    if vectorizable(shape, order_outputs(shape), treatments, accelerator):
        rolled = shape.extents.keys()
    come, blocks = blocks_for(shape, chosen, accelerator, treatments)
    block = _picked(shape, blocks, rank, rolled)
    better = chosen
    if wanted is None:
        better = pack_reused(shape, block, better, treatments)
        better = pack_aliased(shape, better, accelerator, treatments)
        order = order_outputs(shape)
        better = pack_scattered(shape, block, better, accelerator, treatments, order)
    if better != chosen:
        chosen = better
        come, blocks = blocks_for(shape, chosen, accelerator, treatments)
        block = _picked(shape, blocks, rank, rolled)
    levels = order_levels(shape, block, accelerator, threads, come.far)
    return with_levels(shape, levels, chosen, treatments, come.far, accelerator)


def _picked(
    shape: Shape, blocks: Sequence[dict[str, int]], rank: int | None, rolled: AbstractSet[str]
) -> dict[str, int]:
    """Return the block of a rank, of those that have one tile of variables that are ``rolled``."""
    found = [block for block in blocks if all(block[v] == 1 for v in rolled)]
    if rank is None or not found:
        return {v: 1 for v in shape.extents}
    return found[min(rank, len(found) - 1)]


def with_levels(
    shape: Shape,
    levels: Sequence[Level],
    chosen: Sequence[Treatment],
    treatments: Treatments,
    far: Sequence[Flow],
    accelerator: Accelerator,
) -> StatementSchedule:
    """Return a schedule of these loops; where to pack and what to ask for ahead is by the rules."""
    single = first_early(shape, block_of(shape, levels), levels, chosen, far, accelerator)
    kinds = by_operand(shape.mapping, chosen)
    made = {operand: treatments.instructions(operand, own) for operand, own in kinds.items()}
    levels = paired(shape, levels, single, far, made, accelerator)
    levels = unrolled(shape, levels, single, chosen, treatments, accelerator)
    inside = copied_inside(shape, levels, chosen, treatments)
    block = block_of(shape, levels)
    early = first_early(shape, block, levels, chosen, far, accelerator)
    if inside:  # what is copied inside loops is near when it is read
        early = tuple(one for one in early if one.access is None or not inside[one.access])
    pitches = treatments.pitches(shape.mapping, chosen)
    return StatementSchedule(
        shape.mapping, tuple(levels), tuple(chosen), inside=inside, early=early, pitches=pitches
    )


def first_early(
    shape: Shape,
    block: Dict[str, int],
    levels: Sequence[Level],
    chosen: Sequence[Treatment],
    far: Sequence[Flow],
    accelerator: Accelerator,
) -> tuple[Early, ...]:
    """Return what a block asks for ahead: see :func:`isamap.schedule.flows.early_flows`."""
    counts = {flow.operand: fragments_of(shape, flow.operand, block) for flow in far}
    return early_flows(shape, block, levels, chosen, far, counts, accelerator)


def first_treatments(
    mapping: Mapping, treatments: Treatments, operands: Container[str] | None = None
) -> list[Treatment]:
    """Return the cheapest treatment of each access of all operands, or of some.

    ScheduleError if an operand can reach the instruction in no way.
    """
    chosen: list[Treatment] = []
    for operand, _ in brought(mapping.matching):
        if operands is not None and operand not in operands:
            continue
        kinds = treatments.feasible(operand)
        if kinds is None:
            name, owner = mapping.matching.needle.name, mapping.matching.needle.owner(operand)
            text = f"operand '{owner}' of {name} cannot be brought to it: "
            raise ScheduleError(Diagnostic("E401", text + treatments.lacking(operand)))
        chosen += kinds
    return chosen


# --- the register block -------------------------------------------------------------------------
def blocks_for(
    shape: Shape, chosen: Sequence[Treatment], accelerator: Accelerator, treatments: Treatments
) -> tuple[Supply, list[dict[str, int]]]:
    """Return how operands that are treated so come to a block, and the blocks, the best first."""
    come = supply(shape, chosen, accelerator, treatments, order_outputs(shape))
    return come, rank_blocks(shape, accelerator, come)


def rank_blocks(shape: Shape, accelerator: Accelerator, come: Supply) -> list[dict[str, int]]:
    """Return the blocks that fit the machine, as tiles of each variable, the best score first."""
    room = _room(shape.mapping, accelerator)
    rolled = {v: 1 for v in shape.reductions}
    inners = [_unrolled(shape)]
    if inners[0] != rolled:
        inners.append(rolled)
    scored: list[tuple[float, int, dict[str, int]]] = []
    for block, inner in product(_blocks(shape, room), inners):
        whole = {**block, **inner}
        score = _score(shape, whole, accelerator, come)
        if score is not None:
            scored.append((score, len(scored), whole))
    if not scored:
        return [{v: 1 for v in shape.extents}]
    return [block for _, _, block in sorted(scored, key=lambda item: item[:2])]


def _room(mapping: Mapping, accelerator: Accelerator) -> int:
    """Return how many results the target's storage can hold."""
    needle = mapping.matching.needle
    operand = needle.operand(needle.target.buffer)
    storage = accelerator.storage(operand.storage or "")
    if storage.kind == "registers":
        return max(1, storage.count or 1)
    if storage.kind == "scratchpad":
        shape = [extent.constant or 1 for extent in operand.shape]
        size = max(1, operand.dtype.bits * prod(shape) // 8)
        return max(1, (storage.size or size) // size)
    return 1


def _unrolled(shape: Shape) -> dict[str, int]:
    """Return the reduction variables that go into the block whole: small windows of known size."""
    tiles = {v: -(-shape.extents[v] // shape.tile[v]) for v in shape.reductions}
    if prod(tiles.values()) <= 12 and not any(is_symbolic(shape, v) for v in tiles):
        return tiles
    return {v: 1 for v in shape.reductions}


def _blocks(shape: Shape, room: int) -> list[dict[str, int]]:
    """Return the blocks of at most ``room`` results, over at most three variables."""
    open_ = [v for v in shape.outputs if v not in shape.frozen]
    tiles = {v: -(-shape.extents[v] // shape.tile[v]) for v in open_}
    # Those are worth blocking along which something is used again, and the longest ones.
    used = [access.names for _, access in inputs(shape.mapping) if access.indices]
    batch = {v for v in open_ if all(v in names for names in used)}
    kept = sorted(open_, key=lambda v: (v in batch, -min(tiles[v], 8), open_.index(v)))[:4]
    options = [range(1, min(tiles[v], room) + 1) for v in kept]
    blocks = []
    for counts in product(*options):
        if prod(counts) <= room:
            block = {v: 1 for v in shape.outputs}
            block.update(zip(kept, counts, strict=True))
            blocks.append(block)
    return blocks


def _score(
    shape: Shape,
    block: dict[str, int],
    accelerator: Accelerator,
    come: Supply,
) -> float | None:
    """Return the estimated cycles a call of a block, or None if it does not fit."""
    entry = shape.mapping.matching.needle.entry
    results = prod(block[v] for v in shape.outputs)
    calls = prod(block.values())
    if calls > max(CALLS_IN_BODY, prod(block[v] for v in shape.reductions)):
        return None
    if come.walks.too_many(block):
        return None
    loads = 0.0
    made = calls * entry.length
    fragments: dict[str, int] = {}
    resident: dict[str, list[int]] = {}
    single = entry.length == 1 and not isinstance(entry, Composed)
    for operand, _ in brought(shape.mapping.matching):
        each = fragments_by_access(shape, operand, block)
        count = fragments[operand] = max(sum(each), 1)
        loads += count * come.costs[operand]
        made += count * come.instructions[operand]
        place = shape.mapping.matching.needle.operand(operand).storage or ""
        resident.setdefault(place, []).extend(_held(each, calls) if len(each) > 1 else [count])
        single = single and come.instructions[operand] <= 1
    if not _fits(shape, block, accelerator, resident, single, come.besides):
        return None
    throughput = max(float(entry.throughput), come.busiest(entry.busy, calls, fragments))
    chained = float(shape.mapping.matching.needle.chain) / results
    compute = max(throughput, chained if shape.reductions else throughput)
    waste = 1.0
    for v in shape.outputs:
        step = block[v] * shape.tile[v]
        waste *= -(-shape.extents[v] // step) * step / max(1, shape.extents[v])
    per_call = (loads + come.crowd.cycles(block)) / calls
    issued = made / max(1, accelerator.issue) / calls
    loop = 0.5 / calls
    pace = come.paced(max(compute, per_call, issued), shape, block, fragments)
    return float((pace + 0.25 * (per_call + issued) + loop) * waste**0.5)


def _held(each: Sequence[int], calls: int) -> list[int]:
    """Return the fragments of an operand that is computed from several, and itself.

    What one call alone uses is not kept for another one.
    """
    return [1 if count >= calls else count for count in (*each, 1)]


def _fits(
    shape: Shape,
    block: dict[str, int],
    accelerator: Accelerator,
    resident: Dict[str, list[int]],
    single: bool,
    besides: Dict[str, int],
) -> bool:
    """Return whether the storages hold a block's results and its fragments, ``resident`` of each.

    One operand streams through a register or two, if it has as many fragments; the others stay for
    the whole block.  One is enough where the core renames registers and every call and load
    is a ``single`` instruction, with nothing in between.  The C of instructions takes registers
    ``besides``, of each file.
    """
    needle = shape.mapping.matching.needle
    results = prod(block[v] for v in shape.outputs)
    target = accelerator.storage(needle.entry.storage(needle.target.buffer))
    file, each = accelerator.register_file(target)
    need = {file.name: results * each}
    for name, counts in resident.items():
        storage = accelerator.storage(name)
        if storage.kind == "scratchpad" and _bytes(shape, block, name) > (storage.size or 0):
            return False
        file, each = accelerator.register_file(storage)
        two = (len(counts) > 1 or results > 1) and not (single and file.renamed)
        streamed = min(max(counts), 2 if two else 1)
        held = (sum(counts) - max(counts) + streamed) * each
        need[file.name] = need.get(file.name, 0) + held
    for operand in needle.entry.scratch if isinstance(needle.entry, Composed) else ():
        file, each = accelerator.register_file(accelerator.storage(operand.storage or ""))
        need[file.name] = need.get(file.name, 0) + each
    for name, number in besides.items():
        need[name] = need.get(name, 0) + number
    if prod(block.values()) <= 1:
        return True
    files = [(accelerator.storage(name), number) for name, number in need.items()]
    return all(f.kind != "registers" or number <= _usable(f, number) for f, number in files)


def _usable(file: Storage, wanted: int) -> int:
    """Return how many registers of a file a block may take, ``wanted`` where there is no bound."""
    return wanted if file.count is None else file.count - file.spare


def _bytes(shape: Shape, block: dict[str, int], storage: str) -> int:
    """Return the bytes of the fragments of a block that lie in a scratchpad."""
    held = 0
    for operand, _ in brought(shape.mapping.matching):
        buffer = shape.mapping.matching.needle.operand(operand)
        if buffer.storage == storage:
            size = prod(extent.constant or 1 for extent in buffer.shape) * buffer.dtype.bytes
            held += size * fragments_of(shape, operand, block)
    return held


# --- the loops ----------------------------------------------------------------------------------
def order_levels(
    shape: Shape,
    block: Dict[str, int],
    accelerator: Accelerator,
    threads: int,
    far: Sequence[Flow] = (),
) -> tuple[Level, ...]:
    """Return the loops: reused panels outermost, reductions inside the results."""
    steps = {v: block[v] * shape.tile[v] for v in shape.extents}
    levels = [
        Level(v, steps[v])
        for v in order_outputs(shape)
        if -(-shape.extents[v] // steps[v]) > 1 or is_symbolic(shape, v)
    ]
    levels = share(shape, levels, threads)
    outer = [Level(v, step) for v, step in cut(shape, block, accelerator, far).items()]
    inner: list[Level] = []
    for v in _reduction_order(shape):
        trips = -(-shape.extents[v] // steps[v])
        if trips > 1 or is_symbolic(shape, v):
            inner.append(Level(v, steps[v]))
    return (*outer, *levels, *inner)


def order_outputs(shape: Shape) -> list[str]:
    """Return the outputs as their loops lie, outermost first.

    Those of reused panels come first.  Where nothing is reduced, nothing is reused for long, and
    loops go along the target: memory likes one long walk better than short ones side by side.
    """
    if not shape.reductions:
        indices = shape.mapping.matching.statement.target.indices
        depth = {v: n for n, index in reversed(list(enumerate(indices))) for v in index.names}
        return sorted(shape.outputs, key=depth.__getitem__)
    laned = {v for v, tile in shape.tile.items() if tile > 1}
    used = [access.names for _, access in inputs(shape.mapping) if access.indices]
    panel = [v for v in shape.outputs if v in laned and any(v not in names for names in used)]
    return panel + [v for v in shape.outputs if v not in panel]


def _reduction_order(shape: Shape) -> tuple[str, ...]:
    """Return the reductions, the one that is contiguous in most accesses innermost.

    Those that move a window are outside the others: what is done at borders changes with them.
    """
    used = [access for _, access in inputs(shape.mapping) if access.indices]
    outputs = set(shape.outputs)
    windows = {v for access in used for i in access.indices if i.names & outputs for v in i.names}

    def contiguity(v: str) -> int:
        return sum(v in access.indices[-1].names for access in used)

    names = list(shape.reductions)
    if not shape.mapping.matching.statement.reduction:
        return tuple(names)
    return tuple(sorted(names, key=lambda v: (v not in windows, contiguity(v), names.index(v))))
