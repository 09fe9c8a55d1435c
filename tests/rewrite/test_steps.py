"""Values computed step by step, each operation a statement of its own."""

import numpy as np
import pytest

from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import UNMAPPED
from isamap.rewrite.steps import NAME, in_steps
from tests.rewrite.products import assert_valid, kernel_of

RULES = ((NAME, in_steps),)


def steps(text: str) -> list[list[str]]:
    found = rewritings(kernel_of(text), 0, RULES)
    assert not found.refused
    return [[print_statement(s) for s in r.kernel.statements] for r in found.proved]


def test_each_operation_is_a_statement() -> None:
    text = (
        "kernel k { in X : f32[3, 5]  in a : f32[3]  in b : f32[5]  out Y : f32[3, 5] "
        "Y[i, j] = max(X[i, j] * a[i] + b[j], 0) }"
    )
    assert steps(text) == [
        [
            "Y_step[i, j] = X[i, j] * a[i]",
            "Y_step2[i, j] = Y_step[i, j] + b[j]",
            "Y[i, j] = max(Y_step2[i, j], 0.0)",
        ]
    ]


def test_a_step_has_the_variables_that_it_needs_and_is_done_once() -> None:
    text = (
        "kernel k { in a : f32[3]  in b : f32[5]  out Y : f32[3, 5] "
        "Y[i, j] = (a[i] * a[i] - b[j]) / (a[i] * a[i] + b[j]) }"
    )
    (only,) = steps(text)
    assert only[0] == "Y_step[i] = a[i] * a[i]"
    assert len(only) == 4


def test_a_reduction_has_its_last_operation_or_not() -> None:
    text = "kernel k { in x : s32[9]  in y : s32[9]  out z : s32[]  z[] += x[i] * y[i] }"
    assert steps(text) == [["z_step[i] = x[i] * y[i]", "z[] += z_step[i]"]]
    text = text.replace("x[i] * y[i]", "(x[i] - 3) * y[i]")
    assert [one[-1] for one in steps(text)] == ["z[] += z_step[i] * y[i]", "z[] += z_step2[i]"]


@pytest.mark.parametrize("value", ["X[i]", "-X[i]", "exp(X[i])"])
def test_one_operation_is_no_steps(value: str) -> None:
    assert steps(f"kernel k {{ in X : f32[7]  out Y : f32[7]  Y[i] = {value} }}") == []


@pytest.mark.parametrize(
    "text",
    [
        "kernel k { in X : f32[7] inout Y : f32[7] Y[i] = tanh(Y[i] + X[i]) * 0.5 }",
        "kernel k { in X : bf16[7] in Z : s8[7] out Y : f32[7] Y[i] = f32(X[i]) + f32(Z[i]) }",
        "kernel k { in X : f32[9] pad 3 out Y : f32[9] Y[i] = X[i + 1] * X[i - 1] + f32(i) }",
        "kernel k { in X : f32[3, 9] out Y : f32[3] Y[i] max= abs(X[i, j]) - X[i, j] }",
    ],
)
def test_they_compute_the_same_bits(text: str) -> None:
    kernel = kernel_of(text)
    found = rewritings(kernel, 0, RULES)
    assert found.proved
    inputs = random_inputs(kernel, {}, 0)
    for rewriting in found.proved:
        assert_valid(rewriting, kernel)
        name = kernel.statements[0].target.buffer
        after = interpret(rewriting.kernel, inputs)[name]
        np.testing.assert_array_equal(after, interpret(kernel, inputs)[name])


def test_it_is_for_what_nothing_else_computes() -> None:
    assert NAME in UNMAPPED
