"""The rule that multiplies by a reciprocal where many elements are divided by one."""

from collections.abc import Iterator

from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import names
from isamap.rewrite.build import Draft, extents, remade, replaced
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import error_of_two, twice_rounded

NAME = "reciprocal"

REPLACED = "/"
"""The operation that it replaces."""


def reciprocal(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``x * (1 / y)`` for ``x / y`` where several iterations have the same ``y``.

    It rounds twice, where a quotient rounds once; that much must be approximated with the kernel's
    permission, and values must be finite.  Nothing is said of a ``y`` so small or so large that
    its reciprocal is no normal number.
    """
    statement = kernel.statements[number]
    found = tuple(dict.fromkeys(_quotients(statement.value, statement)))
    permitted = kernel.permissions.approximate
    if not found or permitted is None or not kernel.permissions.finite:
        return
    errors = [error_of_two(quotient.dtype.precision) for quotient in found]
    if max(errors) > permitted:
        return
    value = remade(
        statement.value, lambda op: _multiplied(op) if _is_shared(op, statement) else None
    )
    draft = Draft(statement.target, statement.reduction, value, extents(statement))
    lemmas = tuple(
        twice_rounded(NAME, digits) for digits in dict.fromkeys(q.dtype.precision for q in found)
    )
    told = ", ".join(print_expr(quotient) for quotient in found)
    note = (
        f"{told} by reciprocals: relative error at most {float(max(errors)):.2g} of the quotient, "
        f"where the reciprocal is a normal number; the kernel permits {float(permitted):.2g}"
    )
    yield Rewriting(NAME, number, replaced(kernel, number, [draft]), lemmas, note)


def _quotients(expr: Expr, statement: Statement) -> Iterator[Op]:
    """Yield the quotients whose divisor is that of several iterations."""
    if not isinstance(expr, Op):
        return
    for arg in expr.args:
        yield from _quotients(arg, statement)
    if _is_shared(expr, statement):
        yield expr


def _is_shared(expr: Op, statement: Statement) -> bool:
    """Return whether it is a quotient whose divisor is that of several iterations."""
    if expr.op != REPLACED or isinstance(expr.args[1], Literal) or _is_one(expr.args[0]):
        return False
    return bool({v.name for v in statement.variables} - names(expr.args[1]))


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.text == canonical("1", expr.dtype)


def _multiplied(quotient: Op) -> Expr:
    """Return the product with the reciprocal of the divisor."""
    first, divisor = quotient.args
    kind = quotient.dtype
    one = Literal(canonical("1", kind), kind)
    return Op("*", (first, Op(REPLACED, (one, divisor), kind)), kind)
