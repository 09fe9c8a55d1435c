"""The rule that computes once, beforehand, what many iterations of a statement compute alike."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from isamap.ir.index import Index, var
from isamap.ir.literal import LiteralFault, canonical, value
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, names
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.copies import copied, elements
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.shaped import generalised
from isamap.solver.lemma import Lemma

NAME = "compute-once"

OFTEN = 4
"""How many iterations at least share a value that is worth a place in memory."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a value in a buffer of its own, and how the statement reads it there."""

    expr: Op
    read: Access
    buffer: Buffer
    draft: Draft
    lemmas: tuple[Lemma, ...] = ()


def compute_once(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement reading what several of its iterations share from buffers.

    ``Y[m, n] += f32(A[m, k]) * (f32(B[k, n]) * s[n])`` becomes

        Y_once[k, n] = f32(B[k, n]) * s[n]
        A_f32[i, j] = f32(A[i, j])
        Y[m, n] += A_f32[m, k] * Y_once[k, n]

    What reads one buffer only is done for all of its elements, as windows share them; other parts
    are done for all values of their variables.  All parts are taken together and, where there are
    several, each alone.
    """
    statement = kernel.statements[number]
    if not isinstance(statement.value, Op):
        return
    parts: list[_Part] = []
    for expr in dict.fromkeys(_shared(statement, statement.value)):
        part = _part(kernel, statement, expr, [part.buffer.name for part in parts])
        if part is not None:
            parts.append(part)
    # Only what is straight before the statement may be computed in its outermost loop: the largest.
    parts.sort(key=lambda part: elements(part.buffer))
    groups = [parts] if parts else []
    groups += [[part] for part in parts if len(parts) > 1]
    for group in groups:
        with suppress(NoTermError):
            yield _rewritten(kernel, number, group)


def _rewritten(kernel: Kernel, number: int, parts: Sequence[_Part]) -> Rewriting:
    statement = kernel.statements[number]
    changed = instead_of(statement.value, {part.expr: part.read for part in parts})
    same = put_together(NAME, kernel, number, changed, {part.read: part.expr for part in parts})
    lemmas = (same, *(lemma for part in parts for lemma in part.lemmas))
    drafts = [part.draft for part in parts]
    drafts.append(Draft(statement.target, statement.reduction, changed, extents(statement)))
    after = replaced(kernel, number, drafts, [part.buffer for part in parts])
    said = " and ".join(f"{print_expr(part.expr)} in {part.buffer.name}" for part in parts)
    note = f"{said}, once for each element in place of once for each use: the same operations"
    return Rewriting(NAME, number, after, lemmas, note)


def put_together(
    rule: str, kernel: Kernel, number: int, changed: Expr, back: Mapping[Expr, Expr]
) -> Lemma:
    """Return the lemma that a ``changed`` value is a statement's with some parts put ``back``.

    NoTermError where that cannot be said.
    """
    value = kernel.statements[number].value
    claim = f"{print_expr(value)} = {print_expr(changed)}, put together again"
    pair = generalised(value, instead_of(changed, back))
    return equal(rule, claim, [pair], "bits", kernel.permissions.finite)


def _shared(statement: Statement, expr: Expr) -> Iterator[Op]:
    """Yield the largest operations that iterations along some variable share."""
    if not isinstance(expr, Op):
        return
    if names(expr) < {v.name for v in statement.variables} and is_plain(expr) and accesses(expr):
        yield expr
        return
    for arg in expr.args:
        yield from _shared(statement, arg)


def _part(kernel: Kernel, statement: Statement, expr: Op, taken: Sequence[str]) -> _Part | None:
    """Return an operation in a buffer; None where that gains nothing, or cannot be said."""
    read = tuple(dict.fromkeys(accesses(expr)))
    if len(read) == 1:
        return _of_buffer(kernel, statement, expr, read[0], taken)
    return _of_variables(kernel, statement, expr, taken)


def _of_buffer(
    kernel: Kernel, statement: Statement, expr: Op, access: Access, taken: Sequence[str]
) -> _Part | None:
    """Return what is computed of one buffer, done for all of its elements."""
    source = kernel.buffer(access.buffer)
    if rare(statement, source.shape):
        return None
    pad: Literal | None = None
    lemmas: tuple[Lemma, ...] = ()
    if source.pad is not None:
        pad = _converted(source.pad, expr)
        if pad is None:
            return None
        claim = f"the padding {print_expr(source.pad)} of {source.name} is {print_expr(pad)}"
        lemmas = (equal(NAME, claim, [(replace(expr, args=(source.pad,)), pad)]),)
    kind = expr.dtype if expr.op == "cast" and expr.args == (access,) else "once"
    name = fresh(kernel, f"{source.name}_{kind}", taken)
    made = copied(kernel, source.name, name, lambda one: instead_of(expr, {access: one}), pad)
    return _Part(expr, Access(name, access.indices, expr.dtype), made.buffer, made.draft, lemmas)


def _of_variables(
    kernel: Kernel, statement: Statement, expr: Op, taken: Sequence[str]
) -> _Part | None:
    """Return what is computed of several buffers, done for all values of its variables."""
    sizes = {v: size for v, size in extents(statement).items() if v in names(expr)}
    indices = [index for access in accesses(expr) for index in access.indices]
    plain = all(index.name is not None or not index.names for index in indices)
    if not plain or rare(statement, tuple(sizes.values())):
        return None
    name = fresh(kernel, f"{statement.target.buffer}_once", taken)
    place = Access(name, tuple(map(var, sizes)), expr.dtype)
    buffer = local(name, expr.dtype, tuple(sizes.values()))
    return _Part(expr, place, buffer, Draft(place, "=", expr, sizes))


def is_plain(expr: Expr) -> bool:
    """Return whether an expression is of operations, elements and literals alone.

    Quotients of integers are left where they are: elements that nobody reads may divide by zero.
    """
    if isinstance(expr, Op):
        return expr.op not in ("//", "%") and all(map(is_plain, expr.args))
    return isinstance(expr, Access | Literal)


def rare(statement: Statement, shape: Sequence[Index]) -> bool:
    """Return whether each element of an array is used by few iterations, as far as is known."""
    extents_ = [v.extent for v in statement.variables]
    if any(size.names for size in (*shape, *extents_)):
        return len(shape) >= len(extents_)
    iterations = prod(int(size.evaluate({})) for size in extents_)
    return prod(int(size.evaluate({})) for size in shape) * OFTEN > iterations


def _converted(pad: Literal, expr: Op) -> Literal | None:
    """Return what a padding value becomes; None where it is more than converted, or is rounded."""
    if expr.op != "cast" or not isinstance(expr.args[0], Access):
        return None
    try:
        found = Literal(canonical(pad.text, expr.dtype), expr.dtype)
    except LiteralFault:
        return None
    return found if value(found) == value(pad) else None


def instead_of(expr: Expr, instead: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with other ones in the place of some of its parts."""
    if expr in instead:
        return instead[expr]
    if isinstance(expr, Op):
        return replace(expr, args=tuple(instead_of(arg, instead) for arg in expr.args))
    return expr
