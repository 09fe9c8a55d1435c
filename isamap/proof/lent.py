"""Local buffers that lie where an output does: what one holds is not lost to the other.

Statements and schedules are read as data; nothing here is shared with the lowering that finds such
places.  Two things are needed.  As the statements are written, all that touches an element of the
local buffer comes before all that touches the same one of the output, but for the iteration that
reads the one and writes the other.  And the order in which they are executed keeps that: it is
claimed of the kernel in which both are one buffer (:func:`in_place`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from isamap.ir.nodes import Access, Expr, Kernel, Op, Reduce, Statement
from isamap.ir.statements import accesses
from isamap.lower.nodes import LoweredKernel
from isamap.proof.claim import CODE, Claim
from isamap.schedule.schedule import Schedule


def in_place(kernel: Kernel, lowered: LoweredKernel) -> Kernel:
    """Return the kernel with each buffer that lies in another one's place under its name."""
    places = dict(lowered.lent)
    if not places:
        return kernel
    return replace(kernel, statements=tuple(_renamed(s, places) for s in kernel.statements))


def _renamed(statement: Statement, places: Mapping[str, str]) -> Statement:
    target = _moved(statement.target, places)
    assert isinstance(target, Access)
    return replace(statement, target=target, value=_moved(statement.value, places))


def _moved(expr: Expr, places: Mapping[str, str]) -> Expr:
    match expr:
        case Access(buffer=buffer):
            return replace(expr, buffer=places.get(buffer, buffer))
        case Op(args=args):
            return replace(expr, args=tuple(_moved(arg, places) for arg in args))
        case Reduce(body=body):
            return replace(expr, body=_moved(body, places))
        case _:
            return expr


def lent_claims(kernel: Kernel, schedule: Schedule, lowered: LoweredKernel) -> Iterator[Claim]:
    """Yield what is claimed of each local buffer that lies where an output does.

    ``kernel`` has its extents bound.
    """
    takers = [place for _, place in lowered.lent]
    for name, place in lowered.lent:
        text = f"{name} lies in {place}, which is touched only where {name} is read last"
        faults = [*_unlike(kernel, lowered, name, place)]
        if takers.count(place) > 1:
            faults.append("another buffer lies there, too")
        if not faults:
            faults += _mixed(kernel, schedule, name, place)
        told = "; ".join(faults[:3])
        yield Claim(CODE, "lent", text, "checker", "refuted" if faults else "proved", detail=told)


def _unlike(kernel: Kernel, lowered: LoweredKernel, name: str, place: str) -> Iterator[str]:
    """Yield why one buffer cannot stand for another, whatever the statements do."""
    buffers = {b.name: b for b in kernel.buffers}
    one, other = buffers.get(name), buffers.get(place)
    if one is None or other is None or (one.role, other.role) != ("local", "out"):
        yield "one must be a local buffer and the other an output"
        return
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        yield "they are not alike"
    if one.pad is not None or other.pad is not None:
        yield "they are padded"
    if any(array.name == name for array in lowered.arrays):
        yield f"{name} has memory of its own"
    for statement in kernel.statements:
        for access in (statement.target, *accesses(statement.value)):
            reads = [read.buffer for index in access.indices for read in index.reads]
            if {name, place} & set(reads):
                yield "one of them holds indices"
                return


def _mixed(kernel: Kernel, schedule: Schedule, name: str, place: str) -> Iterator[str]:
    """Yield which statements touch an element of one that the other still needs."""
    touched = [(statement.target, *accesses(statement.value)) for statement in kernel.statements]
    earlier = [n for n, own in enumerate(touched) if any(a.buffer == name for a in own)]
    later = [n for n, own in enumerate(touched) if any(a.buffer == place for a in own)]
    for n in earlier:
        for m in later:
            if n > m:
                yield f"statement {n + 1} touches {name} after statement {m + 1} did {place}"
            if n < m and _when(schedule, n) >= _when(schedule, m):
                # What another one of the same loops reads of it was written there before, where
                # the one buffer's element had been read last.
                own = kernel.statements[n]
                is_taker = n in later and _reads_what_it_overwrites(own, name, place)
                if is_taker and touched[m][0].buffer != place:
                    continue
                yield f"statements {n + 1} and {m + 1} are executed as one"
            if n == m and not _reads_what_it_overwrites(kernel.statements[n], name, place):
                yield f"statement {n + 1} reads {name} elsewhere than it writes {place}"
    if not any(_is_whole(kernel, statement, place) for statement in kernel.statements):
        yield f"not all of {place} is written"


def _when(schedule: Schedule, number: int) -> int:
    """Return the statement whose loops execute a statement."""
    within = schedule.statements[number].within
    return number if within is None else within


def _reads_what_it_overwrites(statement: Statement, name: str, place: str) -> bool:
    """Return whether each iteration has an element of its own, which it reads, then writes."""
    target = statement.target
    reads = [a for a in accesses(statement.value) if a.buffer == name]
    iterated = [v.name for v in statement.variables]
    return (
        target.buffer == place
        and statement.reduction == "="
        and all(access.indices == target.indices for access in reads)
        and sorted(iterated) == sorted(index.name or "" for index in target.indices)
    )


def _is_whole(kernel: Kernel, statement: Statement, place: str) -> bool:
    """Return whether a statement writes all of a buffer."""
    if statement.target.buffer != place:
        return False
    shape = next(b.shape for b in kernel.buffers if b.name == place)
    ranges = {v.name: v for v in statement.variables}
    names = [index.name for index in statement.target.indices]
    return len(set(names)) == len(names) and all(
        name in ranges and ranges[name].extent == size and ranges[name].lower.constant == 0
        for name, size in zip(names, shape, strict=True)
    )
