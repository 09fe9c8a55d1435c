"""Bounds beside infinities and at the edge of a domain: finite where every evaluation is near."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isamap.interp.arithmetic import float64
from isamap.interp.bounded import Bounded
from isamap.interp.compare import compare, error_bound
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Permissions
from isamap.text.load import parse_module
from tests.interp.test_compare import rough
from tests.interp.test_run import kernel

MASKED = """
  in A : {0}[7, 8]  in B : {0}[9, 8]  in V : {0}[9, 5]
  local S : {0}[7, 9]  local M : {0}[7]  local E : {0}[7, 9]  local Z : {0}[7]
  local O : {0}[7, 5]  out Y : {0}[7, 5]
  S[q, k] += A[q, d] * B[k, d]
  S[q, k] = select(k <= q, S[q, k] * 0.3, -inf)
  M[q] max= S[q, k]
  E[q, k] = exp(S[q, k] - M[q])
  Z[q] += E[q, k]
  O[q, d] += E[q, k] * V[k, d]
  Y[q, d] = O[q, d] / Z[q]"""

ROOT = """
  in A : {0}[20, 33]  in W : {0}[33]  local S : {0}[20]  out Y : {0}[20]
  S[n] += A[n, k] * W[k]
  Y[n] = sqrt(max(S[n], 0))"""


def _masked(arrays: dict[str, Any], number: Any, order: Any) -> Any:
    """Return attention with sums in another order, each step rounded to a type."""

    def total(terms: Any) -> Any:
        found = np.zeros(terms.shape[1:], number)
        for term in terms:
            found = (found + term).astype(number)
        return found

    a, b, v = (arrays[name].astype(number) for name in "ABV")
    s = total((a[:, None] * b[None]).astype(number)[..., order[order < 8]].transpose(2, 0, 1))
    mask = np.arange(9)[None] <= np.arange(7)[:, None]
    s = np.where(mask, (s * number(0.3)).astype(number), number("-inf"))
    e = np.exp((s - s.max(axis=1, keepdims=True)).astype(number)).astype(number)
    z = total(e.T[order])
    return total((e[..., None] * v[None]).astype(number).transpose(1, 0, 2)[order]) / z[:, None]


@pytest.mark.parametrize("name", ["f32", "f64"])
@given(seed=st.integers(0, 1000))
def test_what_is_masked_by_infinities_has_a_finite_bound(name: str, seed: int) -> None:
    found = kernel(MASKED.format(name))
    arrays = rough(found, seed)
    bound = error_bound(found, arrays)["Y"]
    unit = float(DTYPES[name].epsilon)
    assert (bound < 1000 * unit).all()
    expected = interpret(found, arrays)
    order = np.random.default_rng(seed).permutation(9)
    other = _masked(arrays, found.buffer("Y").dtype.numpy.type, order)
    assert compare(found, arrays, expected, {"Y": other}).ok
    exact = interpret(found, arrays, arithmetic=float64())["Y"]
    assert (np.abs(exact - other) <= bound).all()
    wrong = {"Y": expected["Y"] + 2000 * expected["Y"].dtype.type(unit)}
    assert not compare(found, arrays, expected, wrong).ok


@pytest.mark.parametrize("cancels", [False, True])
@given(seed=st.integers(0, 1000))
def test_roots_of_what_is_not_negative_have_a_finite_bound(cancels: bool, seed: int) -> None:
    found = kernel(ROOT.format("f32"))
    arrays = rough(found, seed)
    if cancels:  # Exactly 0, and only rounding makes it anything else.
        arrays["A"][:, 17:] = -arrays["A"][:, :16]
        arrays["W"][17:] = arrays["W"][:16]
        arrays["A"][:, 16] = 0
    expected = interpret(found, arrays)
    bound = error_bound(found, arrays)["Y"]
    assert (bound < 0.02).all()
    order = np.random.default_rng(seed).permutation(33)
    total = np.zeros(20, np.float32)
    for k in order:
        total += arrays["A"][:, k] * arrays["W"][k]
    other = np.sqrt(np.maximum(total, 0))
    assert compare(found, arrays, expected, {"Y": other}).ok
    # So it is of what is exact, and of what is about as far away as the sum may be.
    exact = (arrays["A"].astype(float) * arrays["W"].astype(float)).sum(axis=1)
    for off in (-30, 0, 30):
        near = np.sqrt(np.maximum(exact + off * 2.0**-24 * np.abs(exact), 0))
        assert (np.abs(near - other) <= bound).all()
    assert not compare(found, arrays, expected, {"Y": expected["Y"] + np.float32(0.02)}).ok


@pytest.mark.parametrize(
    ("value", "is_bounded"),
    [
        ("sqrt(X[i] - X[i] * 0.1 - X[i] * 0.9)", False),
        ("sqrt(abs(X[i] - X[i] * 0.1 - X[i] * 0.9))", True),
        ("sqrt(max(X[i] - X[i] * 0.1 - X[i] * 0.9, 0) + max(W[i], 0) * 0)", True),
        ("sqrt(min(max(X[i] - X[i] * 0.1 - X[i] * 0.9, 0), 4) * 3)", True),
        # Each difference is positive, but the four terms may be summed in any order.
        ("sqrt((X[i] - X[i] * 0.999999) + (0.999999 - 1 + 0.000001))", False),
        ("rsqrt(max(X[i] - X[i] * 0.1 - X[i] * 0.9, 0))", False),
        ("log(max(X[i] - X[i] * 0.1 - X[i] * 0.9, 0))", False),
    ],
)
def test_only_what_cannot_be_negative_has_a_root_everywhere(value: str, is_bounded: bool) -> None:
    body = f"in X : f32[64]  in W : f32[64]  out Y : f32[64]\n Y[i] = {value}"
    found = kernel(body)
    arrays = {name: np.abs(a) for name, a in rough(found).items()}
    assert np.isfinite(error_bound(found, arrays)["Y"]).all() == is_bounded


@pytest.mark.parametrize("value", ["1 / D[i]", "max(D[i], -inf) - inf", "inf - D[i] - inf"])
def test_an_infinity_takes_in_what_is_off_and_is_not_certain_otherwise(value: str) -> None:
    (found,) = parse_module(
        "kernel k permit no finite { in X : f32[8]  local D : f32[8]  out Y : f32[8]\n"
        f"D[i] = X[i] - X[i] * 0.1 - X[i] * 0.9\n Y[i] = {value} }}"
    ).kernels
    bound = error_bound(found, rough(found))["Y"]
    assert (bound == (np.inf if value.startswith("1") else 0)).all()


_NUMBERS = st.floats(-8, 8) | st.sampled_from([0.0, 1e-30, -1e-30])
_ERRORS = st.sampled_from([0.0, 1e-40, 1e-8, 0.25]) | st.floats(0, 4)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "abs": np.abs,
    "exp": np.exp,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


@given(
    op=st.sampled_from(sorted(_FUNCTIONS)),
    places=st.lists(st.tuples(_NUMBERS, _ERRORS, st.floats(-1, 1)), min_size=2, max_size=2),
    infinite=st.sampled_from([None, 0, 1]),
    least=st.booleans(),
)
def test_every_argument_within_its_error_gives_a_result_within_the_bound(
    op: str, places: list[tuple[float, float, float]], infinite: int | None, least: bool
) -> None:
    """Arguments are anywhere within their errors; with ``least`` they are not negative."""
    dtype, arithmetic = DTYPES["f32"], Bounded(Permissions())
    count = 1 if op in ("sqrt", "abs", "exp") else 2
    middles, moved = [], []
    zero = arithmetic.encode(np.zeros(()), dtype)
    with np.errstate(all="ignore"):
        for n, (v, e, share) in enumerate(places[:count]):
            own = arithmetic.encode(np.array(-np.inf if n == infinite else v), dtype)
            own["e"] = 0.0 if n == infinite else e
            own["n"] = False
            at = float(own["v"]) + (0.0 if n == infinite else share * e)
            if least:
                own = arithmetic.operation("max", (dtype, dtype), dtype)(own, zero)
                at = max(at, 0.0)
            middles.append(own)
            moved.append(np.float64(at))
        result = arithmetic.operation(op, (dtype,) * count, dtype)(*middles)
        other = _FUNCTIONS[op](*moved)
        assume(np.isfinite(result["e"]))
        if np.isfinite(result["v"]):
            assert abs(other - result["v"]) <= result["e"]
            assert not (result["n"] and other < 0)
        else:
            assert str(other) == str(result["v"])
