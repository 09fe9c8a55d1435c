"""Sigmoids by exponentials: the error that is told holds, and vectors compute them."""

from dataclasses import replace

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import rewritings
from isamap.rewrite.by_exp import EXP, NAME, sigmoid_by_exp
from tests.rewrite.products import assert_valid, kernel_of

RULES = [(NAME, sigmoid_by_exp)]


def swish(more: str, dtype: str = "f32", value: str = "X[i] * sigmoid(X[i])") -> str:
    return f"kernel k(N = 999){more} {{ in X : {dtype}[N]  out Y : {dtype}[N]  Y[i] = {value} }}"


def test_it_divides_by_one_and_an_exponential() -> None:
    kernel = kernel_of(swish(" permit approximate(1e-6)"))
    found = rewritings(kernel, 0, RULES)
    assert found.refused == ()
    (only,) = found.proved
    assert [print_statement(s) for s in only.kernel.statements] == [
        "Y[i] = X[i] * (1.0 / (1.0 + exp(-X[i])))"
    ]
    assert "relative error at most 3.6e-07" in only.note
    assert_valid(only, kernel)


@pytest.mark.parametrize(
    "more", ["", " permit approximate(3e-7)", " permit approximate(1e-6), no finite"]
)
def test_it_needs_permission_and_finite_values(more: str) -> None:
    found = rewritings(kernel_of(swish(more)), 0, RULES)
    assert (found.proved, found.refused) == ((), ())


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_error_is_what_is_told(dtype: str) -> None:
    kernel = kernel_of(swish(" permit approximate(1e-6)", dtype, "sigmoid(X[i])"))
    (only,) = rewritings(kernel, 0, RULES).proved
    inputs = {"X": np.linspace(-80, 80, 999).astype(dtype.replace("f", "float"))}
    exact = interpret(kernel, inputs)["Y"].astype(np.float64)
    found = interpret(only.kernel, inputs)["Y"].astype(np.float64)
    unit = 2.0**-24 if dtype == "f32" else 2.0**-53
    # What is exact here was rounded, too.
    assert (np.abs(found - exact) <= (EXP + 4) * unit * exact).all()


@pytest.mark.parametrize(("lacking", "times"), [("", 1.25), ("vsigmoid_f32", 10)])
def test_vectors_compute_it(lacking: str, times: float) -> None:
    machine = load_hardware("x86_avx512")
    entries = tuple(e for e in machine.entries if e.name != lacking)
    machine = replace(machine, entries=entries)
    text = swish(" permit approximate(1e-6)")
    fast = map_kernel(kernel_of(text), machine, Options(prove=False))
    assert [r.rule for r in fast.rewritings] == [NAME]
    slow = map_kernel(kernel_of(swish("")), machine, Options(prove=False))
    assert fast.estimate.cycles * times < slow.estimate.cycles
