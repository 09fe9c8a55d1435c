"""Integer expressions as sums of monomials, and the lemma that two of them are one polynomial."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isamap.ir.dtype import DType
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce
from isamap.ir.printer import print_expr
from isamap.solver.lemma import Lemma

_MOST = 32
"""Monomials of one expression: more would be no rewriting that anyone wants."""


@dataclass(frozen=True, slots=True)
class Monomial:
    """``coefficient`` times some factors, which are no literals, in the order of their texts."""

    coefficient: int
    factors: tuple[Expr, ...]


def monomials(expr: Expr) -> tuple[Monomial, ...] | None:
    """Return an integer expression as a sum of monomials with different factors.

    Sums, differences and products of its own type are expanded; anything else is a factor.  The
    sum equals the expression in the integers modulo the type's size.  None if it is no integer, or
    has too many monomials.
    """
    if not expr.dtype.is_integer:
        return None
    return _expanded(expr)


def _expanded(expr: Expr) -> tuple[Monomial, ...] | None:
    match expr:
        case Literal():
            return _collected([Monomial(int(value(expr)), ())])
        case Op("neg", (arg,), _):
            return _scaled(_expanded(arg), -1)
        case Op("+" | "-", (left, right), _):
            one, other = _expanded(left), _scaled(_expanded(right), -1 if expr.op == "-" else 1)
            return None if one is None or other is None else _collected([*one, *other])
        case Op("*", (left, right), _):
            one, other = _expanded(left), _expanded(right)
            if one is None or other is None or len(one) * len(other) > _MOST:
                return None
            return _collected([_product(a, b) for a in one for b in other])
        case Op() | Access() | Coordinate() | Reduce():
            return (Monomial(1, (expr,)),)


def _product(a: Monomial, b: Monomial) -> Monomial:
    return Monomial(a.coefficient * b.coefficient, (*a.factors, *b.factors))


def _scaled(found: tuple[Monomial, ...] | None, factor: int) -> tuple[Monomial, ...] | None:
    if found is None:
        return None
    return tuple(Monomial(m.coefficient * factor, m.factors) for m in found)


def _collected(found: Iterable[Monomial]) -> tuple[Monomial, ...]:
    sums: dict[tuple[Expr, ...], int] = {}
    for monomial in found:
        factors = tuple(sorted(monomial.factors, key=print_expr))
        sums[factors] = sums.get(factors, 0) + monomial.coefficient
    return tuple(Monomial(c, factors) for factors, c in sums.items() if c)


# --- back to expressions --------------------------------------------------------------------------
def literal(number: int, dtype: DType) -> Literal:
    """Return the value of an integer type that is congruent to a number."""
    size = dtype.highest - dtype.lowest + 1
    return Literal(str((number - dtype.lowest) % size + dtype.lowest), dtype)


def product_of(factors: Sequence[Expr]) -> Expr:
    """Return the product of one or more factors of a type."""
    result = factors[0]
    for factor in factors[1:]:
        result = Op("*", (result, factor), factor.dtype)
    return result


def sum_of(terms: Sequence[tuple[int, Sequence[Expr]]], dtype: DType) -> Expr:
    """Return a sum of products with coefficients, those that are added first; no term gives 0."""
    result: Expr | None = None
    for coefficient, factors in sorted(terms, key=lambda term: term[0] < 0):
        factor = coefficient if result is None else abs(coefficient)
        scale = [] if factor == 1 and factors else [literal(factor, dtype)]
        term = product_of([*factors, *scale])
        if result is None:
            result = term
        else:
            result = Op("+" if coefficient > 0 else "-", (result, term), dtype)
    return result if result is not None else literal(0, dtype)


# --- the lemma ------------------------------------------------------------------------------------
def same_polynomial(name: str, claim: str, expr: Expr, found: Sequence[Monomial]) -> Lemma:
    """Return the lemma that an expression and a sum of monomials are one polynomial.

    What is no sum, difference, product or literal of the expression's type is an unknown integer.
    Equal over the integers, they are equal modulo the size of every type.
    """
    unknown: dict[Expr, str] = {}
    left = _term(expr, unknown)
    right = _added(
        [
            _multiplied([integer(m.coefficient), *(_term(f, unknown) for f in m.factors)])
            for m in found
        ]
    )
    declared = "".join(f"(declare-const {name} Int)\n" for name in unknown.values())
    return Lemma(name, claim, f"{declared}(assert (not (= {left} {right})))\n")


def _term(expr: Expr, unknown: dict[Expr, str]) -> str:
    match expr:
        case Literal():
            return integer(int(value(expr)))
        case Op("neg", (arg,), _):
            return f"(- {_term(arg, unknown)})"
        case Op("+" | "-" | "*", args, _):
            return f"({expr.op} {' '.join(_term(arg, unknown) for arg in args)})"
        case _:
            return unknown.setdefault(expr, symbol(expr))


def symbol(expr: Expr) -> str:
    """Return a name of SMT-LIB for the value of an expression."""
    return f"|{print_expr(expr).replace('|', 'or')}|"


def integer(number: int) -> str:
    """Return a whole number in SMT-LIB."""
    return str(number) if number >= 0 else f"(- {-number})"


def _added(terms: Sequence[str]) -> str:
    return f"(+ 0 {' '.join(terms)})" if terms else "0"


def _multiplied(terms: Sequence[str]) -> str:
    return f"(* {' '.join(terms)})" if len(terms) > 1 else terms[0]
