"""Conversions between types: ``T(x)`` and ``sat[T](x)``."""

from collections.abc import Callable

import numpy as np

from isamap.interp.rounding import F32, F64, Values, carrier, largest, round_float
from isamap.ir.dtype import DType

Function = Callable[..., Values]


def cast_function(source: DType, target: DType, wide: bool = False) -> Function:
    """Return ``target(x)``: floats truncate to integers, integers wrap, floats round to even.

    A float beyond an integer type saturates and NaN becomes 0; bool(x) is ``x != 0``.  With
    ``wide``, floats of every type are float64 and do not round.
    """
    if target.kind == "bool":
        return lambda x: np.asarray(x != 0)
    if target.is_float:
        if wide:
            return lambda x: np.asarray(x).astype(F64, copy=False)
        return _float_to_float(source, target) if source.is_float else _to_float(source, target)
    if source.is_float:
        return lambda x: _to_integer(np.trunc(x), target)
    return lambda x: wrap(np.asarray(x), target)


def saturate_function(source: DType, target: DType, wide: bool = False) -> Function:
    """Return ``sat[target](x)``: rounds to the nearest, ties to even, then clamps to the range.

    NaN becomes 0 in an integer type and stays in a float type.
    """
    if target.is_float:
        cast = cast_function(source, target, wide)
        top = largest(target)
        return lambda x: _clamp_float(np.asarray(x), cast(x), top)
    if source.is_float:
        return lambda x: _to_integer(np.rint(x), target)
    low, high = max(source.lowest, target.lowest), min(source.highest, target.highest)
    return lambda x: np.clip(_numbers(x), low, high).astype(carrier(target))


def wrap(x: Values, target: DType) -> Values:
    """Return integers modulo the target's width."""
    held = x.astype(carrier(target), copy=False)
    if target.bits != 4:
        return held
    if target.kind == "signed":
        return np.asarray(((held + np.int8(8)) & np.int8(15)) - np.int8(8))
    return np.asarray(held & np.uint8(15))


def _numbers(x: Values) -> Values:
    x = np.asarray(x)
    return x.astype(np.uint8) if x.dtype == np.bool_ else x


def _clamp_float(x: Values, rounded: Values, top: float) -> Values:
    # f8e4m3 rounds what is too large to NaN, so the argument decides, not the rounded value.
    limit = rounded.dtype.type(top)
    # In float64: numpy would round the bound to the argument's type, f64's largest to infinity.
    wide = x.astype(F64)
    clamped = np.where(wide > top, limit, np.where(wide < -top, -limit, rounded))
    return np.asarray(clamped, rounded.dtype)


def _to_integer(whole: Values, target: DType) -> Values:
    """Return whole float values as integers, saturated; NaN becomes 0."""
    whole = np.asarray(whole).astype(F64)
    # Powers of two, so exact: highest + 1 is where saturation begins.
    over, under = whole >= float(target.highest + 1), whole < float(target.lowest)
    safe = np.where(over | under | np.isnan(whole), 0.0, whole)
    result = safe.astype(carrier(target))
    result = np.where(over, carrier(target).type(target.highest), result)
    return np.asarray(np.where(under, carrier(target).type(target.lowest), result))


def _float_to_float(source: DType, target: DType) -> Function:
    if target.bits >= 32:
        return lambda x: np.asarray(x).astype(carrier(target), copy=False)
    if source.precision <= target.precision and source.max_exponent <= target.max_exponent:
        return lambda x: x
    return lambda x: round_float(x, target)


def _to_float(source: DType, target: DType) -> Function:
    if target.bits == 64 or (target.bits == 32 and source.bits != 64):
        # int32 to float32 is one rounding in numpy; narrower integers are exact.
        return lambda x: np.asarray(x).astype(carrier(target))
    if target.bits == 32:
        return lambda x: np.asarray(x).astype(F32)
    if source.bits < 64:
        return lambda x: round_float(np.asarray(x).astype(F64), target)
    return lambda x: round_float(_sticky(np.asarray(x)).astype(F64), target)


def _sticky(x: Values) -> Values:
    """Return 64-bit integers that fit 53 bits and round to narrow types as ``x`` does.

    Of large ones the low 12 bits become one bit that says whether any of them was set.
    """
    one = x.dtype.type(1)
    low = x & x.dtype.type(0xFFF)
    replaced = (x - low) + (low != 0).astype(x.dtype) * (one << x.dtype.type(11))
    limit = x.dtype.type(1 << 53)
    small = x < limit if x.dtype.kind == "u" else (x < limit) & (x > -limit)
    return np.asarray(np.where(small, x, replaced))
