"""The rule that lets a reduction begin by itself: what it was to start from comes last, or goes."""

from collections.abc import Iterator

from isamap.ir.inline import is_whole
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, identity
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.laws import laws, may_reorder
from isamap.rewrite.rule import Rewriting

NAME = "start-last"


def start_last(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a kernel in which a reduction begins with its identity, if another statement starts it.

    ``S[i, j] = 0`` before ``S[i, j] += A[i, k] * B[k, j]`` goes: that is what a sum begins with.
    Another start comes last, as

        S_rest[i, j] += A[i, k] * B[k, j]
        S[i, j] = Bias[j] + S_rest[i, j]

    so that an instruction begins its sums as it can, and the start is added to what it leaves in
    registers.  Sums and products of floats need the permission to reassociate for that.  The start
    has no place of its own any more: a rewriting has a statement less before its ``statement``.
    """
    statement = kernel.statements[number]
    first = _start(kernel, number)
    if first is None:
        return
    before = kernel.statements[first]
    begins = identity(statement.reduction, statement.target.dtype)
    if before.value == begins and _is_fresh(kernel, first):
        claim = f"{print_expr(before.value)} is what {statement.reduction} begins with"
        lemma = equal("start", claim, [(before.value, begins)], "bits")
        note = f"{print_expr(before.target)} begins with {print_expr(before.value)} by itself"
        yield Rewriting(NAME, number, replaced(kernel, first, ()), (lemma,), note)
    elif may_reorder(kernel, statement):
        yield _last(kernel, number, first)


def begins_alike(rewriting: Rewriting) -> bool:
    """Return whether nothing but a start that a reduction has anyway went."""
    return any(lemma.name == "start" for lemma in rewriting.lemmas)


def _last(kernel: Kernel, number: int, first: int) -> Rewriting:
    statement, before = kernel.statements[number], kernel.statements[first]
    target, op = statement.target, REDUCTION_OPERATIONS[statement.reduction]
    name = fresh(kernel, f"{target.buffer}_rest")
    rest = Access(name, target.indices, target.dtype)
    there = Access(name, before.target.indices, target.dtype)
    value: Expr = Op(op, (before.value, there), target.dtype)
    if isinstance(before.value, Literal) and before.value == identity(
        statement.reduction, target.dtype
    ):
        value = there
    drafts = [
        Draft(rest, statement.reduction, statement.value, extents(statement)),
        Draft(before.target, "=", value, extents(before), before.span),
    ]
    shape = kernel.buffer(target.buffer).shape
    after = replaced(kernel, number, drafts, [local(name, target.dtype, shape)])
    why = "the same value in any order"
    if target.dtype.is_float and op in "+*":
        why = "the kernel permits to reassociate"
    note = f"{print_expr(target)} takes {print_expr(before.value)} last, not first: {why}"
    return Rewriting(NAME, number, replaced(after, first, ()), laws(kernel, statement), note)


def _start(kernel: Kernel, number: int) -> int | None:
    """Return the number of the statement that a reduction starts from, None if none does so alone.

    Both are of every element; what is between them is about other buffers; and what the
    start reads is the same after the reduction.
    """
    statement = kernel.statements[number]
    name = statement.target.buffer
    if statement.reduction == "=" or not _is_of_all(kernel, statement):
        return None
    if name in _read(statement):
        return None
    for first in range(number - 1, -1, -1):
        other = kernel.statements[first]
        if other.target.buffer == name:
            break
        if name in _read(other):
            return None
    else:
        return None
    written = {s.target.buffer for s in kernel.statements[first : number + 1]}
    plain = other.reduction == "=" and _is_of_all(kernel, other) and not _read(other) & written
    return first if plain else None


def _read(statement: Statement) -> set[str]:
    """Return the buffers that a statement reads, by whichever way, but not as what it updates."""
    own = [*accesses(statement.value)]
    indices = [index for access in (statement.target, *own) for index in access.indices]
    return {access.buffer for access in own} | {r.buffer for index in indices for r in index.reads}


def _is_of_all(kernel: Kernel, statement: Statement) -> bool:
    """Return whether a statement writes every element of its target."""
    target = statement.target
    return is_whole(target, statement.variables, kernel.buffer(target.buffer))


def _is_fresh(kernel: Kernel, number: int) -> bool:
    """Return whether the buffer that a statement writes has no content before."""
    name = kernel.statements[number].target.buffer
    earlier = any(s.target.buffer == name for s in kernel.statements[:number])
    return kernel.buffer(name).role in ("out", "local") and not earlier
