"""Sums that are taken as an instruction takes them, beside exact fractions."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import Source
from isamap.interp.call import Plan
from isamap.interp.exact import exact_sum
from isamap.interp.rounding import nearest
from isamap.interp.steps import Stepped, spelled_out
from isamap.ir.dtype import DTYPES
from isamap.ir.numeric import Flush, Numeric
from isamap.text.load import parse_instructions
from tests.profiles import examples

F32 = DTYPES["f32"]
SMALLEST = Fraction(2) ** -126
Round = Callable[[Fraction], Fraction]


def dot(count: int, numeric: Numeric, a: Sequence[float], b: Sequence[float], c: float) -> float:
    """Return what a dot product of f32 gives."""
    text = f"""instruction dot {{
      in a : f32[{count}] @ v  in b : f32[{count}] @ v  inout c : f32[] @ v
      c[] += a[k] * b[k] }}"""
    (instruction,) = parse_instructions(Source("test", text), frozenset({"v"}))
    plan = Plan(spelled_out(instruction, numeric, {}), {}, {}, Stepped(numeric=numeric))
    result = np.array([c], np.float32)
    with np.errstate(all="ignore"):
        plan.run([(np.array(a, np.float32), 0), (np.array(b, np.float32), 0), (result, 0)])
    return float(result[0])


def to_nearest(x: Fraction) -> Fraction:
    return Fraction(nearest(x, F32))


def to_odd(x: Fraction) -> Fraction:
    """Return a number cut to 24 bits, its last bit set if that cuts anything."""
    if x == 0:
        return x
    exponent = max(math.frexp(float(abs(x)))[1] - 24, -149)
    unit = Fraction(2) ** exponent
    steps = abs(x) // unit
    odd = steps if steps * unit == abs(x) else steps | 1
    return odd * unit if x > 0 else -odd * unit


def flushed(round_: Round) -> Round:
    return lambda x: Fraction(0) if abs(to := round_(x)) < SMALLEST else to


numbers = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)
four = st.lists(numbers, min_size=4, max_size=4)


@pytest.mark.parametrize("rounding", ["nearest", "odd"])
@examples(1)
@given(a=four, b=four, c=numbers)
def test_orders_of_four_products(rounding: str, a: list[float], b: list[float], c: float) -> None:
    r = to_nearest if rounding == "nearest" else to_odd
    p = [r(Fraction(x) * Fraction(y)) for x, y in zip(a, b, strict=True)]
    exact = [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)]
    start = Fraction(c)
    expected = {
        (): r(r(r(r(start + p[0]) + p[1]) + p[2]) + p[3]),
        (("sums", "descending"),): r(r(r(r(start + p[3]) + p[2]) + p[1]) + p[0]),
        (("sums", "apart"),): r(start + r(r(r(p[0] + p[1]) + p[2]) + p[3])),
        (("sums", "once"),): r(start + r(sum(exact, Fraction(0)))),
        (("sums", "halves"),): r(start + r(r(p[0] + p[2]) + r(p[1] + p[3]))),
        (("sums", "pairs"),): r(start + r(r(p[0] + p[1]) + r(p[2] + p[3]))),
        (("groups", 2),): r(r(start + r(p[0] + p[1])) + r(p[2] + p[3])),
        (("fused", True),): r(r(r(r(start + exact[0]) + exact[1]) + exact[2]) + exact[3]),
        (("fused", True), ("groups", 2)): r(r(start + r(p[0] + exact[1])) + r(p[2] + exact[3])),
    }
    for said, want in expected.items():
        fields = {
            name: (("k", value),) if name in ("sums", "groups") else value for name, value in said
        }
        numeric = Numeric(rounding=rounding, **fields)  # type: ignore[arg-type]
        assert Fraction(dot(4, numeric, a, b, c)) == want, said


@given(
    terms=st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=6
    )
)
def test_an_exact_sum_is_rounded_to_odd_once(terms: list[float]) -> None:
    again = [*terms, *(-t for t in terms[1:])]  # nearly all of it cancels
    for values in (terms, again):
        found = float(exact_sum([np.array([v]) for v in values])[0])
        exact = sum(map(Fraction, values), Fraction(0))
        assert found == float(exact) or abs(Fraction(found) - exact) < abs(exact) / 2**52
        assert (Fraction(found) == exact) or int(np.array(found).view(np.int64)) & 1


def test_a_sum_of_its_own_begins_with_its_first_term_or_with_zero() -> None:
    apart = (("k", "apart"),)
    first, zero = (Numeric(sums=apart, zero=zero) for zero in (False, True))  # type: ignore[arg-type]
    assert math.copysign(1, dot(1, first, [-0.0], [1.0], -0.0)) == -1
    assert math.copysign(1, dot(1, zero, [-0.0], [1.0], -0.0)) == 1


@pytest.mark.parametrize("rounding", ["nearest", "odd"])
@given(
    a=st.floats(-(2.0**-120), 2.0**-120, width=32),
    b=st.floats(-2.0, 2.0, width=32),
    c=st.floats(-(2.0**-125), 2.0**-125, width=32),
)
def test_subnormal_numbers_are_zero_if_flushed(rounding: str, a: float, b: float, c: float) -> None:
    round_ = flushed(to_nearest if rounding == "nearest" else to_odd)
    x, y, z = (Fraction(v) if abs(v) >= SMALLEST else Fraction(0) for v in (a, b, c))
    numeric = Numeric(rounding=rounding, flush="after")  # type: ignore[arg-type]
    found = Fraction(dot(1, numeric, [a], [b], c))
    want = round_(z + round_(x * y))
    # What rounds up to a normal number in 24 bits alone is not subnormal.
    assert found == want or (abs(found - want) <= SMALLEST and abs(want) <= SMALLEST)


@pytest.mark.parametrize(
    ("flush", "factor", "want"),
    [
        ("after", 1 - 2.0**-24, 0.0),
        ("before", 1 - 2.0**-24, 0.0),
        ("never", 1 - 2.0**-24, 2.0**-126),
        ("after", 1.0, 2.0**-126),
        ("before", 1.0, 2.0**-126),
    ],
)
def test_what_is_subnormal_is_told_before_or_after_rounding(
    flush: Flush, factor: float, want: float
) -> None:
    assert dot(1, Numeric(flush=flush), [2.0**-126], [factor], 0.0) == want
    # 2^-126 less what 24 bits cannot tell.
    numeric = Numeric(fused=True, flush=flush)
    found = dot(1, numeric, [2.0**-100], [-(2.0**-100)], 2.0**-126)
    assert found == (0.0 if flush == "before" else 2.0**-126)


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        (3e38, 2.0, 0.0, math.inf),
        (-3e38, 2.0, 0.0, -math.inf),
        (math.inf, 1.0, 0.0, math.inf),
        (3.4028234e38, 1.0, 1e30, 3.4028234663852886e38),
        (math.inf, 1.0, -math.inf, math.nan),
        (math.inf, 0.0, 0.0, math.nan),
    ],
)
def test_what_is_too_large_is_infinite_when_rounded_to_odd(
    a: float, b: float, c: float, want: float
) -> None:
    found = dot(1, Numeric(rounding="odd"), [a], [b], c)
    assert found == want or (math.isnan(found) and math.isnan(want))


def one(op: str, numeric: Numeric, *values: float) -> float:
    """Return what one operation of f32 gives."""
    step = Stepped(numeric=numeric).operation(op, (F32,) * len(values), F32)
    with np.errstate(all="ignore"):
        return float(step(*(np.array([v], np.float32) for v in values))[0])


@pytest.mark.parametrize("rounding", ["nearest", "odd"])
@given(
    a=st.floats(-(2.0**100), 2.0**100, width=32),
    b=st.floats(2.0**-20, 2.0**20, width=32),
)
def test_quotients_and_roots_are_rounded_once(rounding: str, a: float, b: float) -> None:
    round_ = to_nearest if rounding == "nearest" else to_odd
    numeric = Numeric(rounding=rounding, flush="before")  # type: ignore[arg-type]
    x = Fraction(a) if abs(a) >= SMALLEST else Fraction(0)
    exact = x / Fraction(b)
    want = Fraction(0) if abs(exact) < SMALLEST else round_(exact)
    assert Fraction(one("/", numeric, a, b)) == want
    root = Fraction(one("sqrt", numeric, b))
    unit = Fraction(2) ** (math.frexp(float(root))[1] - 24)
    reach = unit if rounding == "odd" else unit / 2
    assert (root - reach) ** 2 <= Fraction(b) <= (root + reach) ** 2
    assert rounding == "nearest" or root**2 == Fraction(b) or (root / unit) % 2 == 1


@pytest.mark.parametrize(
    ("op", "a", "b", "flush", "want"),
    [
        ("max", 1e-40, -1.0, "before", 0.0),
        ("max", 1e-40, -1.0, "never", float(np.float32(1e-40))),
        ("min", 1.0, 1e-40, "after", 0.0),
        ("min", -1e-40, 1.0, "before", -0.0),
        ("max", math.nan, 1.0, "before", math.nan),
        ("max", 2.0**-126, 0.0, "before", 2.0**-126),
    ],
)
def test_extremes_take_subnormal_numbers_for_zero_where_they_are_flushed(
    op: str, a: float, b: float, flush: Flush, want: float
) -> None:
    found = one(op, Numeric(flush=flush), a, b)
    assert math.copysign(1, found) == math.copysign(1, want)
    assert found == want or (math.isnan(found) and math.isnan(want))


@pytest.mark.parametrize(
    ("value", "a", "flush", "want"),
    [
        ("a[i] > 0", 1e-40, "never", 1),
        ("a[i] > 0", 1e-40, "before", 0),
        ("a[i] == 0", -1e-40, "after", 1),
        ("-a[i] < 0", 1e-40, "before", 0),
        ("ceil(a[i]) == 1", 1e-40, "before", 0),
        ("ceil(a[i]) == 1", 1e-40, "never", 1),
        ("a[i] > 0", 2.0**-126, "before", 1),
    ],
)
def test_comparisons_take_subnormal_numbers_for_zero_where_they_are_flushed(
    value: str, a: float, flush: Flush, want: int
) -> None:
    text = f"instruction look {{ in a : f32[1] @ v  out r : bool[1] @ v  r[i] = {value} }}"
    (instruction,) = parse_instructions(Source("test", text), frozenset({"v"}))
    numeric = Numeric(flush=flush)
    plan = Plan(spelled_out(instruction, numeric, {}), {}, {}, Stepped(numeric=numeric))
    found = np.zeros(1, bool)
    plan.run([(np.array([a], np.float32), 0), (found, 0)])
    assert found[0] == want


def test_signs_of_subnormal_numbers_change_where_they_are_flushed() -> None:
    text = "instruction turn { in a : f32[1] @ v  out r : f32[1] @ v  r[i] = -a[i] }"
    (instruction,) = parse_instructions(Source("test", text), frozenset({"v"}))
    numeric = Numeric(flush="before")
    plan = Plan(spelled_out(instruction, numeric, {}), {}, {}, Stepped(numeric=numeric))
    found = np.zeros(1, np.float32)
    plan.run([(np.array([1e-40], np.float32), 0), (found, 0)])
    assert found[0] == -np.float32(1e-40)


def test_sums_of_terms_begin_with_zero_and_sums_of_sums_with_the_first() -> None:
    # A product too small for a float leaves zero of its sign behind.  Each sum over k ends with one
    # that is negative, so that both are -0, and so are their sum and that with c.
    text = """instruction dot {
      in a : f32[2, 2] @ v  in b : f32[2, 2] @ v  inout c : f32[] @ v
      c[] += a[k, p] * b[k, p] }"""
    (instruction,) = parse_instructions(Source("test", text), frozenset({"v"}))
    numeric = Numeric(fused=True, sums=(("p", "apart"), ("k", "apart")), zero=True, flush="after")
    plan = Plan(spelled_out(instruction, numeric, {}), {}, {}, Stepped(numeric=numeric))

    def sign(last: float) -> float:
        a = np.array([[0, 0], [last, last]], np.float32)
        b = np.full((2, 2), 2.0**-120, np.float32)
        c = np.array([-0.0], np.float32)
        plan.run([(a.ravel(), 0), (b.ravel(), 0), (c, 0)])
        return math.copysign(1.0, float(c[0]))

    assert sign(-(2.0**-120)) == -1.0
    assert sign(2.0**-120) == 1.0
    assert sign(-0.0) == 1.0  # +0 and -0 is +0


@pytest.mark.parametrize("flush", ["never", "after", "before"])
def test_conversions_take_subnormal_arguments_for_zero_if_flushed(flush: Flush) -> None:
    text = """instruction narrow {
      in a : f32[4] @ v  out r : bf16[4] @ v
      r[i] = bf16(a[i]) }"""
    (instruction,) = parse_instructions(Source("test", text), frozenset({"v"}))
    numeric = Numeric(flush=flush)
    plan = Plan(spelled_out(instruction, numeric, {}), {}, {}, Stepped(numeric=numeric))
    given_ = np.array([2.0**-126, -(2.0**-127), 2.0**-133, 1.0], np.float32)
    result = np.zeros(4, np.float32)  # as the interpreter keeps it
    plan.run([(given_, 0), (result, 0)])
    found = result
    want = given_ if flush == "never" else np.array([2.0**-126, -0.0, 0.0, 1.0], np.float32)
    np.testing.assert_array_equal(found, want)
    assert np.array_equal(np.signbit(found), np.signbit(want))
