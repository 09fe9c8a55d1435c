"""Arithmetic in a wider type, where a machine has none in its own."""

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Statement
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.shape import Shapes
from isamap.rewrite.widen import NAME, widening
from isamap.text.load import parse_module
from tests.rewrite.products import assert_valid, kernel_of


def machine(*types: str) -> tuple[Statement, ...]:
    """Return what a machine computes that has maxima in these types."""
    text = "".join(
        f"kernel max_{t} {{ in a : {t}[4]  out c : {t}[4]  c[i] max= a[i] }}\n" for t in types
    )
    return tuple(s for k in parse_module(text).kernels for s in k.statements)


def widened(text: str, *types: str) -> Rewritings:
    return rewritings(kernel_of(text), 0, ((NAME, widening(Shapes(machine(*types)))),))


def statements(found: Rewritings) -> list[list[str]]:
    return [[print_statement(s) for s in r.kernel.statements] for r in found.proved]


POOL = "kernel k { in X : s8[9, 5]  out Y : s8[7, 5]  for r in 0..3  Y[p, c] max= X[p + r, c] }"


def test_maxima_are_taken_in_a_type_that_the_machine_has() -> None:
    found = widened(POOL, "s8", "u8", "s32", "f32")
    assert statements(found) == [
        ["Y_wide[p, c] max= s32(X[p + r, c])", "Y[p, c] = sat[s8](Y_wide[p, c])"]
    ]
    # A sum that is congruent may have another maximum.
    assert [refused.rewriting.rule for refused in found.refused] == [NAME]


def test_sums_wrap_in_the_end() -> None:
    text = "kernel k { in X : u8[3, 9]  out Y : u8[3]  Y[i] += X[i, j] * X[i, j] + 200 }"
    found = widened(text, "s32")
    assert statements(found) == [
        ["Y_wide[i] += s32(X[i, j]) * s32(X[i, j]) + 200", "Y[i] = u8(Y_wide[i])"]
    ]
    assert len(found.refused) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "Y[i] = max(X[i], 3)",
        "Y[i] = X[i] + Z[i]",
        "Y[i] = abs(X[i])",
        "Y[i] = select(X[i] < Z[i], -X[i], Z[i] & 7)",
        "Y[i] min= X[i]",
        "Y[i] xor= X[i] | Z[i]",
    ],
)
def test_they_compute_the_same_bits(statement: str) -> None:
    kernel = kernel_of(f"kernel k {{ in X : s8[99]  in Z : s8[99]  out Y : s8[99]  {statement} }}")
    found = rewritings(kernel, 0, ((NAME, widening(Shapes(machine("s16", "s32")))),))
    assert found.proved
    inputs = random_inputs(kernel, {}, 0)
    for rewriting in found.proved:
        assert_valid(rewriting, kernel)
        after = interpret(rewriting.kernel, inputs)["Y"]
        np.testing.assert_array_equal(after, interpret(kernel, inputs)["Y"])


@pytest.mark.parametrize(
    "text",
    [
        POOL.replace("s8", "f32"),
        POOL.replace("out Y", "inout Y"),
        POOL.replace("max= X", "*= X"),
        POOL.replace("s8", "s32"),
        "kernel k { in X : s8[7]  out Y : s8[7]  Y[i] = X[i] }",
    ],
)
def test_what_has_no_wider_type_or_begins_with_something_stays(text: str) -> None:
    found = widened(text, "s32")
    assert not found.proved
    assert not found.refused


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("Y[i] = max(X[i], 0.5)", "max(f32(X[i]), 0.5)"),
        ("Y[i] = select(M[i], -X[i], abs(Z[i]))", "select(M[i], -f32(X[i]), abs(f32(Z[i])))"),
        ("Y[i] = min(X[i] / Z[i], Z[i])", "min(f32(X[i] / Z[i]), f32(Z[i]))"),
        (
            "Y[i] = select((X[i] > 0.5) & M[i], X[i], Z[i])",
            "select((f32(X[i]) > 0.5) & M[i], f32(X[i]), f32(Z[i]))",
        ),
        (
            "Y[i] = select(X[i] * Z[i] <= -Z[i], 0.5, max(X[i], Z[i]))",
            "select(f32(X[i] * Z[i]) <= -f32(Z[i]), 0.5, max(f32(X[i]), f32(Z[i])))",
        ),
    ],
)
def test_floats_are_compared_in_a_wider_type(dtype: str, value: str, want: str) -> None:
    text = f"kernel k {{ in X : {dtype}[99]  in Z : {dtype}[99]  in M : bool[99]  "
    kernel = kernel_of(f"{text}out Y : {dtype}[99]  {value} }}")
    found = rewritings(kernel, 0, ((NAME, widening(Shapes(machine("f32", dtype)))),))
    assert not found.refused
    (only,) = found.proved
    texts = [print_statement(s) for s in only.kernel.statements]
    assert texts == [f"Y_wide[i] = {want}", f"Y[i] = {dtype}(Y_wide[i])"]
    assert_valid(only, kernel)
    inputs = random_inputs(kernel, seed=3)
    got, wanted = interpret(only.kernel, inputs)["Y"], interpret(kernel, inputs)["Y"]
    np.testing.assert_array_equal(got, wanted)


