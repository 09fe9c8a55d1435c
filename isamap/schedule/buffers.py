"""How many places in a scratchpad the fragments of an operand take in turn.

With two, the next fragment is brought to one place while the other is still in use.
"""

from collections.abc import Iterator, Sequence

from isamap.diagnostics import Diagnostic
from isamap.hw.accelerator import Accelerator
from isamap.ir.printer import print_expr
from isamap.mapping.matching import Mapping
from isamap.schedule.meant import means
from isamap.schedule.reader import said_twice
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.treatment import inputs
from isamap.schedule.written import WrittenBuffers

MOST = 8
"""Places of one operand at most."""


def first_buffers(accelerator: Accelerator, own: StatementSchedule) -> Iterator[tuple[int, ...]]:
    """Yield what a first schedule tries for a statement, until something fits.

    Two places for everything that is brought in a loop, then for inputs only, then one for all.
    Nothing goes on beside what the host computes, and registers are one place each.
    """
    entry, accesses = own.mapping.matching.needle.entry, len(own.operands)
    beside = accelerator.queues is not None and accelerator.queue(entry) is not None
    if not beside or not accelerator.scratchpads:
        yield ()
        return
    if own.levels:
        yield (2,) * (accesses + 1)
        yield (*(2,) * accesses, 1)
    yield (1,) * (accesses + 1)


def other_buffers(own: StatementSchedule) -> Iterator[tuple[int, ...]]:
    """Yield other places for a schedule that has several: more for what is brought, more for
    results, and one for all.
    """
    if max(own.buffers, default=1) == 1:
        return
    *brought, results = own.buffers
    for more in (3, 4):
        yield (*(max(more, n) for n in brought), results)
    yield (*brought, results + 1)
    yield (1,) * len(own.buffers)


def buffer_texts(own: StatementSchedule) -> list[str]:
    """Return what takes several places: ``A[m, k] as a 2``, and the results last, ``C 2``."""
    found = [
        f"{print_expr(access)} as {operand} {own.places(n)}"
        for n, (operand, access) in enumerate(inputs(own.mapping))
        if own.places(n) > 1
    ]
    if own.places(None) > 1:
        found.append(f"{own.mapping.matching.statement.target.buffer} {own.places(None)}")
    return found


def resolve_buffers(
    written: Sequence[WrittenBuffers],
    mapping: Mapping,
    accelerator: Accelerator,
    faults: list[Diagnostic],
) -> tuple[int, ...]:
    """Return the places that are written, 1 for what is not named; faults are added."""
    pairs = inputs(mapping)
    target = mapping.matching.statement.target.buffer
    found = [1] * (len(pairs) + 1)
    said: dict[int, WrittenBuffers] = {}
    if written and not accelerator.scratchpads:
        text = f"{accelerator.name} has no scratchpad in which something could take turns"
        faults.append(Diagnostic("E415", text, written[0].what.span))
    for own in written:
        if not 1 <= own.count.number <= MOST:
            text = f"from 1 to {MOST} places can be taken in turn, not {own.count.text}"
            faults.append(Diagnostic("E415", text, own.count.span))
            continue
        fits = [n for n, (operand, access) in enumerate(pairs) if means(own, operand, access)]
        if not fits and own.operand is None and own.what.text == target:
            fits = [len(pairs)]
        if not fits:
            known = dict.fromkeys([*(print_expr(access) for _, access in pairs), target])
            text = f"there is no access '{own.what.text}'"
            hint = f"there are {'; '.join(known)}"
            faults.append(Diagnostic("E412", text, own.what.span, hint=hint))
        if before := next((said[n] for n in fits if n in said), None):
            text = f"how many places '{own.what.text}' has is said twice"
            faults.append(said_twice(text, own.what, before.what))
            continue
        said |= dict.fromkeys(fits, own)
        for n in fits:
            found[n] = own.count.number
    return tuple(found)
