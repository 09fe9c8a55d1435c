"""The rule that multiplies by the inverse of a constant divisor."""

from collections.abc import Iterator
from fractions import Fraction
from math import isfinite

from isamap.ir.literal import nearest, value
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.build import Draft, extents, remade, replaced
from isamap.rewrite.combine import rounded
from isamap.rewrite.reciprocal import REPLACED
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import error_of_two, real, twice_rounded
from isamap.solver.lemma import Lemma

NAME = "by-inverse"


def by_inverse(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``x * 0.25`` for ``x / 4``, and ``x * 0.11111111`` for ``x / 9`` where that much may
    be off.

    A power of two has an inverse: product and quotient are the same number, rounded once.  Other
    inverses are rounded, too, and are taken with the permission to approximate as much.
    """
    statement = kernel.statements[number]
    permitted = kernel.permissions.approximate if kernel.permissions.finite else None
    found: dict[Op, Literal] = {}

    def multiplied(expr: Op) -> Expr | None:
        own = _inverse(expr)
        if own is None or not (_is_exact(expr, own) or _is_permitted(expr, permitted)):
            return None
        found[expr] = own
        return Op("*", (expr.args[0], own), expr.dtype)

    product = remade(statement.value, multiplied)
    if not found:
        return
    lemmas = tuple(dict.fromkeys(_lemma(quotient, own) for quotient, own in found.items()))
    draft = Draft(statement.target, statement.reduction, product, extents(statement))
    yield Rewriting(
        NAME, number, replaced(kernel, number, [draft]), lemmas, _note(found, permitted)
    )


def _inverse(expr: Op) -> Literal | None:
    """Return the number nearest to the inverse of a constant divisor, None where there is none."""
    if expr.op != REPLACED or not isinstance(expr.args[1], Literal) or not expr.dtype.is_float:
        return None
    divisor = value(expr.args[1])
    if not isfinite(divisor) or not divisor:
        return None
    own = nearest(1 / Fraction(divisor), expr.dtype)
    # Below the least normal number a relative error says nothing.
    if not own or abs(own) < Fraction(2) ** (1 - expr.dtype.max_exponent):
        return None
    return rounded(1 / Fraction(divisor), expr.dtype)


def _is_permitted(quotient: Op, permitted: Fraction | None) -> bool:
    return permitted is not None and error_of_two(quotient.dtype.precision) <= permitted


def _is_exact(quotient: Op, inverse: Literal) -> bool:
    (_, divisor) = quotient.args
    assert isinstance(divisor, Literal)
    return Fraction(value(divisor)) * Fraction(value(inverse)) == 1


def _lemma(quotient: Op, inverse: Literal) -> Lemma:
    """Return the lemma that the product is the quotient, or is off by no more than is told."""
    (_, divisor) = quotient.args
    if not _is_exact(quotient, inverse):
        return twice_rounded(NAME, quotient.dtype.precision)
    assert isinstance(divisor, Literal)
    by, times = (real(Fraction(value(one))) for one in (divisor, inverse))
    text = f"(declare-const x Real)\n(assert (not (= (/ x {by}) (* x {times}))))\n"
    claim = f"x / {divisor.text} = x * {inverse.text} over the reals, and each is rounded once"
    return Lemma(NAME, claim, text)


def _note(found: dict[Op, Literal], permitted: Fraction | None) -> str:
    """Return what is replaced, and how much it is off."""
    told = ", ".join(print_expr(quotient) for quotient in found)
    inexact = [quotient for quotient, own in found.items() if not _is_exact(quotient, own)]
    if not inexact:
        return f"{told} by the inverse: the same number"
    assert permitted is not None
    off = max(error_of_two(quotient.dtype.precision) for quotient in inexact)
    return (
        f"{told} by the inverse: relative error at most {float(off):.2g} of the quotient; "
        f"the kernel permits {float(permitted):.2g}"
    )
