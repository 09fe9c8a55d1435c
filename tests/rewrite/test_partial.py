"""Reductions split into lanes, and quotients by reciprocals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.offered import statements
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.rules import rules_for
from tests.profiles import examples
from tests.rewrite.products import assert_valid, kernel_of

MACHINE = load_hardware("x86_avx512")


def by(rule: str, kernel: Kernel, statement: int = 0) -> Rewritings:
    return rewritings(kernel, statement, rules_for(statements(MACHINE), (rule,)))


def split(text: str) -> list[list[str]]:
    found = by("split-reduction", kernel_of(text))
    assert not found.refused
    return [[print_statement(s) for s in r.kernel.statements] for r in found.proved]


def test_a_reduction_becomes_lanes_of_steps_what_is_left_over_and_the_end() -> None:
    text = "kernel k { in X : f32[3, 37]  out S : f32[3]  S[r] += X[r, c] }"
    (only,) = split(text)
    assert only == [
        "S_parts[r, c_lane] += X[r, c_lane + 16*c_step]",
        "S[r] += S_parts[r, c_lane]",
        "S[r] += X[r, c_lane2 + 32]",
    ]


def test_of_what_is_left_over_whole_registers_go_into_lanes() -> None:
    text = "kernel k { in X : f32[3, 165]  out S : f32[3]  S[r] += X[r, c] }"
    assert split(text)[1] == [
        "S_parts[r, c_lane] += X[r, c_lane + 64*c_step]",
        "S_parts[r, c_lane2] += X[r, c_lane2 + 128]",  # 32 of them
        "S[r] += S_parts[r, c_lane]",
        "S[r] += X[r, c_lane3 + 160]",
    ]


def test_what_no_instruction_reduces_goes_into_a_part_of_the_lanes() -> None:
    text = "kernel k { in X : s16[3, 100]  out S : s16[3]  S[r] += X[r, c] }"
    assert split(text)[0] == [
        "S_parts[r, c_lane] += X[r, c_lane + 32*c_step]",
        "S_parts[r, c_lane2] += X[r, c_lane2 + 96]",
        "S[r] += S_parts[r, c_lane]",
    ]


def test_terms_that_may_count_twice_overlap_those_before() -> None:
    text = "kernel k { in X : f32[3, 37]  out S : f32[3]  S[r] max= X[r, c] }"
    (only,) = split(text)
    assert only == [
        "S_parts[r, c_lane] max= X[r, c_lane + 16*c_step]",
        "S_parts[r, c_lane] max= X[r, c_lane + 21]",
        "S[r] max= S_parts[r, c_lane]",
    ]


def test_where_an_instruction_adds_groups_so_does_each_lane() -> None:
    text = (
        "kernel k { in a : s8[300]  in b : s8[300]  out y : s32[]  y[] += s32(a[k]) * s32(b[k]) }"
    )
    found = split(text)
    four = [  # 64 terms a step; 44 are left over, in 11 lanes
        "y_parts[k_lane] += s32(a[k_group + 4*k_lane + 64*k_step]) * "
        "s32(b[k_group + 4*k_lane + 64*k_step])",
        "y_parts[k_lane2] += s32(a[k_group + 4*k_lane2 + 256]) * s32(b[k_group + 4*k_lane2 + 256])",
        "y[] += y_parts[k_lane]",
    ]
    assert four in found
    # Pairs of 16 bits are wide enough for bytes, which are loaded so; groups of bytes hold no s16.
    assert any("k_group + 2*k_lane" in one[0] for one in found)
    assert not any("4*k_lane" in one[0] for one in split(text.replace("s8", "s16")))
    assert not any("k_group" in one[0] for one in split(text.replace("+=", "max=")))


@given(st.integers(1, 5), st.integers(60, 700), st.sampled_from(("s8", "s16", "u8")))
@examples(4)
def test_groups_compute_the_same(rows: int, terms: int, dtype: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in a : {dtype}[{rows}, {terms}]  in b : s8[{terms}]  out y : s32[{rows}] "
        "y[m] += s32(a[m, k]) * s32(b[k]) }"
    )
    found = by("split-reduction", kernel)
    assert not found.refused
    inputs = random_inputs(kernel, seed=terms)
    want = interpret(kernel, inputs)["y"]
    for rewriting in found.proved:
        assert_valid(rewriting, kernel)
        assert (interpret(rewriting.kernel, inputs)["y"] == want).all()


@pytest.mark.parametrize("name", ["aarch64_neon", "hexagon_hvx", "mips_msa", "x86_avx2"])
def test_dot_products_of_bytes_use_whole_registers(name: str) -> None:
    kernel = kernel_of(
        "kernel k { in a : s8[4096]  in b : s8[4096]  out y : s32[]  y[] += s32(a[k]) * s32(b[k]) }"
    )
    machine = load_hardware(name)
    result = map_kernel(kernel, machine, Options(prove=False))
    notes = [one.note for one in result.rewritings if one.rule == "split-reduction"]
    assert any(" groups of " in note for note in notes)


def test_as_many_results_as_an_instruction_has_and_four_times_as_many() -> None:
    text = "kernel k { in X : f32[3, 256]  out S : f32[3]  S[r] max= X[r, c] }"
    assert [one[0] for one in split(text)] == [
        "S_parts[r, c_lane] max= X[r, c_lane + 16*c_step]",
        "S_parts[r, c_lane] max= X[r, c_lane + 64*c_step]",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "kernel k permit no reassociate { in X : f32[3, 64]  out S : f32[3]  S[r] += X[r, c] }",
        "kernel k { in X : f32[3, 31]  out S : f32[3]  S[r] += X[r, c] }",  # one step
        "kernel k { in X : f32[64, 3]  out S : f32[3]  S[r] += X[c, r] }",  # rows apart
        "kernel k(C) { in X : f32[3, C]  out S : f32[3]  S[r] += X[r, c] }",  # not known
    ],
)
def test_nothing_is_split_that_may_not_be_or_gains_nothing(text: str) -> None:
    assert not split(text)


REDUCTIONS = {
    "f32": ("+=", "*=", "max=", "min="),
    "f64": ("+=", "max="),
    "s32": ("+=", "max=", "min="),
    "u8": ("+=", "max=", "min="),
}


@given(
    st.sampled_from([(t, r) for t, own in REDUCTIONS.items() for r in own]),
    st.integers(1, 4),
    st.integers(1, 300),
    st.booleans(),
    st.integers(0, 99),
)
@examples(3)
def test_lanes_compute_the_same(
    kind: tuple[str, str], rows: int, columns: int, product: bool, seed: int
) -> None:
    dtype, reduction = kind
    value = "X[r, c] * W[c]" if product and reduction == "+=" else "X[r, c]"
    more = f"  in W : {dtype}[{columns}]" if "W" in value else ""
    kernel = kernel_of(
        f"kernel k {{ in X : {dtype}[{rows}, {columns}]{more}"
        f"  out S : {dtype}[{rows}]  S[r] {reduction} {value} }}"
    )
    inputs = random_inputs(kernel, seed=seed)
    want = interpret(kernel, inputs)
    for rewriting in by("split-reduction", kernel).proved:
        assert_valid(rewriting, kernel)
        got = interpret(rewriting.kernel, inputs)
        assert compare(kernel, inputs, want, got, computed=rewriting.kernel).ok


def test_several_elements_over_one_are_products_with_its_reciprocal() -> None:
    text = (
        "kernel k{} {{ in X : f32[3, 5]  in S : f32[3]  out Y : f32[3, 5]"
        "  Y[r, c] = X[r, c] / S[r] }}"
    )
    permitted = kernel_of(text.format(" permit approximate(1.2e-7)"))
    (only,) = by("reciprocal", permitted).proved
    assert print_statement(only.kernel.statements[0]) == "Y[r, c] = X[r, c] * (1.0 / S[r])"
    for other in ("", " permit approximate(1.1e-7)", " permit approximate(0.1), no finite"):
        found = by("reciprocal", kernel_of(text.format(other)))
        assert not (*found.proved, *found.refused)


@given(st.integers(0, 99))
@examples(3)
def test_a_product_with_a_reciprocal_is_within_what_the_kernel_permits(seed: int) -> None:
    kernel = kernel_of(
        "kernel k permit approximate(1.2e-7) { in X : f32[30, 50]  in S : f32[30]"
        "  out Y : f32[30, 50]  Y[r, c] = X[r, c] / S[r] }"
    )
    (only,) = by("reciprocal", kernel).proved
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 50)).astype(np.float32)
    s = rng.uniform(0.1, 1000, size=30).astype(np.float32)
    exact = x.astype(np.float64) / s.astype(np.float64)[:, None]
    got = np.asarray(interpret(only.kernel, {"X": x, "S": s})["Y"], np.float64)
    assert np.all(np.abs(got - exact) <= 1.2e-7 * np.abs(exact))


def test_one_element_over_one_is_a_quotient() -> None:
    text = "kernel k permit approximate(1.2e-7) { in X : f32[9]  out Y : f32[9]  Y[i] = 2 / X[i] }"
    assert not by("reciprocal", kernel_of(text)).proved
