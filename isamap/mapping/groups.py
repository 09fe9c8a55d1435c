"""Statements of a kernel that one instruction may compute together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from isamap.ir.index import const
from isamap.ir.inline import ApartError, inline
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.statements import accesses, bind_extents, reduces

MOST_STATEMENTS = 8
"""Statements of a group at most."""


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive statements of a kernel, and the one that they are together.

    ``first`` and ``count`` say which they are; a group of one is a reduction from its identity,
    told as an assignment.  ``inner`` are the locals that only the group uses: with the group as one
    statement nothing else is left of them.
    """

    first: int
    count: int
    statement: Statement
    inner: frozenset[str]


def groups(kernel: Kernel) -> tuple[Group, ...]:
    """Return the groups of a kernel, the shorter ones first; extents with a value are numbers."""
    bound = bind_extents(kernel)
    found = []
    for count in range(1, min(MOST_STATEMENTS, len(bound.statements)) + 1):
        for first in range(len(bound.statements) - count + 1):
            group = _group(bound, first, count)
            if group is not None:
                found.append(group)
    return tuple(found)


def grouped(kernel: Kernel, chosen: Sequence[Group]) -> Kernel:
    """Return a kernel with some groups, which share no statement, as one statement each."""
    if not chosen:
        return kernel
    starts = {group.first: group for group in chosen}
    gone = frozenset().union(*(group.inner for group in chosen))
    statements: list[Statement] = []
    number = 0
    while number < len(kernel.statements):
        group = starts.get(number)
        statements.append(group.statement if group else kernel.statements[number])
        number += group.count if group else 1
    buffers = tuple(b for b in kernel.buffers if b.name not in gone)
    return replace(kernel, buffers=buffers, statements=tuple(statements))


def covers(kernel: Kernel, chosen: Sequence[Group]) -> tuple[tuple[int, ...], ...]:
    """Return for each statement of :func:`grouped` the numbers of those that it stands for."""
    starts = {group.first: group.count for group in chosen}
    found: list[tuple[int, ...]] = []
    number = 0
    while number < len(kernel.statements):
        count = starts.get(number, 1)
        found.append(tuple(range(number, number + count)))
        number += count
    return tuple(found)


def whole_variables(statement: Statement) -> frozenset[str]:
    """Return the variables that one instruction must run through whole.

    They are those of reductions within the value: what comes after needs the complete result.
    """
    names = {name for found in reduces(statement.value) for name in found.variables}
    return frozenset(
        v.name for v in statement.variables if v.name in names and v.extent != const(1)
    )


def _group(kernel: Kernel, first: int, count: int) -> Group | None:
    """Return some statements as one, if nothing else sees what they leave on the way."""
    run = kernel.statements[first : first + count]
    outside = (*kernel.statements[:first], *kernel.statements[first + count :])
    last = run[-1].target.buffer
    inner = frozenset(s.target.buffer for s in run) - {last}
    if any(kernel.buffer(name).role != "local" for name in inner):
        return None
    if inner & frozenset(name for s in outside for name in _touched(s)):
        return None
    begun = frozenset(s.target.buffer for s in kernel.statements[:first])
    if count == 1 and (run[0].reduction == "=" or kernel.buffer(last).role == "inout"):
        return None
    if count == 1 and last in begun:
        return None
    try:
        statement = inline(run, {b.name: b for b in kernel.buffers}, begun)
    except ApartError:
        return None
    # Every statement must count: one that is only passed over belongs to no group.
    if count > 1 and not _is_chain(run):
        return None
    return Group(first, count, statement, inner)


def _is_chain(run: Sequence[Statement]) -> bool:
    """Return whether each statement's result is read, or added to, by a later one."""
    return all(
        any(
            one.target.buffer in {a.buffer for a in accesses(other.value)}
            or (other.target.buffer == one.target.buffer and other.reduction != "=")
            for other in run[n + 1 :]
        )
        for n, one in enumerate(run[:-1])
    )


def _touched(statement: Statement) -> Iterator[str]:
    for access in (statement.target, *accesses(statement.value)):
        yield access.buffer
        for index in access.indices:
            yield from (read.buffer for read in index.reads)
