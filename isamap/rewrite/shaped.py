"""Rules that bring a statement's value into the shape of an instruction's body."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from isamap.ir.nodes import Access, Expr, Kernel, Op, Reduction, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import identity
from isamap.rewrite.arithmetic import Model, NoTermError, equal
from isamap.rewrite.build import Draft, extents, is_sole_writer, replaced
from isamap.rewrite.parted import parted
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.shape import Fit, Shape, Shapes, fits, work
from isamap.rewrite.zeros import tells_zeros_apart
from isamap.solver.lemma import Lemma

REASSOCIATE = "reassociate"
INSERT = "insert-identity"
COPY = "copy-by-identity"


def reassociating(shapes: Shapes) -> Rule:
    """Return the rule that changes the order in which a value's operations are applied.

    Integers wrap, so every order of a sum or product gives the same; so it does for ``max``,
    ``min`` and the bitwise operations on any type.  Sums and products of floats need the
    permission to reassociate.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        for _, fit in _fits(kernel, number, shapes):
            if not fit.inserted:
                yield from _reordered(kernel, number, fit)

    return rule


def inserting(shapes: Shapes) -> Rule:
    """Return the rule that puts identity elements where an instruction computes more.

    ``x`` is ``x * 1``, ``x + 0``, ``max(x, -inf)``, ``x & ~0``: whichever the shape needs.  What
    is assigned is also what is added to nothing, where the statement alone writes its target.
    The instruction does some of the statement's own work, a reduction or an operation.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        for reduction, fit in _with_identities(kernel, number, shapes):
            if _works(kernel, number, fit):
                yield from _inserted(INSERT, kernel, number, reduction, fit)

    return rule


def copying(shapes: Shapes) -> Rule:
    """Return the rule that puts in identity elements where the instruction does nothing else.

    It only carries the value to the target: a way to copy for machines that have no other.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        for reduction, fit in _with_identities(kernel, number, shapes):
            if not _works(kernel, number, fit):
                yield from _inserted(COPY, kernel, number, reduction, fit)

    return rule


def _works(kernel: Kernel, number: int, fit: Fit) -> bool:
    return fit.done > 0 or kernel.statements[number].reduction != "="


def _with_identities(
    kernel: Kernel, number: int, shapes: Shapes
) -> Iterator[tuple[Reduction, Fit]]:
    for shape, fit in _fits(kernel, number, shapes):
        if fit.inserted:
            yield shape.reduction, fit
    if kernel.statements[number].reduction == "=" and is_sole_writer(kernel, number):
        yield from _accumulated(kernel, number, shapes)


def _fits(kernel: Kernel, number: int, shapes: Shapes) -> Iterator[tuple[Shape, Fit]]:
    """Yield the values that fit a shape of the statement's own reduction, each once."""
    statement = kernel.statements[number]
    seen: set[Expr] = set()
    for shape in shapes.of(statement.target.dtype):
        if shape.reduction != statement.reduction:
            continue
        for fit in fits(shape.value, statement.value, kernel.permissions.reassociate):
            if fit.value not in seen:
                seen.add(fit.value)
                yield shape, fit


def _reordered(kernel: Kernel, number: int, fit: Fit) -> Iterator[Rewriting]:
    before = kernel.statements[number].value
    for lemma in _lemma(REASSOCIATE, before, fit.value, kernel, fit.moved):
        note = f"{print_expr(before)} as {print_expr(fit.value)}: {_why(fit)}"
        yield _changed(REASSOCIATE, kernel, number, fit.value, (lemma,), note)


def _inserted(
    rule: str, kernel: Kernel, number: int, reduction: Reduction, fit: Fit
) -> Iterator[Rewriting]:
    """Yield the statement with identities put into its value, and perhaps another reduction."""
    statement = kernel.statements[number]
    before = statement.value
    if fit.inserted and fit.moved and tells_zeros_apart(kernel):
        # The reals have one zero: that sums keep the sign of theirs cannot be proved there.
        return
    lemmas = list(_lemma(rule, before, fit.value, kernel, fit.moved)) if fit.inserted else []
    added, wanted = "", bool(fit.inserted)
    if reduction != statement.reduction:
        start = identity(reduction, statement.target.dtype)
        whole = Op(REDUCTION_OPERATIONS[reduction], (start, before), start.dtype)
        lemmas += _lemma(rule, whole, before, kernel, moved=False)
        added = f", combined by {reduction} with {start.text}"
    if len(lemmas) == wanted + bool(added):
        note = f"{print_expr(before)} as {print_expr(fit.value)}{added}: {_why(fit)}"
        yield _changed(rule, kernel, number, fit.value, tuple(lemmas), note, reduction)


def _why(fit: Fit) -> str:
    if fit.moved:
        return "the same number, and the kernel permits to reassociate"
    return "the same value, whatever the elements hold"


def _accumulated(kernel: Kernel, number: int, shapes: Shapes) -> Iterator[tuple[Reduction, Fit]]:
    """Yield reductions of one term instead of an assignment."""
    statement = kernel.statements[number]
    plain = Fit(statement.value, 0, work(statement.value), moved=False)
    seen: set[tuple[Reduction, Expr]] = set()
    for shape in shapes.of(statement.target.dtype):
        if shape.reduction == "=":
            continue
        found = fits(shape.value, statement.value, kernel.permissions.reassociate)
        own = _root(shape.value) == _root(statement.value)
        for fit in found or ((plain,) if own else ()):
            if (shape.reduction, fit.value) not in seen:
                seen.add((shape.reduction, fit.value))
                yield shape.reduction, fit


def _root(expr: Expr) -> str:
    return expr.op if isinstance(expr, Op) else ""


def _lemma(name: str, before: Expr, after: Expr, kernel: Kernel, moved: bool) -> Iterator[Lemma]:
    """Yield the lemma that two values are equal: over the bits unless floats ``moved``."""
    claim = f"{print_expr(before)} = {print_expr(after)}"
    model: Model = "reals" if moved else "bits"
    zeros = tells_zeros_apart(kernel)
    pairs = None if moved else parted(before, after, zeros)
    with suppress(NoTermError):
        pairs = pairs or [generalised(before, after)]
        yield equal(name, claim, pairs, model, kernel.permissions.finite, zeros)


def generalised(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Return two expressions with the largest operations that both hold replaced by unknowns.

    What is proved of unknown values holds for those operations' values, too.
    """
    shared = _operations(left) & _operations(right)

    def replace_in(expr: Expr) -> Expr:
        if not isinstance(expr, Op):
            return expr
        if expr in shared:
            return Access(f"<{print_expr(expr)}>", (), expr.dtype)
        return replace(expr, args=tuple(replace_in(arg) for arg in expr.args))

    return replace_in(left), replace_in(right)


def _operations(expr: Expr) -> frozenset[Expr]:
    if not isinstance(expr, Op):
        return frozenset()
    return frozenset((expr,)).union(*map(_operations, expr.args))


def _changed(
    rule: str,
    kernel: Kernel,
    number: int,
    value: Expr,
    lemmas: tuple[Lemma, ...],
    note: str,
    reduction: Reduction | None = None,
) -> Rewriting:
    statement: Statement = kernel.statements[number]
    draft = Draft(statement.target, reduction or statement.reduction, value, extents(statement))
    return Rewriting(rule, number, replaced(kernel, number, [draft]), lemmas, note)
