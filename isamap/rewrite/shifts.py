"""The rule that shifts and masks integers where they are divided by a power of two."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "by-shift"


def by_shift(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``x >> 2`` for ``x // 4``, and ``x & 3`` for ``x % 4``: both round down."""
    statement = kernel.statements[number]
    found = tuple(dict.fromkeys(_divisions(statement.value)))
    if not found:
        return
    own = _shifted(statement.value)
    draft = Draft(statement.target, statement.reduction, own, extents(statement))
    lemmas = tuple(dict.fromkeys(_lemma(one) for one in found))
    told = ", ".join(print_expr(one) for one in found)
    note = f"{told}: by a power of two, rounding down, as bits are shifted out"
    yield Rewriting(NAME, number, replaced(kernel, number, [draft]), lemmas, note)


def _divisions(expr: Expr) -> Iterator[Op]:
    if not isinstance(expr, Op):
        return
    for arg in expr.args:
        yield from _divisions(arg)
    if _power(expr) is not None:
        yield expr


def _power(expr: Op) -> int | None:
    """Return of what power of two the divisor of integers is, None if it is none."""
    if expr.op not in ("//", "%") or not isinstance(expr.args[1], Literal):
        return None
    divisor = int(expr.args[1].text)
    return divisor.bit_length() - 1 if divisor > 0 and not divisor & (divisor - 1) else None


def _shifted(expr: Expr) -> Expr:
    if not isinstance(expr, Op):
        return expr
    own = replace(expr, args=tuple(map(_shifted, expr.args)))
    if (power := _power(expr)) is None:
        return own
    dtype = expr.dtype
    if expr.op == "%":
        return Op(
            "&", (own.args[0], Literal(canonical(str((1 << power) - 1), dtype), dtype)), dtype
        )
    return Op(">>", (own.args[0], Literal(canonical(str(power), dtype), dtype)), dtype)


def _lemma(expr: Op) -> Lemma:
    """Return the lemma that bits are what a division by a power of two leaves, for all numbers."""
    power, bits, signed = _power(expr), expr.dtype.bits, expr.dtype.kind == "signed"
    assert power is not None

    def number(value: int) -> str:
        return f"(_ bv{value} {bits})"

    divisor = number(1 << power)
    quotient = f"(bvudiv x {divisor})"
    if signed:
        # Of SMT-LIB's quotient, which rounds to zero, the one that rounds down.
        inexact = f"(and (bvslt x {number(0)}) (not (= (bvsrem x {divisor}) {number(0)})))"
        quotient = f"(bvsub (bvsdiv x {divisor}) (ite {inexact} {number(1)} {number(0)}))"
    shifted = f"({'bvashr' if signed else 'bvlshr'} x {number(power)})"
    claim = f"x // {1 << power} = x >> {power} for all {expr.dtype}"
    same = f"(= {quotient} {shifted})"
    if expr.op == "%":
        rest = f"(bvsub x (bvmul {divisor} {quotient}))"
        same = f"(= {rest} (bvand x {number((1 << power) - 1)}))"
        claim = f"x % {1 << power} = x & {(1 << power) - 1} for all {expr.dtype}"
    text = f"(declare-const x (_ BitVec {bits}))\n(assert (not {same}))\n"
    return Lemma(NAME, claim, text)
