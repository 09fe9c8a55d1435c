"""Literals: exact decimals, rounded once to a type, and their canonical texts.

Two literals of one type are equal exactly if their canonical texts are.  Floats have a point or an
exponent (``1.0``, ``1e-07``, ``-0.0``) or are ``inf``, ``-inf``, ``nan``.  The text of an f64 or
f32 is the shortest that gives the value back in its type; that of a narrower float gives its value
as a float64.  Integers are plain; bools are ``true`` and ``false``.
"""

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

_HUGE = 5000
"""Powers of ten beyond every type: the exact fraction is not even built."""


class LiteralFault(ValueError):
    """A text is no value of a type; the message says why."""


def value(literal: Literal) -> float | int | bool:
    """Return a literal's value; every float type is contained in Python's ``float``."""
    if literal.dtype.is_float:
        number = float(literal.text)
        return float(np.float32(number)) if literal.dtype.bits == 32 else number
    if literal.dtype.kind == "bool":
        return literal.text == "true"
    return int(literal.text)


@lru_cache(maxsize=4096)
def canonical(text: str, dtype: DType) -> str:
    """Return the canonical text of the value of ``dtype`` nearest to an exact decimal.

    ``text`` is a number of the language, perhaps with a minus sign.  LiteralFault if the type has
    no such value: it overflows, vanishes, or is of another kind.
    """
    bare = text.removeprefix("-")
    if dtype.is_float:
        return _canonical_float(text, bare, dtype)
    if dtype.kind == "bool":
        found = {"0": "false", "1": "true", "false": "false", "true": "true"}.get(text)
        if found is None:
            raise LiteralFault(f"{_shown(text)} is no bool: write true or false")
        return found
    if not bare.isdigit():
        raise LiteralFault(f"{_shown(text)} is no {dtype}: it is no whole number")
    number = int(text)
    if not dtype.lowest <= number <= dtype.highest:
        raise LiteralFault(
            f"{_shown(text)} does not fit {dtype}, which holds {dtype.lowest} to {dtype.highest}"
        )
    return str(number)


def exact(text: str) -> Fraction:
    """Return the exact value of a decimal; LiteralFault if it is no number of a modest size."""
    try:
        decimal = Decimal(text)
    except ArithmeticError:
        raise LiteralFault(f"{_shown(text)} is no number") from None
    if not decimal.is_finite() or abs(decimal.adjusted()) > _HUGE:
        raise LiteralFault(f"{_shown(text)} is too large or too small")
    return Fraction(decimal)


_SIMPLE = 1024
"""Denominators of fractions that a rounded constant may stand for, at most."""

_ROUNDED = 24
"""Digits of the narrowest type in which a simple fraction is told from all short binary ones."""


def meant(literal: Literal) -> Fraction:
    """Return the simple fraction of which a finite float is the nearest value, else its own value.

    In f32 and f64, 0.16666667 stands for 1/6, which no float is.  Different values stand for
    different fractions.
    """
    own = Fraction(literal.text)
    if not literal.dtype.is_float or literal.dtype.precision < _ROUNDED:
        return own
    simple = own.limit_denominator(_SIMPLE)
    return simple if nearest(simple, literal.dtype) == nearest(own, literal.dtype) else own


def narrowed(literal: Literal, dtype: DType) -> Literal | None:
    """Return a literal of another type with the same value, or None if that type lacks it."""
    if literal.text in ("inf", "-inf", "nan", "true", "false") or dtype.kind == "bool":
        return None
    try:
        text = canonical(literal.text, dtype)
    except LiteralFault:
        return None
    same = text not in ("inf", "-inf", "nan") and exact(text) == exact(literal.text)
    return Literal(text, dtype) if same else None


def nearest(number: Fraction, dtype: DType) -> Fraction | None:
    """Return the value of a float type nearest to a number, ties to even; None if it overflows."""
    if not number:
        return number
    size = abs(number)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < _power(exponent)
    least = 1 - dtype.max_exponent + (dtype.name == "f8e4m3") * 1
    step = _power(max(exponent, least) - dtype.precision + 1)
    rounded = step * round(number / step)
    return rounded if abs(rounded) <= largest(dtype) else None


def largest(dtype: DType) -> Fraction:
    """Return the largest finite value of a float type."""
    # All exponents of f8e4m3 are finite, but its last significand is NaN.
    steps = (1 << dtype.precision) - (2 if dtype.name == "f8e4m3" else 1)
    return steps * _power(dtype.max_exponent - dtype.precision + 1)


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def _canonical_float(text: str, bare: str, dtype: DType) -> str:
    if bare in ("true", "false"):
        raise LiteralFault(f"{text} is a bool, not a value of {dtype}")
    if bare == "nan":
        return "nan"
    if bare == "inf":
        if not np.isinf(np.array(math.inf).astype(dtype.numpy).astype(np.float64)):
            raise LiteralFault(f"{dtype} has no infinity")
        return text
    sign = "-" if text != bare else ""
    try:
        number = exact(bare)
    except LiteralFault:
        raise LiteralFault(f"{_shown(text)} does not fit {dtype}") from None
    rounded = nearest(number, dtype)
    if rounded is None:
        limit = float(largest(dtype))
        raise LiteralFault(f"{_shown(text)} does not fit {dtype}, which ends at {limit:g}")
    if number and not rounded:
        raise LiteralFault(f"{_shown(text)} is too small for {dtype}: it would be 0")
    return sign + _float_text(rounded, dtype)


def _float_text(number: Fraction, dtype: DType) -> str:
    if dtype.bits != 32:
        return repr(float(number))
    for digits in range(1, 10):
        text = f"{float(number):.{digits}g}"
        # Right both for readers that round once and for those that go through float64.
        if nearest(Fraction(text), dtype) == nearest(Fraction(float(text)), dtype) == number:
            return repr(float(text))
    raise AssertionError("nine digits restore any value of 32 bits")


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."
