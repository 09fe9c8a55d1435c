"""The free arithmetic keeps the laws that a compiler may use, and no others."""

import numpy as np
import pytest

from isamap.interp.arithmetic import free
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.nodes import Literal, Reduction
from isamap.ir.statements import identity

FLOAT, INT, UNSIGNED, BOOL = (DTYPES[n] for n in ("f32", "s32", "u8", "bool"))
NUMBERS = np.random.default_rng(1).integers(0, 1 << 60, (3, 500)).astype(np.uint64)
TRUTHS = np.random.default_rng(2).integers(0, 2, (3, 50)).astype(np.uint64)

BINARY = [
    *(("+", FLOAT), ("*", INT), ("max", FLOAT), ("min", INT), ("max", UNSIGNED), ("&", INT)),
    *(("|", UNSIGNED), ("^", INT), ("max", BOOL), ("&", BOOL), ("|", BOOL), ("^", BOOL)),
]
LATTICE = {"max": "min", "min": "max", "&": "|", "|": "&"}
REDUCTION: dict[str, Reduction] = {
    "+": "+=",
    "*": "*=",
    "max": "max=",
    "min": "min=",
    "&": "and=",
    "|": "or=",
    "^": "xor=",
}


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize(("op", "dtype"), BINARY, ids=lambda v: getattr(v, "name", v))
def test_what_may_be_reordered_may_be(op: str, dtype: DType, idempotent: bool) -> None:
    f = free(idempotent).operation(op, (dtype, dtype), dtype)
    a, b, c = TRUTHS if dtype is BOOL else NUMBERS
    np.testing.assert_array_equal(f(a, b), f(b, a))
    np.testing.assert_array_equal(f(f(a, b), c), f(a, f(b, c)))
    neutral = free().constant(identity(REDUCTION[op], dtype))
    np.testing.assert_array_equal(f(a, neutral), a)
    if op in LATTICE:
        absorbing = free().constant(identity(REDUCTION[LATTICE[op]], dtype))
        np.testing.assert_array_equal(f(a, absorbing), np.broadcast_to(absorbing, a.shape))
        if idempotent:
            np.testing.assert_array_equal(f(a, a), a)


def test_no_term_hides_behind_a_greater_one() -> None:
    f = free().operation("max", (FLOAT, FLOAT), FLOAT)
    a, b, _ = NUMBERS
    assert not np.isin(f(a, b), np.concatenate([a, b])).any()


def test_infinities_absorb_in_sums() -> None:
    inf, low = (free().constant(Literal(text, FLOAT)) for text in ("inf", "-inf"))
    add, take = (free().operation(op, (FLOAT, FLOAT), FLOAT) for op in ("+", "-"))
    a = NUMBERS[0]
    assert (add(a, low) == low).all()
    assert (take(a, low) == inf).all()
    assert free().operation("neg", (FLOAT,), FLOAT)(inf) == low


def test_distinct_operations_differ() -> None:
    a, b, _ = NUMBERS
    binary = ["+", "-", "*", "/", "max", "min"]
    results = [free().operation(op, (FLOAT, FLOAT), FLOAT)(a, b) for op in binary]
    results += [free().operation(op, (INT, INT), INT)(a, b) for op in ("&", "|", "^", "//", "%")]
    for op in ("exp", "log", "tanh", "sqrt", "rsqrt", "sigmoid", "erf", "round", "floor", "abs"):
        results.append(free().operation(op, (FLOAT,), FLOAT)(a))
    results.append(free().operation("sat", (INT,), UNSIGNED)(a))
    results.append(free().operation("sat", (INT,), DTYPES["s8"])(a))
    for n, one in enumerate(results):
        for other in results[:n]:
            assert (one == other).mean() < 0.6  # two orders choose the same argument half the time


def test_whole_numbers_within_a_type_stay() -> None:
    small = np.array([0, 1, 2, 127], np.uint64)
    for op in ("sat", "round", "floor", "ceil", "trunc", "abs"):
        kept = free().operation(op, (INT,), DTYPES["s8"] if op == "sat" else FLOAT)(small)
        np.testing.assert_array_equal(kept, small)
    saturated = free().operation("sat", (INT,), DTYPES["s8"])(np.array([128, 300], np.uint64))
    assert not np.isin(saturated, [128, 300]).any()
    for op in ("tanh", "sqrt", "erf"):
        assert free().operation(op, (FLOAT,), FLOAT)(small)[0] == 0


def test_comparisons_agree_with_each_other() -> None:
    a, b, _ = NUMBERS
    less, more, at_most, at_least = (
        free().operation(op, (INT, INT), BOOL) for op in ("<", ">", "<=", ">=")
    )
    np.testing.assert_array_equal(less(a, b), more(b, a))
    np.testing.assert_array_equal(at_most(a, b), 1 - more(a, b))
    np.testing.assert_array_equal(at_least(a, a), np.ones(len(a)))
    assert 0.3 < less(a, b).mean() < 0.7


def test_infinities_are_constants() -> None:
    assert free().constant(Literal("inf", FLOAT)) != free().constant(Literal("-inf", FLOAT))


@pytest.mark.parametrize("op", ["<<", ">>", "//", "%"])
def test_zero_stays_zero(op: str) -> None:
    f = free().operation(op, (INT, INT), INT)
    a, b, _ = NUMBERS
    zero = np.zeros_like(a)
    assert not f(zero, b).any()
    assert (f(a, zero) == 0).all() == (op in ("//", "%"))
    assert f(a, b).all()
    assert not np.array_equal(f(a, b), f(b, a))


@pytest.mark.parametrize("op", ["exp", "sigmoid"])
def test_nothing_is_left_of_minus_infinity(op: str) -> None:
    f = free().operation(op, (FLOAT,), FLOAT)
    assert f(free().constant(Literal("-inf", FLOAT))) == 0
    assert f(NUMBERS[0]).all()


def test_a_finite_number_over_infinity_is_zero() -> None:
    f = free().operation("/", (FLOAT, FLOAT), FLOAT)
    inf, low = (free().constant(Literal(text, FLOAT)) for text in ("inf", "-inf"))
    a, b, _ = NUMBERS
    assert not f(a, np.broadcast_to(inf, a.shape)).any()
    assert not f(a, np.broadcast_to(low, a.shape)).any()
    assert f(a, b).all()
    assert f(inf, inf) == 1
