"""Operands too large for the second cache: every pass over them comes from farther away.

While an operand comes, nothing else of it can be done than the calls of that pass.  Where a block
has all that an operand is used for, its loops pass it once, and computing and bringing overlap all
the time; else the first pass waits for it, and the passes after it find it in the second cache,
unless those over the panel before ask for it, a part each.
"""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod

from isamap.hw.accelerator import LINE, Accelerator, Storage
from isamap.ir.nodes import Access
from isamap.schedule.schedule import Early, Level, Treatment
from isamap.schedule.shape import ASSUMED_EXTENT, Shape
from isamap.schedule.treatment import PACKED, Treatments, inputs, numeric
from isamap.schedule.walk import cycles_a_byte, unforeseen, walk

FITS = 2 / 3
"""Part of a cache that one operand may take: the others need the rest."""

STAYS = 1 / 4
"""Part of the first cache that stays there while others stream by: of 32 KiB, 8 KiB that were read
again for each row of 64 MB did, and 16 KiB did not.
"""

HINT = 4
"""Cycles of a block to each line that is asked for, at least: asking takes a load's place.  In
products of 4 to 64 rows by 13 to 40 MB of weights asking was 1.2 to 1.6 times as fast.
"""

PASSES = 8
"""Passes over a panel, at most, where lines are asked for: the first one alone needs them."""

SHARING = 32
"""Passes over a panel, at most, that share in asking for the next one.  In products of f32 by 8 to
64 MB of weights that was 1.2 to 1.4 times as fast at 4 to 16 passes, and made no difference at 117.
"""

LOADED = 4
"""How much longer than one line alone many take, one behind the other: of 16 to 512 iterations
ahead in a product of 16 rows by 12 MB (8 cycles each, latency 125), 16 were too few, 64 the best.
"""


@dataclass(frozen=True, slots=True)
class Flow:
    """An input that comes from beyond the second cache.

    ``access`` is its position among the inputs, ``operand`` the instruction's, ``names`` the
    variables that move it.  A fragment has so many ``bytes``, and they come from ``source``.
    ``reuse`` are the outputs over whose loops a panel of it is passed again.  ``steps`` are the
    bytes from one tile of a variable to the next, those of the innermost loop first; none of what
    is packed, which lies in the order of the loops.  So many other inputs as ``windows`` says lie
    so many bytes from it and from each other, and come with it.
    """

    access: int
    operand: str
    names: frozenset[str]
    bytes: int
    source: Storage
    reuse: tuple[str, ...]
    steps: tuple[tuple[str, int], ...] = ()
    windows: tuple[int, int] = (1, 0)
    regional: bool = False

    def passes(self, shape: Shape, block: Dict[str, int]) -> int:
        """Return how often a panel is passed; the first time it comes from far away."""
        return prod(ceil(shape.extents[v] / (block[v] * shape.tile[v])) for v in self.reuse)

    def paced(self, own: float, shape: Shape, block: Dict[str, int], fragments: int) -> float:
        """Return the cycles a call, where a call takes ``own`` once all is near.

        A block has ``fragments`` of the operand.
        """
        passes = self.passes(shape, block)
        coming = self.coming(shape, block, fragments)
        return max(own, coming) / passes + own * (1 - 1 / passes)

    def coming(self, shape: Shape, block: Dict[str, int], fragments: int) -> float:
        """Return the cycles a call in which ``fragments`` for a block come.

        They come for a block that is cut short at the end as well as for a whole one.
        """
        part = unforeseen(*self._walks(shape, block)) if self.steps else 0.0
        calls = float(prod(block.values()))
        for v in block.keys() - self.names:
            tiles = ceil(shape.extents[v] / shape.tile[v])
            calls *= tiles / (ceil(tiles / block[v]) * block[v])
        return fragments * self.bytes * cycles_a_byte(self.source, part) / calls

    def jumps(self, shape: Shape, block: Dict[str, int], variable: str) -> bool:
        """Return whether each iteration of an innermost loop reads elsewhere than the one before.

        What is packed lies in the order of the loops, but not in that of any walk which is seen.
        """
        step = dict(self.steps).get(variable, 0) * block[variable]
        return not self.steps or step >= 2 * self._stretch(shape, block)[0]

    def _walks(self, shape: Shape, block: Dict[str, int]) -> tuple[float, float]:
        """Return the bytes that a block walks before it jumps, and in how many places at a time."""
        length, rows = self._stretch(shape, block)
        beside = prod(count for _, count in rows)
        places = [0.0]
        if self.regional:
            for step, count in rows:
                places = [place + n * step for place in places for n in range(count)]
        loops = [
            (shape.extents[v] / (block[v] * shape.tile[v]), step * block[v])
            for v, step in self.steps
        ]
        return walk(length, loops, places), beside

    def _stretch(
        self, shape: Shape, block: Dict[str, int]
    ) -> tuple[float, list[tuple[float, int]]]:
        """Return the bytes next to each other that one block has, and the steps and the numbers of
        what else it has of such."""
        length = self.bytes / prod(shape.tile[v] for v in self.names)
        rows: list[tuple[float, int]] = []
        # From elements that are next to each other to those far apart.
        inside = [(step / shape.tile[v], block[v] * shape.tile[v]) for v, step in self.steps]
        others, apart = self.windows
        for step, count in sorted([*inside, (float(apart), others)]):
            if count > 1 and step > length:
                rows.append((step, count))
            else:
                length += step * (count - 1)
        return length, rows


