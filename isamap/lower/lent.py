"""Local buffers that lie in the place of an output until the output is written.

A statement such as ``Y[r, c] = E[r, c] / S[r]`` may overwrite what it reads.  Then E needs no
memory of its own: a cache holds more of what is needed, and the lines of Y are fetched while E is
computed.  Units that are queues have no such cache, and what one of them stores in an array
holds back what another one loads from it.
"""

from collections.abc import Iterator

from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statements_ahead
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Kernel, Statement
from isamap.ir.statements import accesses, read_indices, zero_based
from isamap.schedule.overlap import overlapped
from isamap.schedule.rounds import rows_in_round, shares_of
from isamap.schedule.schedule import Schedule


def lent_places(kernel: Kernel, schedule: Schedule, accelerator: Accelerator) -> dict[str, str]:
    """Return for each local buffer that lies in the place of an output the output.

    One statement, with loops of its own, reads the buffer last, each element in the iteration that
    writes the same one of the output, which nothing touches before.  ``kernel`` has its extents
    bound.
    """
    if accelerator.queues is not None:
        return {}
    statements = [zero_based(statement) for statement in kernel.statements]
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    indexed = {r.buffer for s in statements for i in _indices(s) for r in i.reads}
    early = set(statements_ahead(kernel))
    found: dict[str, str] = {}
    for number, own in enumerate(schedule.statements):
        statement = statements[number]
        output = buffers[statement.target.buffer]
        if own.within is not None or output.role != "out" or output.name in found.values():
            continue
        # What goes past the caches is fetched for nothing; what is read again must be there still.
        if own.bypass or overlapped(own) or not _writes_each_once(statement, output):
            continue
        for name in dict.fromkeys(a.buffer for a in accesses(statement.value)):
            lender = buffers[name]
            touching = [n for n, s in enumerate(statements) if _touches(s, name)]
            if (
                lender.role == "local"
                and (lender.shape, lender.dtype) == (output.shape, output.dtype)
                and lender.pad is None
                and output.pad is None
                and not {name, output.name} & indexed
                and not early & set(touching)
                and max(touching) == number
                and not any(_touches(s, output.name) for s in statements[:number])
                and all(_root(schedule, n) < number for n in touching[:-1])
                and all(
                    access.indices == statement.target.indices
                    for access in accesses(statement.value)
                    if access.buffer == name
                )
                and _belongs_to_rounds(kernel, schedule, number, name)
            ):
                found[name] = output.name
                break
    return found


def _indices(statement: Statement) -> Iterator[Index]:
    yield from statement.target.indices
    yield from read_indices(statement.value)


def _touches(statement: Statement, buffer: str) -> bool:
    return any(a.buffer == buffer for a in (statement.target, *accesses(statement.value)))


def _root(schedule: Schedule, number: int) -> int:
    within = schedule.statements[number].within
    return number if within is None else within


def _writes_each_once(statement: Statement, output: Buffer) -> bool:
    """Return whether each element of a buffer is written by one iteration, and none is left out."""
    names = [index.name for index in statement.target.indices]
    extents = {v.name: v.extent for v in statement.variables}
    return (
        statement.reduction == "="
        and len(names) == len(set(names)) == len(extents)
        and all(
            name in extents and extents[name] == size
            for name, size in zip(names, output.shape, strict=True)
            if name is not None
        )
        and None not in names
    )


def _belongs_to_rounds(kernel: Kernel, schedule: Schedule, last: int, name: str) -> bool:
    """Return whether a buffer's elements are touched in that round only in which they are last.

    That is so for a statement without rounds.
    """
    own = schedule.statements[last]
    first = last if own.along is None else own.along
    roots = (first, *schedule.companions(first))
    if len(roots) == 1:
        return True
    everyone = sorted({*roots, *(f for m in roots for f in schedule.followers(m))})
    loops = {n: schedule.statements[n].levels[0] for n in roots if schedule.statements[n].levels}
    shares = shares_of(kernel, everyone, loops)
    if shares is None:
        return False
    target = zero_based(kernel.statements[last]).target
    at = next((d for d, i in enumerate(target.indices) if i.name == shares[last].variable), None)
    return at is not None and all(
        rows_in_round(access.indices[at], shares[n], statement) == shares[last].scale
        for n in everyone
        for statement in [zero_based(kernel.statements[n])]
        for access in _all(statement)
        if access.buffer == name
    )


def _all(statement: Statement) -> tuple[Access, ...]:
    return (statement.target, *accesses(statement.value))
