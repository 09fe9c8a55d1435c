"""Error bounds: every legitimate evaluation is within, a wrong element is not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp import compare as module
from isamap.interp.arithmetic import float64
from isamap.interp.compare import compare, compare_at, error_bound
from isamap.interp.exactness import fixed_outputs
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.numeric import Numeric
from tests.interp.test_run import KERNELS, kernel
from tests.properties.kernels import Case, cases

PRODUCT = "in A : {0}[5, 40]  in B : {0}[40, 6]  out C : {0}[5, 6]\n C[i, j] += A[i, k] * B[k, j]"


def rough(found: Kernel, seed: int = 0) -> dict[str, Any]:
    """Inputs on no grid, so that results are rounded."""
    generator = np.random.default_rng(seed)
    return {
        b.name: generator.uniform(-1, 1, tuple(int(n.evaluate({})) for n in b.shape)).astype(
            b.dtype.numpy
        )
        for b in found.buffers
        if b.role in ("in", "const", "inout")
    }


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
@given(seed=st.integers(0, 1000))
def test_other_orders_and_unrounded_products_are_within_the_bound(name: str, seed: int) -> None:
    found = kernel(PRODUCT.format(name))
    arrays = rough(found, seed)
    number = found.buffer("C").dtype.numpy
    expected = interpret(found, arrays)
    order = np.random.default_rng(seed).permutation(40)
    total = np.zeros((5, 6), number)
    for k in order:
        a, b = arrays["A"][:, k, None].astype(float), arrays["B"][None, k].astype(float)
        total = (total.astype(float) + a * b).astype(number)  # a fused multiply-add
    result = compare(found, arrays, expected, {"C": total})
    assert result.ok, result.text
    assert result.compared == 30
    bound = error_bound(found, arrays)["C"]
    wide = arrays["A"].astype(float) @ arrays["B"].astype(float)
    assert (np.abs(expected["C"].astype(float) - wide) <= bound).all()


@given(seed=st.integers(0, 1000), place=st.tuples(st.integers(0, 4), st.integers(0, 5)))
def test_one_wrong_element_is_found_and_named(seed: int, place: tuple[int, int]) -> None:
    found = kernel(PRODUCT.format("f32"))
    arrays = rough(found, seed)
    expected = interpret(found, arrays)
    wrong = expected["C"].copy()
    wrong[place] += 0.001
    result = compare(found, arrays, expected, {"C": wrong})
    assert not result.ok
    assert result.where == place
    assert result.text.startswith(f"C[{place[0]}, {place[1]}] is ")
    assert 0 < result.bound < 0.001
    assert result.expected == expected["C"][place]
    assert result.actual == wrong[place]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_wrong_where_it_should_be(value: float) -> None:
    found = kernel(PRODUCT.format("f32"))
    arrays = rough(found)
    expected = interpret(found, arrays)
    wrong = expected["C"].copy()
    wrong[1, 2] = value
    assert compare(found, arrays, expected, {"C": wrong}).where == (1, 2)
    assert not compare(found, arrays, expected, {"C": wrong}).ok
    assert not compare(found, arrays, {"C": wrong}, expected).ok
    assert compare(found, arrays, {"C": wrong}, {"C": wrong.copy()}).ok


@given(case=cases())
def test_a_missing_or_doubled_term_is_found_on_grid_inputs(case: Case) -> None:
    found, symbols = case.load(), dict(case.symbols)
    arrays = random_inputs(found, symbols)
    expected = interpret(found, arrays, symbols)
    fixed = fixed_outputs(found, arrays, symbols)
    for buffer in found.buffers:
        if buffer.role not in ("out", "inout") or buffer.name not in fixed:
            continue
        assert compare(found, arrays, expected, expected, symbols).text == "bit for bit"
        wrong = {n: a.copy() for n, a in expected.items()}
        flat = wrong[buffer.name].reshape(-1)
        flat[-1] = np.nextafter(flat[-1], np.inf) if buffer.dtype.is_float else flat[-1] ^ 1
        assert not compare(found, arrays, expected, wrong, symbols).ok


def test_grid_inputs_make_products_exact() -> None:
    found = kernel(PRODUCT.format("f32"))
    arrays = random_inputs(found)
    assert fixed_outputs(found, arrays, {}) >= {"C"}
    reordered = (arrays["A"][:, ::-1].astype("f4") @ arrays["B"][::-1]).astype("f4")
    assert np.array_equal(interpret(found, arrays)["C"], reordered)
    assert "C" not in fixed_outputs(found, rough(found), {})
    narrow = kernel(PRODUCT.format("bf16"))
    assert "C" not in fixed_outputs(narrow, random_inputs(narrow), {})


def test_an_exact_chain_stays_exact_and_a_rounded_one_does_not() -> None:
    chain = kernel(KERNELS["chain"])
    assert fixed_outputs(chain, random_inputs(chain), {}) >= {"T", "Y"}
    body = "in X : f32[4]  out Y : f32[]  out Z : f32[4]\n Z[i] = {}\n Y[] += Z[i]"
    for value, fixed in {
        "X[i] * X[i] + 0.5": {"Z", "Y"},
        "f32(bf16(X[i] / 3.0))": {"Z"},
        "exp(X[i])": set(),
        "max(X[i], 0) - 1": {"Z", "Y"},
        "X[i] * 0.1": set(),
    }.items():
        found = kernel(body.format(value))
        assert fixed_outputs(found, random_inputs(found), {}) & {"Y", "Z"} == fixed, value


@pytest.mark.parametrize("name", ["transposed convolution", "sum of groups", "scatter"])
def test_scattered_sums_have_bounds(name: str) -> None:
    found = kernel(KERNELS[name])
    arrays = {**random_inputs(found), **{k: v for k, v in rough(found).items() if k != "I"}}
    bounds = error_bound(found, arrays)["Y"]
    wide = interpret(found, arrays)["Y"].astype(float)
    assert np.isfinite(bounds).all()
    assert (bounds < 0.2 + np.abs(wide)).all()


VALUES = {
    "quotient": "X[i] / (X[i] + 3)",
    "exp": "exp(X[i]) - exp(W[i])",
    "log": "log(X[i] + 2)",
    "tanh": "tanh(X[i]) * sigmoid(W[i])",
    "root": "sqrt(X[i] + 1.5) + rsqrt(W[i] + 2)",
    "erf": "erf(X[i] * W[i])",
    "choice": "select(X[i] * W[i] < X[i], X[i], W[i])",
    "chain": "X[i] + W[i] - X[i] * W[i] + 1",
    "fma": "fma(X[i], W[i], X[i])",
    "narrow": "f32(bf16(X[i])) + f32(f16(W[i]))",
    "whole": "f32(s32(X[i] * 100.0)) + round(W[i])",
    "saturated": "f32(sat[s8](X[i] * 200.0) + 1)",
}


@pytest.mark.parametrize("name", VALUES)
def test_float64_results_are_within_half_the_bound(name: str) -> None:
    body = f"in X : f32[200]  in W : f32[200]  out Y : f32[200]\n Y[i] = {VALUES[name]}"
    found = kernel(body)
    arrays = rough(found)
    bound = error_bound(found, arrays)["Y"]
    exact = interpret(found, arrays, arithmetic=float64())["Y"]
    if name == "narrow":  # float64 does not round what the kernel says is rounded
        assert bound.max() < 2**-6
        return
    off = np.abs(interpret(found, arrays)["Y"].astype(float) - exact)
    assert (off <= bound / 2).all()
    if name not in ("choice", "whole", "saturated"):
        assert bound.max() < 1e-4


def test_cancellation_has_the_bound_of_its_terms() -> None:
    found = kernel("in X : f32[3]  out Y : f32[]\n Y[] += X[i]")
    arrays = {"X": np.array([1e8, 1.0, -1e8], np.float32)}
    expected = interpret(found, arrays)
    assert expected["Y"] == 0
    assert compare(found, arrays, expected, {"Y": np.array(1.0, np.float32)}).ok
    assert not compare(found, arrays, expected, {"Y": np.array(200.0, np.float32)}).ok


def test_an_element_without_finite_bound_is_told() -> None:
    found = kernel("in X : f32[2]  out Y : f32[2]\n Y[i] = 1 / (X[i] + 0.1 - 0.1)")
    arrays = {"X": np.array([0.0, 1.0], np.float32)}
    expected = interpret(found, arrays)
    other = expected["Y"].copy()
    other[0] = 7
    result = compare(found, arrays, expected, {"Y": other})
    assert result.ok
    assert result.unbounded == 1
    assert "1 of 2 have no finite bound" in result.text


def test_approximation_widens_only_what_it_names() -> None:
    body = "in X : f32[8]  out Y : f32[8]  out Z : f32[8]\n Y[i] = exp(X[i])\n Z[i] = X[i] * X[i]"
    plain, loose = kernel(body), kernel(body, "k permit approximate(0.01)")
    arrays = rough(plain)
    strict, wide = error_bound(plain, arrays), error_bound(loose, arrays)
    assert (wide["Y"] > 1000 * strict["Y"]).all()
    assert np.array_equal(wide["Z"], strict["Z"])


def test_distribution_widens_products_of_sums() -> None:
    body = "in X : f32[8]  out Y : f32[8]\n Y[i] = (X[i] - 0.999 * X[i]) * 3.3"
    plain, loose = kernel(body), kernel(body, "k permit distribute")
    arrays = rough(plain)
    strict, wide = error_bound(plain, arrays)["Y"], error_bound(loose, arrays)["Y"]
    assert (wide > strict).all()


def test_integers_must_be_equal() -> None:
    found = kernel(KERNELS["wide dot"])
    arrays = random_inputs(found)
    expected = interpret(found, arrays)
    assert compare(found, arrays, expected, expected).text == "bit for bit"
    result = compare(found, arrays, expected, {"Y": expected["Y"] + np.array([0, 0, 1], np.int32)})
    assert (result.ok, result.where) == (False, (2,))


def test_exact_comparison_refuses_another_order() -> None:
    found = kernel("in X : f32[999]  out Y : f32[]\n Y[] += X[i]", "k permit no reassociate")
    arrays = rough(found)
    expected = interpret(found, arrays)
    other = {"Y": arrays["X"][::-1].cumsum(dtype=np.float32)[-1:].reshape(())}
    assert other["Y"] != expected["Y"]
    assert compare(found, arrays, expected, other).ok
    assert not compare(found, arrays, expected, other, exact=True).ok


def test_flat_results_are_taken() -> None:
    found = kernel(PRODUCT.format("f32"))
    arrays = rough(found)
    expected = interpret(found, arrays)
    assert compare(found, arrays, expected, {"C": expected["C"].reshape(-1)}).ok


@pytest.mark.parametrize("whole", [0, 1 << 24])
def test_chosen_elements_are_compared_alike(whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WHOLE_COST", whole)
    found = kernel(PRODUCT.format("f32"))
    arrays = rough(found)
    rows = np.array([[0, 0], [4, 5], [2, 3]])
    expected = interpret(found, arrays)["C"][tuple(rows.T)]
    near = np.nextafter(expected, np.float32(9))
    assert compare_at(found, arrays, "C", rows, expected, near).ok
    result = compare_at(
        found, arrays, "C", rows, expected, expected + np.array([0, 0, 0.01], np.float32)
    )
    assert (result.ok, result.where, result.compared) == (False, (2, 3), 3)


@given(seed=st.integers(0, 200))
def test_steps_rounded_to_odd_are_within_the_bound_that_says_so(seed: int) -> None:
    found = kernel(PRODUCT.format("f32"))
    arrays = rough(found, seed)
    expected = interpret(found, arrays)
    bound = error_bound(found, arrays)["C"]
    # As far as 40 steps of two roundoffs each may be, beside what the interpreter is off.
    for share, ok in ((1.45, True), (1.55, False)):
        off = {"C": (expected["C"] + share * bound).astype(np.float32)}
        assert (
            compare(found, arrays, expected, off, roundoffs=Numeric(rounding="odd").roundoffs).ok
            == ok
        )
    off = {"C": (expected["C"] + 1.1 * bound).astype(np.float32)}
    assert not compare(found, arrays, expected, off).ok
