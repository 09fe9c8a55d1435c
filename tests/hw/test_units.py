from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.units import UnitError, parse_number, parse_quantity, parse_whole


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("48 KiB", "bytes", 49152),
        ("48KiB", "bytes", 49152),
        ("1 MB", "bytes", 1000**2),
        ("128 B/cycle", "bytes/cycle", 128),
        ("0.5 KiB / cycle", "bytes/cycle", 512),
        ("3.0 GHz", "frequency", 3 * 10**9),
        ("2_", "cycles", None),
        ("4", "cycles", 4),
        ("4 cycles", "cycles", 4),
        ("1/3", "cycles", Fraction(1, 3)),
        ("1e3", "cycles", 1000),
        ("0.1", "cycles", Fraction(1, 10)),
        ("12 pJ", "energy", 12),
        ("1 nJ", "energy", 1000),
        ("1 mm2", "area", 10**6),
    ],
)
def test_quantity(text: str, dimension: str, value: int | None) -> None:
    if value is None:
        with pytest.raises(UnitError, match="unknown unit"):
            parse_quantity(text, dimension)  # type: ignore[arg-type]
    else:
        assert parse_quantity(text, dimension) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("48", "the unit is missing: expected a size such as '48 KiB'"),
        ("48 K", "unknown unit 'K', expected one of B, kB"),
        ("48 b", "unknown unit 'b'"),
        ("KiB", "expected a size such as '48 KiB'"),
        ("", "expected a size"),
        ("1/0 B", "division by zero"),
    ],
)
def test_quantity_says_what_it_expects(text: str, says: str) -> None:
    with pytest.raises(UnitError) as error:
        parse_quantity(text, "bytes")
    assert says in str(error.value)


@pytest.mark.parametrize("text", ["1e999", "9" * 19, "1_000", "0x10", "nan", ".5", "inf", "\u0661"])
def test_numbers_that_are_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_number(text)


@given(st.text(max_size=20))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for parse in (parse_number, parse_whole, lambda t: parse_quantity(t, "bytes")):
        try:
            value: object = parse(text)
        except UnitError as error:
            value = str(error)
        assert value is not None
        assert "\n" not in str(value)


@given(st.integers(0, 10**6), st.integers(1, 10**3))
def test_ratios_are_exact(numerator: int, denominator: int) -> None:
    assert parse_number(f"{numerator}/{denominator}") == Fraction(numerator, denominator)
