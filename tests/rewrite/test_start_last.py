"""Reductions that another statement starts: they begin by themselves, and the start comes last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.started import started
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import rules_for
from tests.profiles import examples
from tests.rewrite.products import assert_valid
from tests.rewrite.products import kernel_of as parsed

RULE = rules_for((), ("start-last",))
BUFFERS = "in A : s32[5, 7]  in B : s32[7, 6]  in D : s32[6]"
SUM = "S[i, j] += A[i, k] * B[k, j]"


def kernel_of(text: str) -> Kernel:
    """Return a kernel whose parts stand two blanks apart."""
    return parsed(text.replace("  ", "\n"))


def after(text: str, statement: int = 1) -> list[list[str]]:
    found = rewritings(kernel_of(text), statement, RULE)
    assert not found.refused
    return [[print_statement(s) for s in r.kernel.statements] for r in found.proved]


def test_a_start_that_a_reduction_has_anyway_goes() -> None:
    assert after(f"kernel k {{ {BUFFERS}  out S : s32[5, 6]  S[x, y] = 0  {SUM} }}") == [[SUM]]
    least = "kernel k { in A : f32[5, 7]  out S : f32[5]  S[i] = -inf  S[i] max= A[i, k] }"
    assert after(least) == [["S[i] max= A[i, k]"]]


@pytest.mark.parametrize("role", ["out", "local", "inout"])
def test_another_start_comes_last(role: str) -> None:
    more = "" if role != "local" else "  out T : s32[5, 6]  T[i, j] = S[i, j]"
    text = f"kernel k {{ {BUFFERS}  {role} S : s32[5, 6]  S[x, y] = D[y] * 2  {SUM}{more} }}"
    found = after(text)
    assert [one[:2] for one in found] == [
        ["S_rest[i, j] += A[i, k] * B[k, j]", "S[x, y] = D[y] * 2 + S_rest[x, y]"]
    ]


def test_what_is_there_before_goes_where_zero_is_written_over_it() -> None:
    text = f"kernel k {{ {BUFFERS}  inout S : s32[5, 6]  S[x, y] = 0  {SUM} }}"
    assert after(text) == [["S_rest[i, j] += A[i, k] * B[k, j]", "S[x, y] = S_rest[x, y]"]]


@pytest.mark.parametrize(
    "body",
    [
        f"inout S : s32[5, 6]  S[x, y] = S[x, y] + D[y]  {SUM}",  # it reads what is there
        f"out S : s32[9, 6]  for i in 0..5  S[x, y] = D[y]  {SUM}",  # more is started than summed
        f"out S : s32[5, 6]  S[0, y] = D[y]  {SUM}",  # less
        f"out S : s32[5, 6]  S[x, y] = D[y]  S[i, j] += D[j]  {SUM}",  # two sums
        f"out S : s32[5, 6]  out T : s32[5, 6]  S[x, y] = D[y]  T[x, y] = S[x, y]  {SUM}",
        f"out S : s32[5, 6]  inout E : s32[6]  S[x, y] = E[y]  E[y] = D[y]  {SUM}",  # later
        f"out S : s32[5, 6]  S[x, y] += D[y]  {SUM}",  # no assignment
    ],
)
def test_what_starts_nothing_or_is_needed_stays(body: str) -> None:
    assert not after(f"kernel k {{ {BUFFERS}  {body} }}", body.count(" = ") + body.count("+=") - 1)


def test_sums_of_floats_begin_elsewhere_only_where_that_is_permitted() -> None:
    text = "kernel k{} {{ in A : f32[5, 7]  in D : f32[5]  out S : f32[5]  S[i] = {}"
    text += "  S[i] += A[i, k] }}"
    assert after(text.format("", "D[i]"))
    assert not after(text.format(" permit no reassociate", "D[i]"))
    assert after(text.format(" permit no reassociate", "0.0"))
    assert after(text.format("", "-0.0")) != [["S[i] += A[i, k]"]]


KINDS = {"s32": ("+=", "*=", "max="), "u8": ("+=", "min="), "f32": ("+=", "max=", "min=")}


@given(
    st.sampled_from([(t, r) for t, own in KINDS.items() for r in own]),
    st.sampled_from(["D[y]", "0", "E[x, y] * D[y]", "max(D[y], E[x, y])"]),
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40)),
    st.integers(0, 99),
)
@examples(1)
def test_the_same_is_computed(
    kind: tuple[str, str], start: str, sizes: tuple[int, int, int], seed: int
) -> None:
    (dtype, reduction), (m, n, k) = kind, sizes
    kernel = kernel_of(
        f"kernel k {{ in A : {dtype}[{m}, {k}]  in D : {dtype}[{n}]  in E : {dtype}[{m}, {n}]"
        f"  out S : {dtype}[{m}, {n}]  S[x, y] = {start}  S[i, j] {reduction} A[i, k] }}"
    )
    inputs = random_inputs(kernel, seed=seed)
    want = interpret(kernel, inputs)
    (only,) = rewritings(kernel, 1, RULE).proved
    assert_valid(only, kernel)
    got = interpret(only.kernel, inputs)
    assert compare(kernel, inputs, want, got, computed=only.kernel).ok


def test_kernels_with_starts_and_without_compete() -> None:
    text = f"kernel k {{ {BUFFERS}  local S : s32[5, 6]  out T : s32[5]  S[x, y] = D[y]  {SUM}"
    kernel = kernel_of(text + "  T[i] = 0  T[i] += S[i, j] }")
    plain, last = started(kernel, None)
    assert [len(one.kernel.statements) for one in (plain, last)] == [3, 3]
    assert [len(one.rewritings) for one in (plain, last)] == [1, 2]
    assert started(kernel, ()) == started(kernel, ("contract",))
    assert [one.rewritings for one in started(kernel, ())] == [()]


@pytest.mark.parametrize("hardware", ["gemmini", "vta", "x86_avx2", "aarch64_neon"])
def test_a_bias_that_a_sum_starts_from_is_added_in_registers(hardware: str) -> None:
    kernel = kernel_of(
        "kernel k { in A : s8[33, 40]  in B : s8[40, 35]  in D : s32[35]  local S : s32[33, 35]"
        "  out C : s8[33, 35]  S[i, j] = D[j]  S[i, j] += s32(A[i, k]) * s32(B[k, j])"
        "  C[i, j] = s8(S[i, j]) }"
    )
    if hardware == "gemmini":
        kernel = kernel_of(
            "kernel k { in A : s8[33, 40]  in B : s8[40, 35]  in D : s32[35]"
            "  local S : s32[33, 35]  out C : s8[33, 35]  S[i, j] = D[j]"
            "  S[i, j] += s32(A[i, k]) * s32(B[k, j])  C[i, j] = sat[s8](S[i, j]) }"
        )
    result = map_kernel(kernel, load_hardware(hardware), Options(prove=False))
    if hardware == "x86_avx2":  # a bias that is stored ahead is faster there, and is chosen
        rules = Options(prove=False, rewrite=("start-last",))
        last = map_kernel(kernel, load_hardware(hardware), rules)
        assert result.estimate.cycles < last.estimate.cycles
        result = last
    assert "start-last" in [one.rule for one in result.rewritings]
    name = {one.name: number for number, one in enumerate(result.statements)}
    own = result.schedule.statements
    assert own[name["S"]].within == name["S_rest"]


def test_a_bias_of_floats_is_added_in_registers() -> None:
    kernel = kernel_of(
        "kernel k { in A : f32[33, 40]  in B : f32[40, 35]  in D : f32[35]  out S : f32[33, 35]"
        "  S[i, j] = D[j]  S[i, j] += A[i, k] * B[k, j] }"
    )
    result = map_kernel(kernel, load_hardware("x86_avx2"), Options(prove=False))
    assert "start-last" in [one.rule for one in result.rewritings]
    name = {one.name: number for number, one in enumerate(result.statements)}
    assert result.schedule.statements[name["S"]].within == name["S_rest"]
