"""The rule that shifts and masks integers where they are divided by a power of two."""

from collections.abc import Iterator

from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.rewrite.by_operations import by_operations
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "by-shift"


def by_shift(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``x >> 2`` for ``x // 4``, and ``x & 3`` for ``x % 4``: both round down."""
    why = "by a power of two, rounding down, as bits are shifted out"
    return by_operations(NAME, kernel, number, _shifted, _lemma, why)


def _shifted(expr: Op) -> Expr | None:
    """Return the shift or the mask that is a quotient or a remainder, None for other operations."""
    power, dtype = _power(expr), expr.dtype
    if power is None:
        return None
    op, count = ("&", (1 << power) - 1) if expr.op == "%" else (">>", power)
    return Op(op, (expr.args[0], Literal(canonical(str(count), dtype), dtype)), dtype)


def _power(expr: Op) -> int | None:
    """Return of what power of two the divisor of integers is, None if it is none."""
    if expr.op not in ("//", "%") or not isinstance(expr.args[1], Literal):
        return None
    divisor = int(expr.args[1].text)
    return divisor.bit_length() - 1 if divisor > 0 and not divisor & (divisor - 1) else None


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
