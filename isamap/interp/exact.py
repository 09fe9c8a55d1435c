"""Fused multiply-adds and sums in numpy, rounded once."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from isamap.interp.rounding import F64, Values, nearest, round_float
from isamap.ir.dtype import DTYPES, DType


def fma(a: Values, b: Values, c: Values, dtype: DType) -> Values:
    """Return ``a*b + c`` rounded once to ``dtype``; arguments and result in its carrier."""
    if dtype.bits == 64:
        return _fma64(*np.broadcast_arrays(a, b, c))
    x, y, z = (np.asarray(v).astype(F64) for v in (a, b, c))
    # The product of two significands of at most 24 bits is exact in float64.
    return round_float(sticky(*two_sum(x * y, z)), dtype)


def two_sum(a: Values, b: Values) -> tuple[Values, Values]:
    """Return the rounded sum and its error; their sum is exactly ``a + b``."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def sticky(total: Values, error: Values) -> Values:
    """Return ``total`` rounded to odd instead of to nearest, given its error."""
    bits = total.view(np.int64)
    fix = (error != 0) & np.isfinite(error) & (bits & 1 == 0) & np.isfinite(total)
    # Away from zero when the error has the sign of the total; a zero total has no error.
    outward = (error > 0) == (total > 0)
    return np.asarray(np.where(fix, bits + np.where(outward, 1, -1), bits).view(F64))


def exact_sum(terms: Sequence[Values]) -> Values:
    """Return the sum of float64 values, rounded once, to odd; what is not finite as it comes."""
    parts: list[Values] = []  # they add up to the sum, do not overlap, and grow
    for term in terms:
        rest = np.asarray(term)
        grown = []
        for part in parts:
            rest, error = two_sum(rest, part)
            grown.append(error)
        parts = [*grown, rest]
    total, lost = np.zeros_like(parts[-1]), np.zeros_like(parts[-1])
    for part in reversed(parts):
        total, error = two_sum(total, part)
        lost = np.where(lost == 0, error, lost)
    plain = reduce(np.add, terms)
    # An exact zero has the sign that plain arithmetic gives it, if that gives one.
    zero = np.where(plain == 0, plain, 0.0)
    found = np.where(total == 0, zero, sticky(total, lost))
    return np.asarray(np.where(np.isfinite(plain), found, plain))


def _split(a: Values) -> tuple[Values, Values]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Values, b: Values) -> tuple[Values, Values]:
    """Return the rounded product and its error, where no intermediate leaves the normal range."""
    total = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return total, ((ah * bh - total) + ah * bl + al * bh) + al * bl


def _fma64(a: Values, b: Values, c: Values) -> Values:
    """Boldo and Melquiond's algorithm; extreme exponents are done with fractions."""
    high, low = _two_product(a, b)
    middle, rest = two_sum(c, low)
    top, carry = two_sum(high, middle)
    result = np.array(top + sticky(*two_sum(carry, rest)))
    # A product that is too large for the type is finite beside an infinite summand.
    numbers = np.isfinite(a) & np.isfinite(b)
    plain = np.where(numbers & np.isinf(c), c, a * b + c)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    result[...] = np.where(finite, result, plain)
    risky = finite & ~(_moderate(a) & _moderate(b) & _moderate(c) & _moderate(high))
    for place in np.argwhere(risky):
        at = tuple(place)
        exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
        if exact:  # an exact zero has the sign that plain arithmetic gives it
            result[at] = nearest(exact, DTYPES["f64"])
        else:
            result[at] = plain[at]
    exact_zero = finite & (result == 0) & ~risky
    result[...] = np.where(exact_zero, plain, result)
    return result


def _moderate(x: Values) -> Values:
    size = np.abs(x)
    return np.asarray((size == 0) | ((size > 1e-120) & (size < 1e120)))
