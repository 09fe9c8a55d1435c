"""Rounding: from exact values and from float64 to each float type, once."""

import math
from fractions import Fraction
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

Values: TypeAlias = np.ndarray[Any, np.dtype[Any]]

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def carrier(dtype: DType) -> np.dtype[Any]:
    """Return the numpy type that holds values of ``dtype`` while they are computed with.

    Floats narrower than f32 are held as float32, 4-bit integers as 8-bit ones: every value of the
    type is one of the carrier's.
    """
    if dtype.is_float:
        return F64 if dtype.bits == 64 else F32
    if dtype.bits == 4:
        return np.dtype(np.int8 if dtype.kind == "signed" else np.uint8)
    return dtype.numpy


def to_f32_odd(x: Values) -> Values:
    """Return float64 values as float32, inexact ones rounded to the neighbour with an odd last bit.

    Rounding the result again to at most 22 bits gives what rounding ``x`` once would give.
    """
    near = x.astype(F32)
    wide = near.astype(F64)
    bits = near.view(np.uint32)
    even = (wide != x) & (bits & 1 == 0) & ~np.isnan(x)
    toward_zero = np.abs(wide) > np.abs(x)
    odd = np.where(toward_zero, bits - np.uint32(1), bits + np.uint32(1))
    return np.asarray(np.where(even, odd, bits).astype(np.uint32, copy=False).view(F32))


def round_float(x: Values, dtype: DType) -> Values:
    """Return float32 or float64 values rounded to a float type (ties to even), in its carrier."""
    x = np.asarray(x)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.bits == 64:
            return x.astype(F64, copy=False)
        if dtype.bits == 32:
            return x.astype(F32, copy=False)
        if x.dtype == F64:
            x = to_f32_odd(x)
        return x.astype(dtype.numpy).astype(F32)


def largest(dtype: DType) -> float:
    """Return the largest finite value of a float type."""
    return float(_facts(dtype).max)


def smallest_normal(dtype: DType) -> float:
    """Return the smallest positive value of a float type that has all its significand bits."""
    return float(_facts(dtype).smallest_normal)


def _facts(dtype: DType) -> Any:
    return ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]


def nearest(value: Fraction, dtype: DType) -> float:
    """Return the value of a float type that is nearest to an exact one, ties to even.

    What rounds beyond the largest finite value is an infinity, or NaN where the type has none.
    """
    if value == 0:
        return 0.0
    least = int(_facts(dtype).minexp)
    magnitude, sign = abs(value), 1 if value > 0 else -1
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = max(exponent, least) - dtype.precision + 1
    units = round(magnitude / Fraction(2) ** quantum)
    top = Fraction(largest(dtype))
    if units * Fraction(2) ** quantum > top:
        overflow = math.inf if np.isinf(round_float(np.array(math.inf), dtype)) else math.nan
        return math.copysign(overflow, sign)
    return math.copysign(math.ldexp(units, quantum), sign)


def literal_value(literal: Literal) -> Fraction | float:
    """Return a literal's exact value; an infinity, NaN or minus zero as a float."""
    match literal.text:
        case "inf" | "-inf" | "nan" as text:
            return float(text)
        case "true":
            return Fraction(1)
        case "false":
            return Fraction(0)
        case text:
            value = Fraction(text)
            return -0.0 if value == 0 and text.startswith("-") else value


def constant(literal: Literal) -> Values:
    """Return a literal as a 0-dimensional array of its type's carrier, rounded once."""
    value = literal_value(literal)
    dtype = literal.dtype
    if not dtype.is_float:
        return np.array(int(value), carrier(dtype))
    if isinstance(value, Fraction):
        value = nearest(value, dtype)
    return round_float(np.array(value), dtype).astype(carrier(dtype))
