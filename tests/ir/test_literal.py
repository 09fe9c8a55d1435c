"""Literals are rounded once, and have one text each."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.literal import LiteralFault, canonical, exact, largest, nearest, value
from isamap.ir.nodes import Literal, Reduction
from isamap.ir.statements import identity

FLOATS = [dtype for dtype in DTYPES.values() if dtype.is_float]
NARROW = [dtype for dtype in FLOATS if dtype.bits <= 16]
INTEGERS = [dtype for dtype in DTYPES.values() if dtype.is_integer]


def patterns(dtype: DType) -> np.ndarray:
    bits = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        values = bits.view(dtype.numpy).astype(np.float64)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_narrow_value_has_a_text_that_restores_it(dtype: DType) -> None:
    for number in patterns(dtype):
        text = canonical(repr(float(number)), dtype)
        assert float(text) == number
        assert np.signbit(float(text)) == np.signbit(number)
        assert value(Literal(text, dtype)) == number


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_ties_between_narrow_values_go_to_the_even_one(dtype: DType) -> None:
    numbers = np.unique(np.abs(patterns(dtype)))
    for low, high in pairwise(numbers[:200]):
        middle = (Fraction(float(low)) + Fraction(float(high))) / 2
        rounded = nearest(middle, dtype)
        assert rounded == Fraction(float(np.float64(middle).astype(dtype.numpy)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_f64_has_pythons_text(number: float) -> None:
    assert canonical(repr(number), DTYPES["f64"]) == repr(number)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_f32_is_short_and_restores_it(number: float) -> None:
    text = canonical(repr(number), DTYPES["f32"])
    assert np.float32(text) == np.float32(number)
    assert value(Literal(text, DTYPES["f32"])) == number
    # Nine significant digits tell any two values of 24 bits apart.
    assert len(text.partition("e")[0].replace(".", "").strip("-0")) <= 9
    assert canonical(text, DTYPES["f32"]) == text


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        # Through float64 this would be 1.0: it lies just above the middle.
        ("1.00000005960464477540", "f32", "1.0000001"),
        ("1", "f32", "1.0"),
        ("1e22", "f64", "1e+22"),
        ("0.0000001", "f64", "1e-07"),
        ("-0.0", "f32", "-0.0"),
        ("-0", "f32", "-0.0"),
        ("-0", "s8", "0"),
        ("0.1", "f16", "0.0999755859375"),
        ("0.1", "bf16", "0.10009765625"),
        ("-128", "s8", "-128"),
        ("18446744073709551615", "u64", "18446744073709551615"),
        ("0", "bool", "false"),
        ("1", "bool", "true"),
        ("inf", "f8e5m2", "inf"),
        ("-inf", "f32", "-inf"),
        ("nan", "f8e4m3", "nan"),
        ("448", "f8e4m3", "448.0"),
        ("464", "f8e4m3", "448.0"),
        ("65519.99", "f16", "65504.0"),
        ("4.9e-324", "f64", "5e-324"),
    ],
)
def test_canonical_texts(text: str, dtype: str, expected: str) -> None:
    assert canonical(text, DTYPES[dtype]) == expected


@pytest.mark.parametrize(
    ("text", "dtype", "reason"),
    [
        ("65520", "f16", "does not fit"),
        ("465", "f8e4m3", "does not fit"),
        ("1e999", "f64", "does not fit"),
        ("1e9999", "f64", "does not fit"),
        ("1e-400", "f64", "too small"),
        ("1e-30", "f8e5m2", "too small"),
        ("inf", "f8e4m3", "no infinity"),
        ("128", "s8", "does not fit s8, which holds -128 to 127"),
        ("-1", "u8", "does not fit"),
        ("8", "s4", "does not fit"),
        ("1.0", "s8", "no whole number"),
        ("inf", "s8", "no whole number"),
        ("2", "bool", "write true or false"),
        ("true", "f32", "is a bool"),
        ("true", "s8", "no whole number"),
    ],
)
def test_faults(text: str, dtype: str, reason: str) -> None:
    with pytest.raises(LiteralFault, match=reason):
        canonical(text, DTYPES[dtype])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_largest_value_is_numpys(dtype: DType) -> None:
    finfo: Any = ml_dtypes.finfo
    assert float(largest(dtype)) == float(finfo(dtype.numpy).max)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_hold_their_whole_range(dtype: DType) -> None:
    assert canonical(str(dtype.lowest), dtype) == str(dtype.lowest)
    assert canonical(str(dtype.highest), dtype) == str(dtype.highest)
    with pytest.raises(LiteralFault):
        canonical(str(dtype.highest + 1), dtype)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_identities_are_canonical(dtype: DType) -> None:
    reductions: tuple[Reduction, ...] = ("+=", "*=", "max=", "min=")
    for reduction in reductions:
        text = identity(reduction, dtype).text
        assert canonical(text, dtype) == text


def test_exact_is_exact() -> None:
    assert exact("0.1") == Fraction(1, 10)
    assert exact("1.5e-3") == Fraction(3, 2000)
