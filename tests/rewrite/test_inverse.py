"""Quotients by constants: products with their inverses."""

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.literal import canonical
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.rules import rules_for
from tests.rewrite.products import assert_valid, kernel_of

RULE = rules_for((), ("by-inverse",))
NUMBERS = "0 -0.0 1 -1 3 1e-45 1.4e-45 1e-38 3.4e38 -3.4e38 65504 0.1 7e-8 inf -inf nan"


def applied(value: str, dtype: str = "f32", permit: str = "") -> Rewritings:
    text = f"kernel k{permit} {{ in A : {dtype}[16]\nout C : {dtype}[16]\nC[i] = {value} }}"
    return rewritings(kernel_of(text), 0, RULE)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("divisor", ["4", "-0.125", "1", "1024", "0.000244140625"])
def test_powers_of_two_have_inverses(dtype: str, divisor: str) -> None:
    (only,) = applied(f"A[i] / {divisor}", dtype).proved
    text = f"kernel k {{ in A : {dtype}[16]\nout C : {dtype}[16]\nC[i] = A[i] / {divisor} }}"
    kernel = kernel_of(text)
    assert "/" not in print_statement(only.kernel.statements[0])
    assert_valid(only, kernel)
    with np.errstate(all="ignore"):
        given = np.array(NUMBERS.split(), np.float64).astype(DTYPES[dtype].numpy)
    assert len(given) == 16
    got, want = (np.asarray(interpret(k, {"A": given})["C"]) for k in (only.kernel, kernel))
    assert np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize(
    "value", ["A[i] / 9", "A[i] / 1.5", "A[i] / 1e38", "A[i] / inf", "4 / A[i]"]
)
def test_others_are_divided_by(value: str) -> None:
    found = applied(value)
    assert not (*found.proved, *found.refused)


def test_others_are_multiplied_with_the_permission_to_be_off() -> None:
    (only,) = applied("A[i] / 9 + A[i] / 2", permit=" permit approximate(1.2e-7)").proved
    inverse = canonical("0.1111111111", DTYPES["f32"])
    assert print_statement(only.kernel.statements[0]) == f"C[i] = A[i] * {inverse} + A[i] * 0.5"
    for permit in ("", " permit approximate(1.1e-7)", " permit approximate(0.1), no finite"):
        (exact,) = applied("A[i] / 9 + A[i] / 2", permit=permit).proved
        assert print_statement(exact.kernel.statements[0]) == "C[i] = A[i] / 9.0 + A[i] * 0.5"


@pytest.mark.parametrize("divisor", [3, 7, 9, 49, 0.3])
def test_a_product_with_an_inverse_is_within_what_the_kernel_permits(divisor: float) -> None:
    (only,) = applied(f"A[i] / {divisor}", permit=" permit approximate(1.2e-7)").proved
    given = np.random.default_rng(1).normal(size=16).astype(np.float32)
    exact = given.astype(np.float64) / divisor
    got = np.asarray(interpret(only.kernel, {"A": given})["C"], np.float64)
    # The divisor is a number of f32, too.
    assert np.all(np.abs(got - exact) <= (1.2e-7 + 2.0**-24) * np.abs(exact))


def test_a_machine_that_only_multiplies_divides_by_four() -> None:
    kernel = kernel_of(
        "kernel k { in A : f32[6, 8, 16]\nout C : f32[3, 4, 16]\n"
        "for p in 0..2\nfor q in 0..2\nC[h, w, c] += A[2 * h + p, 2 * w + q, c] / 4 }"
    )
    report = make_report(kernel, load_hardware("arm_mve"), Options(simulate=True))
    assert "by-inverse" in [r.rule for r in report.result.rewritings]
    assert report.check is not None
    assert report.check.ok
