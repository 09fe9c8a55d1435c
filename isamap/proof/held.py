"""Local buffers of which there is one round only: each of their elements belongs to one round.

Statements and schedules are read as data, and so is the code; nothing here is shared with the
lowering that shortens the buffers.
"""

from collections.abc import Iterable, Iterator, Mapping

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, product
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.statements import accesses
from isamap.lower.nodes import LoweredKernel
from isamap.proof.claim import CODE, Claim
from isamap.proof.rounds import in_rounds
from isamap.proof.touched import touches
from isamap.proof.walk import Site
from isamap.schedule.schedule import Schedule


def held_sizes(kernel: Kernel, schedule: Schedule) -> dict[str, Index]:
    """Return how many elements a round has of each local buffer that may be as short as that.

    In every statement that touches such a buffer, the outermost index tells the round: an iteration
    of the loop has so many rows for itself.  So two iterations that touch one element lie in one
    round.  ``kernel`` has its extents bound.
    """
    found: dict[str, Index] = {}
    for buffer in kernel.buffers:
        if buffer.role != "local" or not buffer.shape:
            continue
        steps: set[tuple[int, int] | None] = set()
        for number, own in enumerate(schedule.statements):
            root = number if own.within is None else own.within
            touched = [a for a in _touched(kernel.statements[number]) if a.buffer == buffer.name]
            if touched:
                steps.add(_round(kernel, schedule, number, root, buffer.name))
        if len(steps) == 1 and (only := steps.pop()) is not None:
            found[buffer.name] = product(buffer.shape[1:]) * only[1]
    return found


def _round(
    kernel: Kernel, schedule: Schedule, number: int, root: int, buffer: str
) -> tuple[int, int] | None:
    """Return whose rounds a statement's accesses to a buffer belong to, and the rows of each.

    None if some access does not belong to the round of its iteration.
    """
    own = schedule.statements[root]
    members = in_rounds(kernel, schedule, root)
    if not own.levels or members is None:
        return None
    first = root if own.along is None else own.along
    if own.along is None and not schedule.companions(root):
        return None
    at = [root, *schedule.followers(root)].index(number)
    statement, place = members[at]
    rows = {
        _rows(a.indices[0], place, statement) for a in _touched(statement) if a.buffer == buffer
    }
    only = rows.pop() if len(rows) == 1 else None
    return None if only is None else (first, only * own.levels[0].step)


def _rows(index: Index, place: Index, statement: Statement) -> int | None:
    """Return how many rows an iteration has: an index is that many times its number, and a rest.

    None if the rest is not sure to be less.
    """
    if place.name is None:
        return None
    count = index.coefficient(place.name).constant or 0
    ends = {v.name: v.extent.constant for v in statement.variables if v.name != place.name}
    known = {name: (0, end - 1) for name, end in ends.items() if end is not None}
    rest = index - place * count
    if place.name in rest.names or not rest.names <= known.keys():
        return None
    low, high = rest.bounds(known) or (-1, 0)
    return count if low >= 0 and high < count else None


def _touched(statement: Statement) -> Iterator[Access]:
    """Yield all accesses of a statement; what an index is read from counts as one without place."""
    for access in (statement.target, *accesses(statement.value)):
        yield access
        for index in access.indices:
            for read in index.reads:
                yield Access(read.buffer, (const(0),), access.dtype)


def held_claims(
    kernel: Kernel,
    lowered: LoweredKernel,
    sizes: Mapping[str, Index],
    found: Iterable[Site],
    entries: Mapping[str, Entry],
) -> Iterator[Claim]:
    """Yield what is claimed of the kernel's local buffers that are shorter than their shape.

    The loop that threads share must be the outermost one where a buffer exists once per thread:
    then an iteration of it has all of a round.
    """
    arrays = {a.name: a for a in lowered.arrays}
    shared: dict[str, set[tuple[str, ...]]] = {}
    for site in found:
        outermost = tuple(name for name, _ in site.context.counters[:1])
        for touch in touches(site, entries):
            if site.context.parallel:
                mixed = outermost != site.context.parallel
                shared.setdefault(touch.array, set()).add(() if mixed else outermost)
    for buffer in kernel.buffers:
        array = arrays.get(buffer.name)
        if buffer.role != "local" or array is None:
            continue
        if array.size != product(buffer.shape):
            text = f"each element of {buffer.name} belongs to one round, which has {array.size}"
            holds = sizes.get(buffer.name) == array.size
            yield Claim(CODE, "held", text, "checker", "proved" if holds else "refuted")
        if array.private:
            loops = shared.get(buffer.name, set())
            text = f"each iteration that threads share has its own {buffer.name}"
            own = len(loops) <= 1 and () not in loops and buffer.name in sizes
            yield Claim(CODE, "held", text, "checker", "proved" if own else "refuted")
