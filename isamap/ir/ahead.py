"""What constants alone decide: it is computed once, ahead of all calls that use it.

A step may run ahead if it reads nothing but constants and what other such steps write, and writes
nothing but locals.  Then no call can tell that it ran before: nothing that stays behind has touched
what it writes before it, nor writes it later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from isamap.ir.index import Index
from isamap.ir.nodes import Buffer, Kernel, Role, Statement
from isamap.ir.statements import accesses, read_indices

ONCE = 1e-6
"""What a cycle that is spent once weighs beside one of every call, where both are compared."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The arrays that a step reads, those in which its indices are held included, and writes."""

    reads: frozenset[str]
    writes: frozenset[str]


def ahead(steps: Sequence[Uses], constants: frozenset[str], local: frozenset[str]) -> list[int]:
    """Return the numbers of the steps that may run before all others, in their order.

    ``constants`` hold what they hold for all calls; ``local`` arrays have no content before the
    first step.
    """
    barred: frozenset[str] = frozenset()
    while True:
        found: list[int] = []
        settled: set[str] = set()
        behind: set[str] = set()
        overwritten: set[str] = set()
        for number, step in enumerate(steps):
            known = constants | settled | step.writes
            if step.reads <= known and step.writes <= local - barred - behind:
                found.append(number)
                settled |= step.writes
            else:
                behind |= step.reads | step.writes
                overwritten |= step.writes
        # What a later step changes is no constant, whoever wrote it first.
        if not settled & overwritten:
            return found
        barred |= settled & overwritten


def statements_ahead(kernel: Kernel) -> tuple[int, ...]:
    """Return the numbers of the statements that constants alone decide.

    A kernel that declares no constant has none: there is nothing to be given ahead.
    """
    constants = frozenset(b.name for b in kernel.buffers if b.role in ("const", "table"))
    if not any(b.role == "const" for b in kernel.buffers):
        return ()
    local = frozenset(b.name for b in kernel.buffers if b.role == "local")
    return tuple(ahead([_uses(s) for s in kernel.statements], constants, local))


def statement_kernel(kernel: Kernel, number: int) -> Kernel:
    """Return a kernel of one statement only, for a look at what it costs by itself.

    What other statements leave to it is its input, or a constant if they run ahead.  One that runs
    ahead itself has no constants: all that it does is done once.
    """
    first = statements_ahead(kernel)
    statement = kernel.statements[number]
    before = {s.target.buffer for s in kernel.statements[:number]}
    settled = {kernel.statements[n].target.buffer for n in first}

    def role(buffer: Buffer) -> Role:
        target = buffer.name == statement.target.buffer
        if number in first:
            if target:
                return "inout" if buffer.name in before else "out"
            return "in" if buffer.role in ("const", "local") else buffer.role
        if buffer.name in settled:
            return "const"
        if buffer.name in before and buffer.role in ("out", "local"):
            return "inout"
        return buffer.role

    buffers = tuple(replace(buffer, role=role(buffer)) for buffer in kernel.buffers)
    return replace(kernel, buffers=buffers, statements=(statement,))


def weights(kernel: Kernel) -> tuple[float, ...]:
    """Return what a cycle of each statement weighs: 1, or :data:`ONCE` if it runs ahead."""
    first = statements_ahead(kernel)
    return tuple(ONCE if n in first else 1.0 for n in range(len(kernel.statements)))


@lru_cache(maxsize=1 << 14)
def _uses(statement: Statement) -> Uses:
    target = statement.target
    parts = (*read_indices(target), *read_indices(statement.value), *_ranges(statement))
    held = {read.buffer for index in parts for read in index.reads}
    reads = held | {access.buffer for access in accesses(statement.value)}
    return Uses(frozenset(reads), frozenset({target.buffer}))


def _ranges(statement: Statement) -> tuple[Index, ...]:
    return tuple(end for v in statement.variables for end in (v.lower, v.extent))