def flows(
    shape: Shape,
    chosen: Sequence[Treatment],
    accelerator: Accelerator,
    treatments: Treatments,
    order: Sequence[str],
) -> tuple[Flow, ...]:
    """Return the inputs of a mapping that no second cache holds.

    ``order`` are the statement's outputs as their loops lie, outermost first.
    """
    near = accelerator.second_cache
    if near is None:
        return ()
    found = []
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        names = access.names & shape.extents.keys()
        whole = treatments.elements(operand, access, chosen[n]) * access.dtype.bytes
        source = _source(accelerator, whole)
        if whole <= FITS * near or source is None or not source.read or not names:
            continue
        moving = [order.index(v) for v in order if v in names]
        reuse = tuple(v for v in order[max(moving, default=-1) + 1 :] if v not in names)
        size = prod(shape.tile[v] for v in names) * access.dtype.bytes
        steps = _steps(shape, operand, access, chosen[n], treatments, order)
        together = _windows(shape, n, chosen, treatments) if steps else (1, 0)
        found.append(
            Flow(n, operand, names, size, source, reuse, steps, together, accelerator.regional)
        )
    return tuple(found)


def _windows(
    shape: Shape, number: int, chosen: Sequence[Treatment], treatments: Treatments
) -> tuple[int, int]:
    """Return how many inputs are read in step with one of them, and how many bytes lie between
    neighbours; (1, 0) where distances differ.
    """
    every = [
        (treatments.reference(operand, access, kind), access)
        for (operand, access), kind in zip(inputs(shape.mapping), chosen, strict=True)
        if kind not in PACKED
    ]
    operand, access = inputs(shape.mapping)[number]
    own = treatments.reference(operand, access, chosen[number])
    assert own is not None, "it has steps"
    offsets = set()
    for other, its in every:
        if other is not None and its.buffer == access.buffer and other.array == own.array:
            apart = (other.offset - own.offset).constant
            if apart is not None:
                offsets.add(apart)
    gaps = {high - low for low, high in pairwise(sorted(offsets))}
    return (len(offsets), gaps.pop() * access.dtype.bytes) if len(gaps) == 1 else (1, 0)


def driven_out(
    shape: Shape, chosen: Sequence[Treatment], accelerator: Accelerator, treatments: Treatments
) -> tuple[Flow, ...]:
    """Return the inputs that are passed again and again, and that no first cache keeps meanwhile.

    That is where other inputs stream by; these come from the second cache.
    """
    caches = [s for s in accelerator.storages if s.kind == "cache" and s.size]
    if len(caches) < 2 or not caches[1].read:
        return ()
    first, second = (s.size or 0 for s in caches[:2])
    found = []
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        names = access.names & shape.extents.keys()
        whole = treatments.elements(operand, access, chosen[n]) * access.dtype.bytes
        if STAYS * first < whole <= FITS * second and names and not names.issuperset(shape.outputs):
            size = prod(shape.tile[v] for v in names) * access.dtype.bytes
            found.append(Flow(n, operand, names, size, caches[1], ()))
    return tuple(found)


