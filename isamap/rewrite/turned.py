"""The rule that copies a buffer so that windows slide along its last dimension."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from math import inf

from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Statement
from isamap.ir.statements import accesses
from isamap.rewrite.arithmetic import NoTermError
from isamap.rewrite.build import Draft, extents, fresh, replaced
from isamap.rewrite.copies import copied
from isamap.rewrite.once import instead_of, put_together
from isamap.rewrite.rule import Rewriting

NAME = "turn-window"


def turn_windows(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement reading a copy whose last dimension is one that windows slide along.

    ``Y[l, k] += X[l + r, c] * F[r, c, k]`` becomes

        X_turned[j, i] = X[i, j]
        Y[l, k] += X_turned[c, l + r] * F[r, c, k]

    for instructions that take neighbours for several iterations at once.  Packing would copy an
    element for each window that it is in.
    """
    statement = kernel.statements[number]
    for name in dict.fromkeys(access.buffer for access in accesses(statement.value)):
        source = kernel.buffer(name)
        if source.role in ("const", "table") or name == statement.target.buffer:
            continue
        for dim in _slid(statement, name, len(source.shape)):
            with suppress(NoTermError):
                yield _turned(kernel, number, source, dim)


def _slid(statement: Statement, name: str, rank: int) -> list[int]:
    """Return the dimensions of a buffer but the last along which windows slide."""
    read = [access for access in accesses(statement.value) if access.buffer == name]
    sizes = extents(statement)
    return [
        dim
        for dim in range(rank - 1)
        if any(_overlaps(access.indices[dim], sizes) for access in read)
    ]


def _overlaps(index: Index, sizes: Mapping[str, Index]) -> bool:
    """Return whether an index is a sum of variables that has some of its values several times."""
    own = sorted(index.names & sizes.keys())
    if not index.is_linear_in(own):
        return False
    steps = []
    for name in own:
        step, count = index.coefficient(name).constant, sizes[name].constant
        steps.append((inf if step is None else abs(step), inf if count is None else count))
    steps.sort()
    return any(step * count > after for (step, count), (after, _) in pairwise(steps))


def _turned(kernel: Kernel, number: int, source: Buffer, dim: int) -> Rewriting:
    """Return the statement with a dimension of one buffer as the last one of a copy."""
    statement = kernel.statements[number]
    order = [n for n in range(len(source.shape)) if n != dim] + [dim]
    name = fresh(kernel, f"{source.name}_turned")
    moved: dict[Expr, Expr] = {
        access: Access(name, tuple(access.indices[n] for n in order), access.dtype)
        for access in accesses(statement.value)
        if access.buffer == source.name
    }
    changed = instead_of(statement.value, moved)
    back: dict[Expr, Expr] = {after: before for before, after in moved.items()}
    lemma = put_together(NAME, kernel, number, changed, back)
    copy = copied(kernel, source.name, name, lambda element: element, source.pad, order)
    draft = Draft(statement.target, statement.reduction, changed, extents(statement))
    after = replaced(kernel, number, [copy.draft, draft], [copy.buffer])
    note = f"{source.name} with dimension {dim + 1} as the last one: the same elements"
    return Rewriting(NAME, number, after, (lemma,), note)
