"""The rule that multiplies by the inverse of a constant divisor."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import isfinite

from isamap.ir.dtype import DType
from isamap.ir.literal import nearest, value
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.combine import rounded
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import real, twice_rounded
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
    found = {
        quotient: inverse
        for quotient, inverse in _inverses(statement.value)
        if _is_exact(quotient, inverse)
        or (permitted is not None and _error(quotient.dtype) <= permitted)
    }
    if not found:
        return
    lemmas = tuple(dict.fromkeys(_lemma(quotient, own) for quotient, own in found.items()))
    own = _multiplied(statement.value, found)
    draft = Draft(statement.target, statement.reduction, own, extents(statement))
    yield Rewriting(
        NAME, number, replaced(kernel, number, [draft]), lemmas, _note(found, permitted)
    )


def _inverses(expr: Expr) -> Iterator[tuple[Op, Literal]]:
    """Yield the quotients by constants, and the numbers nearest to the constants' inverses."""
    if not isinstance(expr, Op):
        return
    for arg in expr.args:
        yield from _inverses(arg)
    if expr.op == "/" and isinstance(expr.args[1], Literal) and expr.dtype.is_float:
        if not isfinite(value(expr.args[1])) or not value(expr.args[1]):
            return
        divisor = Fraction(value(expr.args[1]))
        own = nearest(1 / divisor, expr.dtype)
        # Below the least normal number a relative error says nothing.
        if own and abs(own) >= Fraction(2) ** (1 - expr.dtype.max_exponent):
            yield expr, rounded(1 / divisor, expr.dtype)


def _is_exact(quotient: Op, inverse: Literal) -> bool:
    (_, divisor) = quotient.args
    assert isinstance(divisor, Literal)
    return Fraction(value(divisor)) * Fraction(value(inverse)) == 1


def _multiplied(expr: Expr, found: dict[Op, Literal]) -> Expr:
    if not isinstance(expr, Op):
        return expr
    own = replace(expr, args=tuple(_multiplied(arg, found) for arg in expr.args))
    if expr not in found:
        return own
    return Op("*", (own.args[0], found[expr]), expr.dtype)


def _error(dtype: DType) -> Fraction:
    """Return the relative error of a product with a rounded inverse."""
    return (1 + Fraction(1, 1 << dtype.precision)) ** 2 - 1


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
    off = max(_error(quotient.dtype) for quotient in inexact)
    return (
        f"{told} by the inverse: relative error at most {float(off):.2g} of the quotient; "
        f"the kernel permits {float(permitted):.2g}"
    )