def test_maxima_of_floats_are_taken_in_a_wider_type() -> None:
    text = POOL.replace("s8", "bf16")
    assert statements(widened(text, "f32")) == [
        ["Y_wide[p, c] max= f32(X[p + r, c])", "Y[p, c] = bf16(Y_wide[p, c])"]
    ]


def test_what_wraps_decides_as_it_is() -> None:
    text = "kernel k { in X : s8[9]  in Z : s8[9]  out Y : s8[9]  "
    found = widened(text + "Y[i] = select(X[i] + Z[i] > 3, X[i] * Z[i], Z[i]) }", "s32")
    value = "select(s32(X[i] + Z[i]) > 3, s32(X[i]) * s32(Z[i]), s32(Z[i]))"
    assert [one[0] for one in statements(found)] == [f"Y_wide[i] = {value}"]


@pytest.mark.parametrize(
    ("more", "statement", "types"),
    [
        (" permit no reassociate", "Y[i] = X[i] + Z[i]", ("f32",)),
        (" permit no reassociate", "Y[i] += X[i] * Z[j]", ("f32",)),
        (" permit no finite", "Y[i] = X[i] + Z[i]", ("f32",)),
        ("", "Y[i] = max(X[i], Z[i])", ("s32", "f16")),  # f16 has not all values of bf16
        ("", "Y[i] *= X[j]", ("f32",)),
    ],
)
def test_what_may_not_be_rounded_once_is_not(
    more: str, statement: str, types: tuple[str, ...]
) -> None:
    text = f"kernel k{more} {{ in X : bf16[9]  in Z : bf16[9]  out Y : bf16[9]  {statement} }}"
    found = widened(text, *types)
    assert not (*found.proved, *found.refused)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize(
    "statement",
    [
        "Y[i] = X[i] + Z[i]",
        "Y[i] = (X[i] - 0.1) * Z[i] * (abs(X[i]) + 1.0)",
        "Y[i] = max(X[i] * Z[i] + 0.5, 0)",
        "Y[i] += X[i] * Z[j]",
    ],
)
def test_sums_and_products_are_rounded_in_the_end(dtype: str, statement: str) -> None:
    text = (
        f"kernel k {{ in X : {dtype}[99]  in Z : {dtype}[99]  out Y : {dtype}[99]  {statement} }}"
    )
    kernel = kernel_of(text)
    found = rewritings(kernel, 0, ((NAME, widening(Shapes(machine("f32", dtype)))),))
    assert not found.refused
    (only,) = found.proved
    assert_valid(only, kernel)
    assert only.kernel.buffer("Y_wide").dtype.name == "f32"
    for seed in range(20):
        inputs = random_inputs(kernel, seed=seed)
        got, want = interpret(only.kernel, inputs), interpret(kernel, inputs)
        assert compare(kernel, inputs, want, got, computed=only.kernel).ok


@pytest.mark.parametrize("hardware", ["x86_avx2", "aarch64_neon"])
def test_short_floats_are_added_in_vectors(hardware: str) -> None:
    text = "kernel k { in X : bf16[999]  in Z : bf16[999]  out Y : bf16[999]  Y[i] = X[i] + Z[i] }"
    result = map_kernel(kernel_of(text), load_hardware(hardware), Options(prove=False))
    assert NAME in [r.rule for r in result.rewritings]
    assert not any(name.startswith("c_add") for name in result.estimate.instructions)


@pytest.mark.parametrize("hardware", ["x86_avx2", "aarch64_neon", "vector_c"])
def test_maxima_of_bf16_are_taken_in_vectors(hardware: str) -> None:
    kernel = kernel_of("kernel k { in X : bf16[4096]  out Y : bf16[4096]  Y[i] = max(X[i], 0) }")
    result = map_kernel(kernel, load_hardware(hardware), Options(prove=False))
    assert [r.rule for r in result.rewritings] == [NAME]
    assert not any(name.startswith("c_max") for name in result.estimate.instructions)
