"""The rule that takes a choice out of a reduction that makes the same one in all of its steps."""

from collections.abc import Iterator

from isamap.ir.index import var
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, identity, names, reduction_variables
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.build import Draft, extents, fresh, is_sole_writer, local, replaced
from isamap.rewrite.laws import laws, may_reorder
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "choice-last"


def choice_last(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a reduction of all terms, of which a choice takes all or none afterwards.

    ``C[i, j] += select(j <= i, A[i, k] * A[j, k], 0)`` becomes

        C_all[i, j] += A[i, k] * A[j, k]
        C[i, j] = select(j <= i, C_all[i, j], 0)

    or ``C[i, j] += select(...)`` where C begins with something else, or has other elements.
    """
    statement = kernel.statements[number]
    target, value, reduction = statement.target, statement.value, statement.reduction
    if reduction == "=" or not isinstance(value, Op) or value.op != "select":
        return
    condition, *ways = value.args
    start = identity(reduction, target.dtype)
    chosen = [way for way in ways if way != start]
    reduced = set(reduction_variables(statement))
    if len(chosen) != 1 or not reduced or names(condition) & reduced:
        return
    (term,) = chosen
    alone = is_sole_writer(kernel, number) and _covers(statement, kernel)
    if not (alone or may_reorder(kernel, statement)) or not _is_everywhere(term):
        return
    if any(access.buffer == target.buffer for access in accesses(value)):
        return
    sizes = extents(statement)
    own = {v: size for v, size in sizes.items() if v not in reduced}
    name = fresh(kernel, f"{target.buffer}_all")
    place = Access(name, tuple(map(var, own)), target.dtype)
    finish = Op("select", (condition, *(place if way == term else way for way in ways)), term.dtype)
    drafts = [
        Draft(place, reduction, term, sizes),
        Draft(target, "=" if alone else reduction, finish, own),
    ]
    lemmas = [_lemma(kernel, reduction, start)]
    if not alone:
        lemmas += laws(kernel, statement)
    note = (
        f"{print_expr(condition)} is the same in all steps of the reduction: it chooses "
        f"{name} or {print_expr(start)}"
    )
    after = replaced(kernel, number, drafts, [local(name, target.dtype, tuple(own.values()))])
    yield Rewriting(NAME, number, after, tuple(lemmas), note)


def _covers(statement: Statement, kernel: Kernel) -> bool:
    """Return whether a statement is seen to reduce to each element of its target apart."""
    own = [index.name for index in statement.target.indices]
    sizes = extents(statement)
    found = tuple(sizes.get(name) if name is not None else None for name in own)
    return len(set(own)) == len(own) and found == kernel.buffer(statement.target.buffer).shape


def _is_everywhere(expr: Expr) -> bool:
    """Return whether an expression has a value also where a choice leaves it out.

    Quotients of integers have none by zero, and indices that are data may lead outside.
    """
    if isinstance(expr, Op):
        if expr.op in ("//", "%") and not isinstance(expr.args[1], Literal):
            return False
        return all(map(_is_everywhere, expr.args))
    return not any(index.reads for access in accesses(expr) for index in access.indices)


def _lemma(kernel: Kernel, reduction: str, start: Literal) -> Lemma:
    """Return the lemma that a reduction of nothing but its start is its start.

    Where the choice takes the terms, both reductions have the same steps; where it takes none,
    this is by induction what is left of the one that is written.  The sum of zeros is 0 and not
    -0, so both are the very bits.
    """
    expr = Op(REDUCTION_OPERATIONS[reduction], (start, start), start.dtype)
    claim = f"{print_expr(expr)} = {print_expr(start)} in {start.dtype}, signs of zeros included"
    finite = kernel.permissions.finite
    return equal(NAME, claim, [(expr, start)], "bits", finite, signed_zeros=True)
