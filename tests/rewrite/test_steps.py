"""Values computed step by step: an operation each, or at last what an instruction does."""

from pathlib import Path

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.rules import UNMAPPED, rules_for
from isamap.rewrite.steps import LAST, NAME, in_steps
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


def test_they_are_for_what_nothing_else_computes() -> None:
    assert {NAME, LAST} <= UNMAPPED


FIX = "in a : s32[9]  in b : f32[]  out Y : s8[9]  Y[i] = sat[s8](f32(a[i]) * b[])"
MAX = "in a : f32[9]  out Y : f32[9]  Y[i] = max(a[i], 0)"
SUM = "in a : f32[9]  in b : f32[9]  inout Y : f32[9]  Y[i] += a[i] * b[i]"


def last(text: str, *bodies: str) -> Rewritings:
    instructions = [kernel_of(f"kernel k {{ {body} }}").statements[0] for body in bodies]
    return rewritings(kernel_of(f"kernel k {{ {text} }}"), 0, rules_for(instructions, (LAST,)))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "in S : s32[7, 5]  in c : s32[5]  out Y : s8[7, 5] "
            "Y[i, j] = sat[s8](f32(S[i, j] + c[j]) * 0.5)",
            ["Y_step[i, j] = S[i, j] + c[j]", "Y[i, j] = sat[s8](f32(Y_step[i, j]) * 0.5)"],
        ),
        (
            "in S : s32[7, 5]  in c : s32[5]  in f : f32[7]  out Y : s8[7, 5] "
            "Y[i, j] = sat[s8]((f[i] * f[i]) * f32(S[i, j] + c[j]))",
            [
                "Y_step[i, j] = S[i, j] + c[j]",
                "Y_step2[i] = f[i] * f[i]",
                "Y[i, j] = sat[s8](Y_step2[i] * f32(Y_step[i, j]))",
            ],
        ),
        (
            "in X : f32[7, 5]  in c : f32[5]  out Y : f32[7, 5]  Y[i, j] = max(X[i, j] * c[j], 0)",
            ["Y_step[i, j] = X[i, j] * c[j]", "Y[i, j] = max(Y_step[i, j], 0.0)"],
        ),
        (
            "in X : f32[7, 5]  inout Y : f32[7]  Y[i] += (X[i, j] - 1) * (X[i, j] - 1)",
            ["Y_step[i, j] = X[i, j] - 1.0", "Y[i] += Y_step[i, j] * Y_step[i, j]"],
        ),
        ("in X : f32[7, 5]  out Y : f32[7, 5]  Y[i, j] = min(X[i, j] * 2, 0)", None),
        ("in X : f32[7, 5]  out Y : f32[7, 5]  Y[i, j] = max(X[i, j], 0)", None),
    ],
)
def test_the_last_step_is_what_an_instruction_does(text: str, want: list[str] | None) -> None:
    found = last(text, FIX, MAX, SUM)
    assert not found.refused
    texts = [[print_statement(s) for s in r.kernel.statements] for r in found.proved]
    assert texts == ([] if want is None else [want])
    kernel = kernel_of(f"kernel k {{ {text} }}")
    for rewriting in found.proved:
        assert_valid(rewriting, kernel)
        inputs = random_inputs(kernel, {}, 0)
        after = interpret(rewriting.kernel, inputs)["Y"]
        np.testing.assert_array_equal(after, interpret(kernel, inputs)["Y"])


def test_results_go_through_memory_to_an_instruction_that_takes_other_registers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "apart.yaml"
    path.write_text(APART)
    kernel = kernel_of(
        "kernel k { in S : s32[40]  in c : s32[40]  out Y : s8[40] "
        "Y[i] = sat[s8](f32(S[i] + c[i]) * 0.5) }"
    )
    machine = load_hardware(str(path))
    report = make_report(kernel, machine, Options(prove=False))
    assert [own.rule for own in report.result.rewritings] == [LAST]
    assert report.check is not None
    assert report.check.ok


APART = """\
format: 1
name: apart
clock: 1 GHz
units: {u: 1}
storages:
  ub: {kind: registers, count: 8, bits: 256}
  acc: {kind: registers, count: 8, bits: 256}
  imm: {kind: immediate}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction load { in m : s32[8] @ memory    out r : s32[8] @ ub    r[i] = m[i] }
    throughput: 1
    latency: 9
  - semantics: |
      instruction store { in r : s32[8] @ ub    out m : s32[8] @ memory    m[i] = r[i] }
    throughput: 1
    latency: 9
  - semantics: |
      instruction add {
        in a : s32[8] @ ub    in b : s32[8] @ ub    out r : s32[8] @ ub
        r[i] = a[i] + b[i]
      }
    throughput: 1
    latency: 4
  - semantics: |
      instruction fill { in m : s32[8] @ memory    out r : s32[8] @ acc    r[i] = m[i] }
    throughput: 1
    latency: 9
  - semantics: |
      instruction fix {
        in c : s32[8] @ acc    in f : f32[] @ imm    out m : s8[8] @ memory
        m[i] = sat[s8](f32(c[i]) * f[])
      }
    throughput: 1
    latency: 9
"""
