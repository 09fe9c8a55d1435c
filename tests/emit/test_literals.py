import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.emit import literals
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Literal


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("0", "f32", "0.0f"),
        ("-0.0", "f32", "(-0.0f)"),
        ("0.1", "f32", "0x1.99999ap-4f"),
        ("0.1", "f64", "0x1.999999999999ap-4"),
        ("0.1", "bf16", "0x1.9ap-4f"),
        ("1e-45", "f32", "0x1p-149f"),
        ("1e39", "f32", "INFINITY"),
        ("-inf", "f64", "(-INFINITY)"),
        ("nan", "f16", "NAN"),
        ("-2147483648", "s32", "INT32_MIN"),
        ("-9223372036854775808", "s64", "INT64_MIN"),
        ("18446744073709551615", "u64", "UINT64_C(18446744073709551615)"),
        ("4294967295", "u32", "UINT32_C(4294967295)"),
        ("-128", "s8", "(-128)"),
        ("-8", "s4", "(-8)"),
        ("true", "bool", "1"),
        ("false", "bool", "0"),
    ],
)
def test_a_literal_is_written_with_its_exact_value(text: str, dtype: str, expected: str) -> None:
    assert literals.value_text(Literal(text, DTYPES[dtype])) == expected


@pytest.mark.parametrize(
    ("text", "dtype", "bits"),
    [
        ("1", "bf16", "0x3f80"),
        ("1.00390625", "bf16", "0x3f80"),  # a tie, to even
        ("1.01171875", "bf16", "0x3f82"),
        ("1", "f16", "0x3c00"),
        ("65520", "f16", "0x7c00"),
        ("448", "f8e4m3", "0x7e"),
        ("464", "f8e4m3", "0x7e"),
        ("-2", "f8e5m2", "0xc0"),
    ],
)
def test_memory_holds_the_bits_of_narrow_floats(text: str, dtype: str, bits: str) -> None:
    assert literals.memory_text(Literal(text, DTYPES[dtype])) == bits


@given(st.floats(width=32))
def test_a_hexadecimal_float_is_the_float(value: float) -> None:
    text = literals.value_text(Literal(repr(value), DTYPES["f32"]))
    special = {"NAN": math.nan, "INFINITY": math.inf, "(-INFINITY)": -math.inf}
    bare = text.strip("()")
    read = special.get(text)
    if read is None:
        assert bare.endswith("f")
        read = float.fromhex(bare[:-1]) if "x" in bare else float(bare[:-1])
    assert repr(read) == repr(value)
