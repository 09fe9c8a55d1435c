"""Results that go to memory past the caches: those that would only drive out what is in them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statements_ahead
from isamap.ir.index import product
from isamap.ir.inline import ApartError
from isamap.ir.nodes import Buffer, Kernel, Statement
from isamap.ir.statements import accesses
from isamap.lower.finish import KEPT, finishing
from isamap.lower.held import held_elements
from isamap.lower.lent import lent_places
from isamap.lower.reuse import HELD
from isamap.schedule.rounds import shares_of
from isamap.schedule.schedule import Schedule, StatementSchedule


def uncached(
    kernel: Kernel,
    accelerator: Accelerator,
    schedule: Schedule,
    settled: AbstractSet[int],
    waits: bool = False,
) -> Schedule:
    """Return the schedule in which results bypass the caches that cannot hold them anyway.

    They are those of outputs that the largest cache does not hold, are written once, and are read
    by nothing in the kernel, whose extents are bound.  They hold nothing else before either, unless
    the kernel ``waits`` for memory, and a round's part of that needs little room elsewhere.
    Statements that are ``settled``, or say already how their results are stored, stay as they are.
    """
    cache = accelerator.largest_cache
    if cache is None or not accelerator.past_stores:
        return schedule
    apart = {*settled, *statements_ahead(kernel)}
    lent = lent_places(kernel, schedule, accelerator)
    own = list(schedule.statements)
    for root, one in enumerate(own):
        if one.within is not None or one.bypass is not None or root in apart:
            continue
        stored = _stored(kernel, root, schedule.followers(root))
        held = _held(kernel, schedule, root) if waits else frozenset()
        kept = {output for name, output in lent.items() if name not in held}
        leave = all(_leaves(kernel, name, cache) and name not in kept for name in stored)
        if stored and leave and _is_complete(one):
            own[root] = replace(one, bypass=True)
    return replace(schedule, statements=tuple(own))


def _held(kernel: Kernel, schedule: Schedule, root: int) -> frozenset[str]:
    """Return the local buffers of which the rounds of a statement need their own rows only."""
    own = schedule.statements[root]
    first = root if own.along is None else own.along
    roots = (first, *schedule.companions(first))
    if len(roots) == 1:
        return frozenset()
    everyone = sorted({*roots, *(f for m in roots for f in schedule.followers(m))})
    loops = {n: schedule.statements[n].levels[0] for n in roots}
    shares = shares_of(kernel, everyone, loops)
    return frozenset(held_elements(kernel, shares, loops[first].step) if shares else ())


def _is_complete(own: StatementSchedule) -> bool:
    """Return whether no loop over a reduction makes results be stored in parts."""
    target = own.mapping.matching.statement.target
    used = target.names
    outputs = [n for n, level in enumerate(own.levels) if level.variable in used]
    last = outputs[-1] if outputs else -1
    return all(level.variable in used for level in own.levels[: last + 1])


def _stored(kernel: Kernel, root: int, followers: Sequence[int]) -> tuple[str, ...]:
    """Return the buffers that are written from the registers of a statement."""
    try:
        after = finishing(kernel, root, followers) if followers else KEPT
    except ApartError:
        return ()
    names = [finish.target.buffer for finish in after.finishes]
    return (*names, *([kernel.statements[root].target.buffer] if after.kept else []))


def _leaves(kernel: Kernel, name: str, cache: int) -> bool:
    """Return whether an output does not stay in a cache, written once and read by nothing."""
    buffer: Buffer = next(b for b in kernel.buffers if b.name == name)
    size = product(buffer.shape).constant
    if buffer.role != "out" or size is None or size * buffer.dtype.bytes <= HELD * cache:
        return False
    writers = [s for s in kernel.statements if s.target.buffer == name]
    return len(writers) == 1 and not any(name in _read(s) for s in kernel.statements)


def _read(statement: Statement) -> frozenset[str]:
    found = {access.buffer for access in accesses(statement.value)}
    for access in (statement.target, *accesses(statement.value)):
        found |= {read.buffer for index in access.indices for read in index.reads}
    return frozenset(found)
