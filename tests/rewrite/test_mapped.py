"""Rewritten kernels are mapped, and what is mapped computes what was written."""

import pytest

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.rewrite.apply import rewritings
from isamap.rewrite.offset import flip_sign, zero_points
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.split_terms import split_terms
from isamap.rewrite.winograd import winograd
from isamap.sim.lowered import run_lowered
from tests.rewrite.products import kernel_of

PRODUCT = """kernel product(M = 8, N = 16, K = 9){permit} {{
  in A : {a}[M, K]
  in B : {b}[K, N]
  out C : {c}[M, N]
  C[m, n] += {product}
}}"""

SLIDING = """kernel sliding(P = 5, C = 4, K = 8) permit distribute {
  in X : f32[P, C] pad 0
  const W : f32[3, C, K]
  out Y : f32[P, K]
  Y[p, k] += X[p + r - 1, c] * W[r, c, k]
}"""


def _integers(a: str, b: str) -> str:
    product = "s32(A[m, k]) * s32(B[k, n])"
    return PRODUCT.format(permit="", a=a, b=b, c="s32", product=product)


def _terms() -> str:
    permit = " permit approximate(0.001)"
    return PRODUCT.format(permit=permit, a="f32", b="f32", c="f32", product="A[m, k] * B[k, n]")


def _differences() -> str:
    product = "(s32(A[m, k]) - 3) * (s32(B[k, n]) - 7)"
    return PRODUCT.format(permit="", a="u8", b="u8", c="s32", product=product)


def _assert_runs(kernel: Kernel, rewriting: Rewriting, machine: str) -> set[str]:
    """Map what a kernel was rewritten to and run that; return the instructions it uses."""
    result = map_kernel(rewriting.kernel, load_hardware(machine), Options(rewrite=()))
    arrays = random_inputs(kernel, seed=1)
    outputs = run_lowered(result.lowered, result.accelerator, arrays)
    expected = interpret(kernel, arrays)
    found = compare(
        kernel, arrays, expected, outputs, computed=rewriting.kernel, error=rewriting.error
    )
    assert found.ok, found.text
    return {s.mapping.matching.needle.entry.instruction.name for s in result.schedule.statements}


@pytest.mark.parametrize(
    ("text", "rule", "machine", "used"),
    [
        (_integers("s8", "s8"), flip_sign, "x86_avx512", "vpdpbusd"),
        (_integers("u8", "u8"), flip_sign, "x86_avx512", "vpdpbusd"),
        (_terms(), split_terms, "x86_avx512", "vdpbf16ps"),
        (_differences(), zero_points, "x86_avx512", "dot4_u8_u8"),
        (SLIDING, winograd, "x86_avx512", "vfmadd_f32"),
        (SLIDING, winograd, "gemm16", "gemm_f32"),
    ],
)
def test_rewritten_kernels_run_on_the_instruction_they_were_rewritten_for(
    text: str, rule: Rule, machine: str, used: str
) -> None:
    kernel = kernel_of(text)
    found = rewritings(kernel, 0, [("rule", rule)]).proved
    assert found
    assert any(used in _assert_runs(kernel, rewriting, machine) for rewriting in found[:2])


@pytest.mark.parametrize(
    "text",
    [
        "kernel k { in X : s8[9, 20]  out Y : s8[7, 20]  for r in 0..3  Y[p, c] max= X[p + r, c] }",
        "kernel k { in X : u8[9, 20]  out Y : u8[7, 20]  for r in 0..3  Y[p, c] max= X[p + r, c] }",
    ],
)
def test_what_nothing_computes_in_bytes_is_computed_in_words(text: str) -> None:
    kernel = kernel_of(text)
    result = map_kernel(kernel, load_hardware("tpp"), Options(prove=False))
    rules = [r.rule for r in result.rewritings]
    assert rules == ["widen-arithmetic", "in-steps", "turn-window"]
    inputs = random_inputs(kernel, {}, 0)
    expected = interpret(kernel, inputs)
    found = run_lowered(result.lowered, result.accelerator, inputs)
    assert (found["Y"].reshape(expected["Y"].shape) == expected["Y"]).all()
