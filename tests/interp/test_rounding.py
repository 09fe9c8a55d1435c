"""Rounding to every float type, against an exhaustive list of its values."""

import itertools
import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.rounding import constant, largest, nearest, round_float
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Literal

NARROW = ["f16", "bf16", "f8e4m3", "f8e5m2"]


@cache
def positive_values(name: str) -> list[Fraction]:
    """All finite values of a type from 0 up; the place in the list is the bit pattern."""
    dtype = DTYPES[name]
    unsigned = np.uint16 if dtype.bits == 16 else np.uint8
    patterns = np.arange(1 << (dtype.bits - 1), dtype=unsigned)
    with np.errstate(invalid="ignore"):  # NaN patterns
        values = patterns.view(dtype.numpy).astype(np.float64)
    return [Fraction(float(v)) for v in values if math.isfinite(v)]


def expected(value: Fraction, name: str) -> float:
    """The nearest value, ties to the even bit pattern, found by search."""
    values = positive_values(name)
    size = abs(value)
    above = bisect_left(values, size)
    if above == len(values):
        beyond = 2 * values[-1] - values[-2]
        if size < (values[-1] + beyond) / 2 or (
            size == (values[-1] + beyond) / 2 and len(values) % 2 == 1
        ):
            return math.copysign(float(values[-1]), value)
        return math.nan if name == "f8e4m3" else math.copysign(math.inf, value)
    below = max(0, above - 1)
    low, high = size - values[below], values[above] - size
    best = below if low < high or (low == high and below % 2 == 0) else above
    return math.copysign(float(values[best]), value)


def agree(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or a == b


@pytest.mark.parametrize("name", NARROW)
def test_every_midpoint_and_its_neighbours_round_as_listed(name: str) -> None:
    values = positive_values(name)
    points = []
    for low, high in itertools.pairwise(values):
        middle = (low + high) / 2
        nudge = (high - low) / (1 << 36)
        points += [low, middle - nudge, middle, middle + nudge]
    step = values[-1] - values[-2]
    points += [values[-1] + step / 2 - step / 1024, values[-1] + step / 2, values[-1] + step]
    points = points[:: max(1, len(points) // 4000)] + points[-8:]
    wanted = [expected(p, name) for p in points]
    wide = np.array([float(p) for p in points])
    assert [Fraction(v) for v in wide.tolist()] == points
    got = round_float(wide, DTYPES[name]).tolist()
    negative = round_float(-wide, DTYPES[name]).tolist()
    for point, want, one, two in zip(points, wanted, got, negative, strict=True):
        assert agree(one, want), (point, one, want)
        assert agree(two, -want), (point, two, want)
        assert agree(nearest(point, DTYPES[name]), want)


@pytest.mark.parametrize("name", [*NARROW, "f32", "f64"])
@given(data=st.data())
def test_exact_values_and_float64_round_alike(name: str, data: st.DataObject) -> None:
    dtype = DTYPES[name]
    value = data.draw(st.floats(allow_nan=False, allow_infinity=False))
    with np.errstate(all="ignore"):
        got = float(round_float(np.array([value]), dtype)[0])
    assert agree(got, nearest(Fraction(value), dtype))


def test_a_literal_is_rounded_once() -> None:
    # Through float64 this would be 1: the decimal lies just above a midpoint of f32.
    above = Literal("1.00000005960464477540", DTYPES["f32"])
    assert float(constant(above)) == 1 + 2**-23
    assert float(np.float32(float(above.text))) == 1


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("inf", "bf16", math.inf),
        ("-inf", "f64", -math.inf),
        ("65519.999", "f16", 65504.0),
        ("448.0", "f8e4m3", 448.0),
        ("1e-45", "f32", 2.0**-149),
        ("-8", "s4", -8),
        ("18446744073709551615", "u64", 2**64 - 1),
        ("true", "bool", 1),
    ],
)
def test_literals(text: str, name: str, value: float) -> None:
    assert constant(Literal(text, DTYPES[name])).item() == value


def test_minus_zero_keeps_its_sign() -> None:
    assert math.copysign(1, float(constant(Literal("-0.0", DTYPES["f32"])))) == -1


def test_largest_values_are_those_of_the_lists() -> None:
    for name in NARROW:
        assert Fraction(largest(DTYPES[name])) == positive_values(name)[-1]
