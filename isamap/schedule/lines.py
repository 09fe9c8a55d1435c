"""Iterations that are taken together: two, so that lines are asked for ahead half as often, or as
many as make loops cheap.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from dataclasses import replace
from math import prod

from isamap.hw.accelerator import LINE, Accelerator
from isamap.schedule.flows import Flow
from isamap.schedule.schedule import Early, Level, Treatment
from isamap.schedule.shape import Shape, block_of, fragments_of, is_symbolic
from isamap.schedule.treatment import COPIED, Treatments, inputs

SCARCE = 24
"""Instructions of a block to each line that it asks for: with fewer, asking is 4 % of them."""

SHARED = 4
"""Iterations that share a line, at least: with fewer, what asking takes is not worth more code."""

LONG = 32
"""Cycles of the calls of an iteration beside which counting and branching are nothing."""

CALLS_IN_BODY = 128
"""Calls of one unrolled body: more of them fill the instruction cache and the compiler's time."""


def unrolled(
    shape: Shape,
    levels: Sequence[Level],
    early: Sequence[Early],
    chosen: Sequence[Treatment],
    treatments: Treatments,
    accelerator: Accelerator,
) -> tuple[Level, ...]:
    """Return the loops with several iterations of an innermost reduction in a block.

    They are as many as the machine likes and as leave no rest.  Where a block uses a fragment in
    two of them, which it had to keep, the loops stay as they are, and where it reads under
    conditions: compilers move sums from one register to another where branches meet.  So they do
    where an iteration asks for lines ahead, ``early``: those of several at once take longer to
    come.  What takes :data:`LONG` gains nothing, and what is several instructions has registers of
    its own.
    """
    inner = levels[-1] if levels else None
    if (
        inner is None
        or inner.variable not in shape.reductions
        or is_symbolic(shape, inner.variable)
    ):
        return tuple(levels)
    v, block = inner.variable, block_of(shape, levels)
    alone = all(block[other] == 1 for other in shape.reductions)
    found = inputs(shape.mapping)
    asks = any(one.variable == v for one in early)
    entry = shape.mapping.matching.needle.entry
    suits = entry.length == 1 and prod(block.values()) * entry.throughput <= LONG
    if asks or not suits or not alone or any(v not in access.names for _, access in found):
        return tuple(levels)
    for (operand, access), kind in zip(found, chosen, strict=True):
        reference = treatments.reference(operand, access, kind)
        if reference is None or (kind not in COPIED and reference.guards):
            return tuple(levels)
    steps = [level.step for level in levels if level.variable == v]
    around = [shape.extents[v], *steps[:-1]]
    for times in range(accelerator.unroll, 1, -1):
        step = inner.step * times
        if times * prod(block.values()) > CALLS_IN_BODY or any(size % step for size in around):
            continue
        return (*levels[:-1], replace(inner, step=step))
    return tuple(levels)


def lengthened(shape: Shape, levels: Sequence[Level], times: int) -> tuple[Level, ...] | None:
    """Return the loops with so many times as many iterations of an innermost reduction in a block,
    with a rest at the end if need be; None if there are no as many, or it would be too long.
    """
    inner = levels[-1] if levels else None
    if inner is None or inner.variable not in shape.reductions:
        return None
    step, calls = inner.step * times, prod(block_of(shape, levels).values())
    around = [level.step for level in levels[:-1] if level.variable == inner.variable]
    if step > shape.extents[inner.variable] or any(size % step for size in around):
        return None
    if times > 1 and calls * times > CALLS_IN_BODY:
        return None
    return (*levels[:-1], replace(inner, step=step))


def widened(shape: Shape, levels: Sequence[Level]) -> Iterator[tuple[Level, ...]]:
    """Yield the loops with ever more tiles of the results in a block, those side by side first."""
    names = [level.variable for level in levels]
    wide = list(levels)
    for at in range(len(levels) - 1, -1, -1):
        v = wide[at].variable
        size = -(-shape.extents[v] // shape.tile[v]) * shape.tile[v]
        if v not in shape.outputs or names.count(v) > 1 or is_symbolic(shape, v):
            continue
        while wide[at].step < size:
            wide[at] = replace(wide[at], step=min(2 * wide[at].step, size))
            if prod(block_of(shape, wide).values()) > CALLS_IN_BODY:
                return
            yield tuple(wide)


def narrowed(shape: Shape, levels: Sequence[Level]) -> Iterator[tuple[Level, ...]]:
    """Yield the loops with half as many tiles of the results in a block, in each way, and then with
    a half of a half.
    """
    before = [tuple(levels)]
    for _ in range(2):
        halves: dict[tuple[Level, ...], None] = {}
        for wide in before:
            block = block_of(shape, wide)
            for v in shape.outputs:
                if block[v] > 1 and not is_symbolic(shape, v):
                    halves[_cut(wide, v, -(-block[v] // 2) * shape.tile[v])] = None
        before = list(halves)
        yield from before


def _cut(levels: tuple[Level, ...], v: str, step: int) -> tuple[Level, ...]:
    """Return the loops with steps of a block over a variable, in one more loop if there is none."""
    own = [at for at, level in enumerate(levels) if level.variable == v]
    if not own:
        return (Level(v, step), *levels)
    return (*levels[: own[-1]], replace(levels[own[-1]], step=step), *levels[own[-1] + 1 :])


def paired(
    shape: Shape,
    levels: Sequence[Level],
    early: Sequence[Early],
    far: Sequence[Flow],
    made: Dict[str, int],
    accelerator: Accelerator,
) -> tuple[Level, ...]:
    """Return the loops with two iterations of the innermost one in a block, where many share lines.

    ``early`` is what a block of one iteration asks for, ``far`` has the inputs from far away, and
    a fragment of an operand is ``made`` by so many instructions.
    The loops stay where asking costs little, and where loads convert.  (Compilers bring early what
    takes long, for which there are no registers then, nor are there for more than two iterations.)
    """
    cache = accelerator.prefetched
    needle = shape.mapping.matching.needle
    converts = any(needle.operand(o).dtype != access.dtype for o, access in inputs(shape.mapping))
    if cache is None or not levels or converts:
        return tuple(levels)
    inner = levels[-1]
    block = block_of(shape, levels)
    fragments = {name: fragments_of(shape, name, block) for name in made}
    asked = {one.access for one in early if not one.shared and one.variable == inner.variable}
    coming = [fragments[f.operand] * f.bytes for f in far if f.access in asked]
    calls = prod(block.values())
    instructions = calls * needle.entry.length
    instructions += sum(count * made[name] for name, count in fragments.items())
    if not coming or instructions >= SCARCE * len(coming):
        return tuple(levels)
    step = 2 * inner.step
    if SHARED * max(coming) > (cache.line or LINE) or step > shape.extents[inner.variable]:
        return tuple(levels)
    return tuple(
        replace(level, step=-(-level.step // step) * step)
        if level.variable == inner.variable
        else level
        for level in levels
    )