def _steps(
    shape: Shape,
    operand: str,
    access: Access,
    treatment: Treatment,
    treatments: Treatments,
    order: Sequence[str],
) -> tuple[tuple[str, int], ...]:
    """Return how far apart tiles of an access lie in bytes, those of the innermost loop first."""
    reference = treatments.reference(operand, access, treatment)
    if treatment in PACKED or reference is None:
        return ()
    names = reference.offset.names & shape.extents.keys()
    if not reference.offset.is_linear_in(names):
        return ()
    steps = {
        v: abs(numeric(reference.offset.coefficient(v), ASSUMED_EXTENT))
        * shape.tile[v]
        * access.dtype.bytes
        for v in names
    }
    reduced = sorted((v for v in shape.reductions if v in steps), key=steps.__getitem__)
    return tuple((v, steps[v]) for v in (*reduced, *reversed(order)) if v in steps)


def early_flows(
    shape: Shape,
    block: Dict[str, int],
    levels: Sequence[Level],
    chosen: Sequence[Treatment],
    found: Sequence[Flow],
    fragments: Dict[str, int],
    accelerator: Accelerator,
) -> tuple[Early, ...]:
    """Return which inputs to ask for ahead, by the time that they need to come.

    These are packed ones, in whose order hardware sees no walk that it knows in time, and others
    of which each iteration of the innermost loop reads another row.  A product of 35 rows by 700
    columns of 2048 rows each, 48 columns at a time, took 0.8 times as long so.

    So many iterations ahead as fit into the latency, see Mowry, Lam and Gupta: Design and
    Evaluation of a Compiler Algorithm for Prefetching (ASPLOS 1992), rounded up to a power of two.
    ``fragments`` has how many fragments of each operand are in a block.
    """
    cache = accelerator.prefetched
    if cache is None or not levels:
        return ()
    calls = prod(block.values()) * float(shape.mapping.matching.needle.entry.throughput)
    result = []
    for flow in found:
        coming = fragments[flow.operand] * flow.bytes
        lines = ceil(coming / (cache.line or LINE))
        cycles = max(calls, coming * cycles_a_byte(flow.source, 0.0))
        packed = chosen[flow.access] in PACKED
        innermost = levels[-1].variable
        if innermost not in flow.names or not flow.jumps(shape, block, innermost):
            continue
        passes = flow.passes(shape, block)
        latency = float(flow.source.latency or 0)
        if not latency or lines * HINT > cycles * passes:
            continue
        if lines * HINT <= cycles and passes <= PASSES:
            ahead = 1
            while ahead * cycles < LOADED * latency:
                ahead *= 2
            result.append(Early(flow.access, ahead, innermost))
        outer = _outer(flow, levels)
        if outer is not None and packed and passes <= SHARING:
            result.append(Early(flow.access, 1, outer, shared=True))
    return tuple(result)


def _outer(flow: Flow, levels: Sequence[Level]) -> str | None:
    """Return the variable whose next iteration can come while this one is passed several times.

    None if there is no such loop.
    """
    moving = [level.variable in flow.names for level in levels]
    still = [n for n, moves in enumerate(moving) if not moves]
    around = [n for n, moves in enumerate(moving) if moves and still and n < still[-1]]
    if not around:
        return None
    variable = levels[around[-1]].variable
    inner = [level.variable for level in levels[around[-1] + 1 :]]
    return None if variable in inner else variable


def _source(accelerator: Accelerator, whole: int) -> Storage | None:
    """Return the nearest cache that holds so many bytes, or the memory."""
    levels = [s for s in accelerator.storages if s.kind in ("cache", "memory")]
    holding = (s for s in levels if s.kind == "memory" or whole <= FITS * (s.size or 0))
    return next(holding, None)
