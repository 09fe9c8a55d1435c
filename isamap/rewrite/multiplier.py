"""The rule that multiplies and shifts integers where they are divided by a constant."""

from collections.abc import Iterator
from dataclasses import dataclass

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.rewrite.by_operations import by_operations
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "by-multiplier"


@dataclass(frozen=True, slots=True)
class Division:
    """How numbers of 0 to ``most``, in so many ``bits``, are divided by ``divisor``.

    ``x // divisor`` is the high half of ``(x >> before) * factor``, shifted by ``after``.  A factor
    with one bit more than fits is ``more``: that bit counts ``x`` once more, halved so that nothing
    is lost.
    """

    divisor: int
    most: int
    bits: int
    factor: int
    before: int
    after: int
    more: bool


def division(divisor: int, most: int, bits: int) -> Division:
    """Return how to divide by a number above 1 that is no power of two.

    With ``s`` bits below the point and the factor ``m``, the next number from ``2^s / divisor`` on,
    ``x m / 2^s`` is above ``x / divisor`` by ``x e / (divisor 2^s)`` where ``e = m divisor - 2^s``,
    which reaches no other whole number while ``x e < 2^s`` (Granlund and Montgomery, "Division by
    Invariant Integers using Multiplication", 1994, theorem 4.2).
    """
    after, factor = _factor(divisor, most, bits)
    if factor < 1 << bits:
        return Division(divisor, most, bits, factor, 0, after, False)
    before = (divisor & -divisor).bit_length() - 1
    if before:  # the shift leaves fewer bits
        after, factor = _factor(divisor >> before, most >> before, bits)
        return Division(divisor, most, bits, factor, before, after, False)
    return Division(divisor, most, bits, factor - (1 << bits), 0, after, True)


def _factor(divisor: int, most: int, bits: int) -> tuple[int, int]:
    """Return how many bits the high half is shifted by, and the factor."""
    after = 0
    while True:
        whole = 1 << bits + after
        factor = -(-whole // divisor)
        if (factor * divisor - whole) * most < whole:
            return after, factor
        after += 1


def by_multiplier(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``u16((u32(x) * 52429) >> 16) >> 3`` for ``x // 10`` of 16 bits, and its like.

    ``x % 10`` is what that leaves of x.  Of numbers with a sign, those below 0 are divided as what
    they are -1 less.
    """
    why = "the high half of a product, shifted, as long as the factor is exact enough"
    return by_operations(NAME, kernel, number, _multiplied, _lemma, why)


def _multiplied(expr: Op) -> Expr | None:
    """Return the product that is a quotient or a remainder, None for other operations."""
    divisor = _divisor(expr)
    if divisor is None:
        return None
    x, dtype = expr.args[0], expr.dtype
    quotient = _floor(x, divisor, dtype)
    if expr.op == "//":
        return quotient
    return Op("-", (x, Op("*", (quotient, _number(divisor, dtype)), dtype)), dtype)


def _divisor(expr: Op) -> int | None:
    """Return what integers are divided by, None if that is no number with a factor."""
    if expr.op not in ("//", "%") or not isinstance(expr.args[1], Literal):
        return None
    divisor = int(expr.args[1].text)
    return divisor if divisor > 1 and divisor & (divisor - 1) and _double(expr.dtype) else None


def _double(dtype: DType) -> DType | None:
    """Return the type without a sign of twice as many bits, None if there is none."""
    return DTYPES.get(f"u{2 * dtype.bits}") if dtype.kind in ("signed", "unsigned") else None


def _number(value: int, dtype: DType) -> Literal:
    return Literal(canonical(str(value), dtype), dtype)


def _cast(x: Expr, dtype: DType) -> Expr:
    return Op("cast", (x,), dtype)


def _shifted(x: Expr, count: int) -> Expr:
    return Op(">>", (x, _number(count, x.dtype)), x.dtype) if count else x


def _floor(x: Expr, divisor: int, dtype: DType) -> Expr:
    """Return the quotient, rounded down, of a number with or without a sign."""
    if dtype.kind == "unsigned":
        return _quotient(x, division(divisor, _most(dtype), dtype.bits))
    below = _shifted(x, dtype.bits - 1)  # all bits where x is below 0
    natural = DTYPES[f"u{dtype.bits}"]
    turned = _cast(Op("^", (x, below), dtype), natural)
    own = _quotient(turned, division(divisor, _most(dtype), dtype.bits))
    return Op("^", (_cast(own, dtype), below), dtype)


def _most(dtype: DType) -> int:
    """Return the greatest number that is divided: of those with a sign, the greatest of them."""
    return (1 << dtype.bits - (dtype.kind == "signed")) - 1


def _quotient(x: Expr, way: Division) -> Expr:
    dtype = x.dtype
    wide = _double(dtype)
    assert wide is not None
    start = _shifted(x, way.before)
    product = Op("*", (_cast(start, wide), _number(way.factor, wide)), wide)
    high = _cast(_shifted(product, way.bits), dtype)
    if not way.more:
        return _shifted(high, way.after)
    half = _shifted(Op("-", (x, high), dtype), 1)
    return _shifted(Op("+", (half, high), dtype), way.after - 1)


def _lemma(expr: Op) -> Lemma:
    """Return the lemma that the product gives the quotient, and no step leaves its type."""
    dtype, divisor = expr.dtype, _divisor(expr)
    assert divisor is not None
    way = division(divisor, _most(dtype), dtype.bits)
    whole = 1 << way.bits
    x, shifts = "x", f"{1 << way.before}"
    start = f"(div {x} {shifts})" if way.before else x
    product = f"(* {way.factor} {start})"
    high = f"(div {product} {whole})"
    own = f"(div {high} {1 << way.after})"
    inside = [f"(< {product} {whole * whole})", f"(< {high} {whole})"]
    told = f"high(x * {way.factor}) >> {way.after}"
    if way.before:
        told = f"high((x >> {way.before}) * {way.factor}) >> {way.after}"
    if way.more:
        total = f"(+ (div (- {x} {high}) 2) {high})"
        own = f"(div {total} {1 << way.after - 1})"
        inside += [f"(<= {high} {x})", f"(< {total} {whole})"]
        told = f"((x - h >> 1) + h) >> {way.after - 1} where h is high(x * {way.factor})"
    holds = " ".join((f"(= {own} (div {x} {divisor}))", *inside))
    lines = [
        "(declare-const x Int)",
        f"(assert (and (<= 0 x) (<= x {way.most})))",
    ]
    negated = f"(not (and {holds}))"
    claim = f"x // {divisor} = {told} for x from 0 to {way.most}"
    if dtype.kind == "signed":
        # Those below 0 are divided as ~x, which is -1 - x, and the quotient is turned back.
        turned = f"(= (div (- (- 1) x) {divisor}) (- (- 1) (div x {divisor})))"
        bits = f"(_ BitVec {way.bits})"
        zero, last = f"(_ bv0 {way.bits})", f"(_ bv{way.bits - 1} {way.bits})"
        lines.append(f"(declare-const b {bits})")
        sign = f"(bvxor b (bvashr b {last}))"
        same = f"(= {sign} (ite (bvslt b {zero}) (bvnot b) b))"
        negated = f"(or {negated} (not {turned}) (not {same}))"
        claim += f"; x // {divisor} = ~(~x // {divisor})"
    lines.append(f"(assert {negated})")
    return Lemma(NAME, claim, "\n".join(lines) + "\n")
