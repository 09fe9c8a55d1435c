"""Operations on one number that keep the order of numbers, and where they take a constant."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, trunc

from isamap.ir.dtype import DType
from isamap.ir.literal import LiteralFault, canonical, largest, nearest, value
from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.rewrite.combine import rounded

LIMITS = ("max", "min")
"""Operations that limit a number by a constant."""

_WHOLE: dict[str, Callable[[Fraction], int]] = {
    "round": round,
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
}


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on one number, the argument ``at``, which is :func:`unknown` here.

    Another argument is a constant.  It keeps the order of numbers, if it does not wrap.
    """

    op: Op
    at: int

    @property
    def source(self) -> DType:
        """The type of what it is applied to."""
        return self.op.args[self.at].dtype

    @property
    def dtype(self) -> DType:
        """The type of what it gives."""
        return self.op.dtype

    @property
    def constant(self) -> Literal:
        """The other argument."""
        other = self.op.args[1 - self.at]
        assert isinstance(other, Literal)
        return other

    @property
    def number(self) -> Fraction:
        """The value of the other argument."""
        return Fraction(value(self.constant))

    @property
    def is_limit(self) -> bool:
        """Whether it limits a number by the constant."""
        return self.op.op in LIMITS

    def of(self, expr: Expr) -> Op:
        """Return the operation applied to another value."""
        return replace(self.op, args=(*self.op.args[: self.at], expr, *self.op.args[self.at + 1 :]))


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps from the outermost to the innermost, which is applied to ``base``."""

    steps: tuple[Step, ...]
    base: Expr

    def value(self, start: int = 0) -> Expr:
        """Return what the steps from one on give."""
        found = self.base
        for step in reversed(self.steps[start:]):
            found = step.of(found)
        return found


def unknown(dtype: DType) -> Access:
    """Return a value of which nothing is known."""
    return Access("x", (), dtype)


def limit(op: str, constant: Literal) -> Step:
    """Return the limit of a number by a constant."""
    return Step(Op(op, (unknown(constant.dtype), constant), constant.dtype), 0)


def chain_of(expr: Expr) -> Chain:
    """Return the longest chain that an expression is."""
    steps: list[Step] = []
    while isinstance(expr, Op) and (at := _ordered(expr)) is not None:
        inner = expr.args[at]
        args = (*expr.args[:at], unknown(inner.dtype), *expr.args[at + 1 :])
        steps.append(Step(replace(expr, args=args), at))
        expr = inner
    return Chain(tuple(steps), expr)


def _ordered(expr: Op) -> int | None:
    """Return the argument whose order an operation keeps, if all others are constants."""
    op, args, dtype = expr.op, expr.args, expr.dtype
    known = [n for n, arg in enumerate(args) if isinstance(arg, Literal)]
    if any(arg.dtype.kind == "bool" for arg in (expr, *args)) or len(known) != len(args) - 1:
        return None
    at = 1 if known == [0] else 0
    if op == "sat" or op in _WHOLE:
        return 0
    if dtype.is_float and not _has_infinity(dtype):
        return None  # What is too large is no number.
    if op == "cast":
        return 0
    if len(args) != 2:
        return None
    (constant,) = (arg for arg in args if isinstance(arg, Literal))
    if constant.text in ("inf", "-inf", "nan"):
        return None
    number = value(constant)
    if op in ("+", *LIMITS) or (op == "*" and number > 0):
        return at
    least = {"-": None, "//": 1, ">>": 0}
    if op not in least or at == 1:
        return None
    lowest = least[op]
    return 0 if lowest is None or lowest <= number else None


def _has_infinity(dtype: DType) -> bool:
    try:
        canonical("inf", dtype)
    except LiteralFault:
        return False
    return True


def carried(step: Step, constant: Literal) -> Literal | None:
    """Return what a step makes of a number, if it has a finite value."""
    number = Fraction(value(constant))
    match step.op.op:
        case "cast" if step.source.is_float and step.dtype.is_integer:
            number = _within(Fraction(trunc(number)), step.dtype)
        case "sat" if step.dtype.is_integer:
            number = _within(Fraction(round(number)), step.dtype)
        case "sat":
            most = largest(step.dtype)
            number = max(-most, min(most, number))
        case "+":
            number += step.number
        case "-":
            number -= step.number
        case "*":
            number *= step.number
        case "//":
            number = Fraction(floor(number / step.number))
        case ">>":
            number = Fraction(floor(number / 2 ** int(step.number)))
        case "max":
            number = max(number, step.number)
        case "min":
            number = min(number, step.number)
        case op if op in _WHOLE:
            number = Fraction(_WHOLE[op](number))
    return _literal(number, step.dtype)


def taken_back(step: Step, constant: Literal) -> Literal | None:
    """Return a number of which a step makes another one, if one is found."""
    found = Fraction(value(constant))
    match step.op.op:
        case "+":
            found -= step.number
        case "-":
            found += step.number
        case "*":
            found /= step.number
        case "//":
            found *= step.number
        case ">>":
            found *= 2 ** int(step.number)
    own = _literal(found, step.source)
    made = own and carried(step, own)
    return own if made and value(made) == value(constant) else None


def _within(number: Fraction, dtype: DType) -> Fraction:
    return max(Fraction(dtype.lowest), min(Fraction(dtype.highest), number))


def _literal(number: Fraction, dtype: DType) -> Literal | None:
    """Return the value of a type nearest to a number, None if an integer type has not itself."""
    if dtype.is_float:
        return rounded(number, dtype) if nearest(number, dtype) is not None else None
    if number.denominator != 1 or not dtype.lowest <= number <= dtype.highest:
        return None
    return Literal(canonical(str(number), dtype), dtype)
