"""Operations of every type, against exact fractions and unbounded integers."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.arithmetic import declared, field, float64
from isamap.interp.field import MERSENNE, NotPolynomialError
from isamap.interp.rounding import Values, carrier, nearest
from isamap.ir.dtype import DTYPES, DType

EXACT = declared()
FLOATS = ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"]
INTEGERS = [f"{sign}{bits}" for sign in "su" for bits in (64, 32, 16, 8, 4)]


def apply(op: str, name: str, *arguments: object, result: str | None = None) -> Values:
    dtype = DTYPES[name]
    held = [np.asarray(a, carrier(dtype)) for a in arguments]
    function = EXACT.operation(op, (dtype,) * len(held), DTYPES[result or name])
    with np.errstate(all="ignore"):
        return np.asarray(function(*held))


@st.composite
def floats(draw: st.DrawFn, name: str) -> float:
    """A value of a type: any magnitude, or one with few bits near 1, which make ties."""
    dtype = DTYPES[name]
    if draw(st.booleans()):
        value = draw(st.floats(allow_nan=False, allow_infinity=False))
        rounded = nearest(Fraction(value), dtype)
        if math.isfinite(rounded):
            return rounded
    return (
        draw(st.integers(-(1 << dtype.precision), 1 << dtype.precision))
        * 2.0 ** draw(st.integers(-4, 1))
        / (1 << dtype.precision)
    )


OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
def test_float_operations_round_once(name: str, op: str, data: st.DataObject) -> None:
    a, b = data.draw(floats(name)), data.draw(floats(name))
    if op == "/" and b == 0:
        return
    exact = OPERATORS[op](Fraction(a), Fraction(b))
    got = float(apply(op, name, [a], [b])[0])
    want = nearest(exact, DTYPES[name])
    assert got == want or (math.isnan(got) and math.isnan(want))


@pytest.mark.parametrize("name", FLOATS)
@given(data=st.data())
def test_fma_rounds_once(name: str, data: st.DataObject) -> None:
    a, b = data.draw(floats(name)), data.draw(floats(name))
    c = data.draw(floats(name))
    if data.draw(st.booleans()):  # nearly cancels the product
        near = nearest(-Fraction(a) * Fraction(b), DTYPES[name])
        c = near if math.isfinite(near) else c
    want = nearest(Fraction(a) * Fraction(b) + Fraction(c), DTYPES[name])
    got = float(apply("fma", name, [a], [b], [c])[0])
    assert got == want or (math.isnan(got) and math.isnan(want))


def test_fma_of_float32_where_float64_would_round_twice() -> None:
    # a*b + c lies just above a midpoint of f32, by less than float64 can hold.
    a, b, c = 1.0 + 2.0**-23, 2.0**-60, 1.0 + 2.0**-23
    tie = 1.0 + 2.0**-23
    assert float(apply("fma", "f32", [2.0**-24], [1.0], [tie])[0]) == 1.0 + 2.0**-22
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    assert float(apply("fma", "f32", [a], [b], [c])[0]) == nearest(exact, DTYPES["f32"])
    low, high = 2.0**-24 * (1 + 2.0**-23), 1.0
    exact = Fraction(low) * Fraction(1.0 - 2.0**-24) + Fraction(high)
    got = float(apply("fma", "f32", [low], [1.0 - 2.0**-24], [high])[0])
    assert got == nearest(exact, DTYPES["f32"])


def test_fma_of_a_product_that_is_too_large_with_an_infinity() -> None:
    large = 2.0**1000
    assert float(apply("fma", "f64", [-large], [large], [math.inf])[0]) == math.inf
    assert float(apply("fma", "f64", [large], [large], [0.0])[0]) == math.inf
    assert math.isnan(float(apply("fma", "f64", [math.inf], [1.0], [-math.inf])[0]))


@pytest.mark.parametrize("name", FLOATS)
@given(data=st.data())
def test_square_roots_are_the_nearest(name: str, data: st.DataObject) -> None:
    x = abs(data.draw(floats(name)))
    got = Fraction(float(apply("sqrt", name, [x])[0]))
    scale = 1 << 1200
    root = Fraction(math.isqrt(int(Fraction(x) * scale * scale)), scale)
    # The root is irrational or exact, so its truncation to 1200 bits rounds as it does.
    if root * root != Fraction(x):
        root += Fraction(1, 2 * scale)
    assert got == Fraction(nearest(root, DTYPES[name]))


@pytest.mark.parametrize("name", ["f32", "bf16"])
@given(x=st.floats(-20, 20))
def test_transcendental_functions_are_within_one_unit(name: str, x: float) -> None:
    dtype = DTYPES[name]
    x = nearest(Fraction(x), dtype)
    references: dict[str, float] = {
        "exp": math.exp(x),
        "tanh": math.tanh(x),
        "erf": math.erf(x),
        "sigmoid": 1 / (1 + math.exp(-x)),
    }
    if x > 0:
        references |= {"log": math.log(x), "rsqrt": 1 / math.sqrt(x)}
    for op, reference in references.items():
        got = float(apply(op, name, [x])[0])
        assert abs(got - reference) <= 2 * float(dtype.epsilon) * abs(reference) + 2.0**-126, op


def test_nan_wins_in_minimum_and_maximum() -> None:
    for op in ("min", "max"):
        assert np.isnan(apply(op, "bf16", [np.nan, 1], [1, np.nan])).all()


def test_whole_number_functions() -> None:
    x = [2.5, -2.5, 3.5, -0.5, 0.49]
    assert apply("round", "f16", x).tolist() == [2, -2, 4, 0, 0]
    assert apply("floor", "f16", x).tolist() == [2, -3, 3, -1, 0]
    assert apply("ceil", "f16", x).tolist() == [3, -2, 4, 0, 1]
    assert apply("trunc", "f16", x).tolist() == [2, -2, 3, 0, 0]


def wrapped(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.highest else value


INTEGER_OPERATORS: dict[str, Callable[[int, int, int], int]] = {
    "+": lambda a, b, bits: a + b,
    "-": lambda a, b, bits: a - b,
    "*": lambda a, b, bits: a * b,
    "//": lambda a, b, bits: a // b if b else 0,
    "%": lambda a, b, bits: a % b if b else 0,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
    "|": lambda a, b, bits: a | b,
    "&": lambda a, b, bits: a & b,
    "^": lambda a, b, bits: a ^ b,
    "<<": lambda a, b, bits: a << (b % bits),
    ">>": lambda a, b, bits: a >> (b % bits),
}


@pytest.mark.parametrize("name", ["s4", "u4", "s8", "u8"])
@pytest.mark.parametrize("op", INTEGER_OPERATORS)
def test_all_pairs_of_small_integers(name: str, op: str) -> None:
    dtype = DTYPES[name]
    step = 1 if dtype.bits == 4 else 5
    values = sorted({*range(dtype.lowest, dtype.highest + 1, step), dtype.highest, 0, 1})
    a = [x for x in values for _ in values]
    b = values * len(values)
    want = [
        wrapped(INTEGER_OPERATORS[op](x, y, dtype.bits), dtype) for x, y in zip(a, b, strict=False)
    ]
    assert apply(op, name, a, b).tolist() == want


@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.data())
def test_integers_wrap(name: str, data: st.DataObject) -> None:
    dtype = DTYPES[name]
    numbers = st.integers(dtype.lowest, dtype.highest)
    a, b = data.draw(numbers), data.draw(numbers)
    for op, function in INTEGER_OPERATORS.items():
        want = wrapped(function(a, b, dtype.bits), dtype)
        assert apply(op, name, [a], [b]).tolist() == [want], op
    assert apply("neg", name, [a]).tolist() == [wrapped(-a, dtype)]
    assert apply("abs", name, [a]).tolist() == [wrapped(abs(a), dtype)]
    assert apply("~", name, [a]).tolist() == [wrapped(~a, dtype)]


@pytest.mark.parametrize("target", [*INTEGERS, "bool"])
@pytest.mark.parametrize("source", FLOATS)
def test_floats_truncate_and_saturate(source: str, target: str) -> None:
    dtype = DTYPES[target]
    x = [0.0, 1.5, -1.5, 2.5, 7.75, 300.0, -300.0, math.inf, -math.inf, math.nan]
    x = [nearest(Fraction(v), DTYPES[source]) if math.isfinite(v) else v for v in x]
    held = np.array(x, carrier(DTYPES[source]))
    held = held.astype(DTYPES[source].numpy).astype(held.dtype)

    def clamp(v: float, whole: Callable[[float], float]) -> int:
        if math.isnan(v):
            return 0
        if math.isinf(v):
            return dtype.highest if v > 0 else dtype.lowest
        return min(max(int(whole(v)), dtype.lowest), dtype.highest)

    with np.errstate(all="ignore"):
        cast = EXACT.operation("cast", (DTYPES[source],), dtype)(held)
        sat = EXACT.operation("sat", (DTYPES[source],), dtype)(held)
    if target == "bool":
        assert cast.tolist() == [v != 0 for v in held.tolist()]
    else:
        assert cast.tolist() == [clamp(v, math.trunc) for v in held.tolist()]
    assert sat.tolist() == [clamp(v, round) for v in held.tolist()]


@pytest.mark.parametrize("source", INTEGERS)
@given(data=st.data())
def test_integers_convert(source: str, data: st.DataObject) -> None:
    dtype = DTYPES[source]
    value = data.draw(st.integers(dtype.lowest, dtype.highest))
    held = np.array([value], carrier(dtype))
    with np.errstate(all="ignore"):
        for name in INTEGERS:
            target = DTYPES[name]
            got = EXACT.operation("cast", (dtype,), target)(held)
            assert got.tolist() == [wrapped(value, target)]
            got = EXACT.operation("sat", (dtype,), target)(held)
            assert got.tolist() == [min(max(value, target.lowest), target.highest)]
        for name in FLOATS:
            target = DTYPES[name]
            number = float(EXACT.operation("cast", (dtype,), target)(held)[0])
            want = nearest(Fraction(value), target)
            assert number == want or (math.isnan(number) and math.isnan(want)), name


def test_64_bit_integers_are_not_rounded_twice() -> None:
    # 2**62 + 2**54 is a midpoint of bf16; one more must round up, though float64 cannot tell.
    value = 2**62 + 2**54 + 1
    got = EXACT.operation("cast", (DTYPES["s64"],), DTYPES["bf16"])(np.array([value, -value]))
    assert got.tolist() == [2.0**62 + 2.0**55, -(2.0**62) - 2.0**55]


def test_saturation_to_a_float_stops_at_its_largest_value() -> None:
    sat = EXACT.operation("sat", (DTYPES["f32"],), DTYPES["f8e4m3"])
    x = np.array([1e9, -np.inf, 450, 1.0625, np.nan], np.float32)
    assert sat(x).tolist()[:4] == [448, -448, 448, 1.0]
    assert np.isnan(sat(x)[4])


def test_float64_does_not_round_narrow_types() -> None:
    wide = float64()
    add = wide.operation("+", (DTYPES["bf16"],) * 2, DTYPES["bf16"])
    assert add(np.array([1.0]), np.array([2.0**-40])).tolist() == [1.0 + 2.0**-40]
    half = wide.operation("+", (DTYPES["u8"],) * 2, DTYPES["u8"])
    assert half(np.array([200], np.uint8), np.array([100], np.uint8)).tolist() == [44]


@pytest.mark.parametrize("prime", [MERSENNE, 4294967291, 7])
@given(a=st.integers(0, MERSENNE - 1), b=st.integers(0, MERSENNE - 1))
def test_field_operations(prime: int, a: int, b: int) -> None:
    numbers = field(prime)
    a, b = a % prime, b % prime
    x, y = np.array([a], np.uint64), np.array([b], np.uint64)
    f32 = DTYPES["f32"]
    for op, want in (("+", a + b), ("-", a - b), ("*", a * b)):
        assert numbers.operation(op, (f32, f32), f32)(x, y).tolist() == [want % prime]
    if b:
        quotient = numbers.operation("/", (f32, f32), f32)(x, y)
        assert numbers.operation("*", (f32, f32), f32)(quotient, y).tolist() == [a]


def test_a_field_takes_floats_as_fractions() -> None:
    numbers = field()
    got = numbers.encode(np.array([-0.75, 3.0, 0.0]), DTYPES["f64"]).tolist()
    assert got == [-3 * pow(4, -1, MERSENNE) % MERSENNE, 3, 0]
    assert numbers.encode(np.array([-1], np.int8), DTYPES["s8"]).tolist() == [MERSENNE - 1]


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_a_field_has_no_infinities(number: float) -> None:
    with pytest.raises(NotPolynomialError, match="no element of a field"):
        field().encode(np.array([1.0, number]), DTYPES["f32"])


def test_a_field_has_no_maximum() -> None:
    f32 = DTYPES["f32"]
    with pytest.raises(NotPolynomialError, match="'max' is not defined"):
        field().operation("max", (f32, f32), f32)
