"""What iterations share is computed once, in buffers: the same operations on the same values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import rewritings
from isamap.rewrite.once import NAME, compute_once
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_equal, boxes, buffers, kernel_of

RULES = [(NAME, compute_once)]


def _offered(kernel: Kernel) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, 0, RULES)
    assert found.refused == ()
    return found.proved


def _texts(text: str) -> list[list[str]]:
    return [
        [print_statement(s).strip() for s in r.kernel.statements] for r in _offered(kernel_of(text))
    ]


def test_conversions_are_those_of_whole_buffers_all_of_them_or_one() -> None:
    assert _texts(
        "kernel k { in A : bf16[8, 8]  in B : bf16[8, 8]  out Y : f32[8, 8] "
        "Y[m, n] += f32(A[m, k]) * f32(B[k, n]) }"
    ) == [
        [
            "A_f32[i, j] = f32(A[i, j])",
            "B_f32[i, j] = f32(B[i, j])",
            "Y[m, n] += A_f32[m, k] * B_f32[k, n]",
        ],
        ["A_f32[i, j] = f32(A[i, j])", "Y[m, n] += A_f32[m, k] * f32(B[k, n])"],
        ["B_f32[i, j] = f32(B[i, j])", "Y[m, n] += f32(A[m, k]) * B_f32[k, n]"],
    ]


def test_the_largest_part_is_computed_in_the_rounds_of_its_statement() -> None:
    text = """kernel k { in A : bf16[512, 256]  in B : bf16[256, 16]  out Y : f32[512, 16]
      Y[m, n] += f32(A[m, k]) * f32(B[k, n]) }"""
    kernel = kernel_of(text)
    first = _texts(text)[0]
    assert [line.partition("[")[0] for line in first] == ["B_f32", "A_f32", "Y"]
    result = map_kernel(kernel, load_hardware("x86_avx512_intel"), Options(prove=False))
    assert [rewriting.rule for rewriting in result.rewritings] == [NAME]
    # What has nothing in common with the copy of A shares no rounds with it.
    assert [own.along for own in result.schedule.statements[:3]] == [None, None, 1]


def test_windows_share_what_is_computed_of_an_element() -> None:
    (only,) = _texts(
        "kernel k { in X : f32[30]  in F : f32[5, 16]  out Y : f32[16, 26] "
        "Y[o, p] += exp(X[p + t]) * F[t, o] }"
    )
    assert only == ["X_once[i] = exp(X[i])", "Y[o, p] += X_once[p + t] * F[t, o]"]


def test_what_reads_several_buffers_has_their_variables() -> None:
    (only,) = _texts(
        "kernel k { in W : s8[8, 8]  in s : f32[8]  in X : f32[8, 8]  out Y : f32[8, 8] "
        "Y[m, n] += X[m, k] * (f32(W[k, n]) * s[n]) }"
    )
    assert only == ["Y_once[n, k] = f32(W[k, n]) * s[n]", "Y[m, n] += X[m, k] * Y_once[n, k]"]


@pytest.mark.parametrize(
    "text",
    [
        # Every iteration has its own.
        "kernel k { in X : bf16[64]  out Y : f32[64]  Y[i] = f32(X[i]) }",
        # Few share it.
        "kernel k { in X : bf16[64]  in Z : f32[3, 64]  out Y : f32[3, 64] "
        "Y[i, j] = f32(X[j]) * Z[i, j] }",
        # Others of its elements may divide by zero.
        "kernel k { in X : s32[9]  in D : s32[9]  in Z : s32[9, 9]  out Y : s32[9] "
        "Y[i] += (X[i] % D[i]) * Z[i, j] }",
        # Windows of several buffers do not lie in one.
        "kernel k { in X : f32[20]  in Z : f32[20]  in F : f32[8, 8]  out Y : f32[8, 8] "
        "Y[o, p] += (X[p + t] * Z[p + t]) * F[t, o] }",
        # The place in memory is part of the value.
        "kernel k { in X : f32[9]  in Z : f32[9, 9]  out Y : f32[9] "
        "Y[i] += (X[j] * f32(j)) * Z[i, j] }",
        # The padding would be another number.
        "kernel k { in X : f32[9] pad 0.1  in F : f32[9, 9]  out Y : f32[9, 9] "
        "Y[o, p] += f32(bf16(X[p + t - 1])) * F[t, o] for t in 0..3 }",
    ],
)
def test_it_is_left_where_it_is(text: str) -> None:
    assert _texts(text) == []


def test_padding_is_that_of_the_copy() -> None:
    kernel = kernel_of(
        "kernel k { in X : bf16[9] pad 3  in F : f32[3, 9]  out Y : f32[9, 9] "
        "Y[o, p] += f32(X[p + t - 1]) * F[t, o] }"
    )
    (only,) = _offered(kernel)
    pad = only.kernel.buffer("X_f32").pad
    assert pad is not None
    assert (pad.text, str(pad.dtype)) == ("3.0", "f32")
    assert_equal(only, kernel)


@st.composite
def _kernels(draw: st.DrawFn) -> str:
    """Products of what is computed of buffers, their indices permuted, strided, padded."""
    drawn: Drawn = draw(boxes())
    factors = []
    for name in "AB":
        dtype = draw(st.sampled_from(["bf16", "f16", "s8", "u8", "f32"]))
        names = draw(st.sampled_from(["mk", "nk", "k", "kr", "n"]))
        access = draw(buffers(drawn, name, dtype, names))
        factor = access if dtype == "f32" else f"f32({access})"
        more = draw(st.sampled_from(["{}", "({} - 3)", "exp({} * 0.01)", "abs({})", "({0} * {0})"]))
        factors.append(more.format(factor))
    m, n = drawn.sizes["m"], drawn.sizes["n"]
    drawn.lines += [f"out C : f32[{m}, {n}]"]
    drawn.used |= {"m", "n"}
    reduction = draw(st.sampled_from(["+=", "max=", "min="]))
    value = draw(st.sampled_from(["{} * {}", "{} * {} + 1", "max({}, {})"])).format(*factors)
    return drawn.text(f"C[m, n] {reduction} {value}")


@given(_kernels(), st.integers(0, 99))
@examples(1)
def test_what_is_computed_once_is_the_same(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    for rewriting in _offered(kernel):
        assert_equal(rewriting, kernel, seed)


@pytest.mark.parametrize(
    # With AVX2 it gains a fourteenth on a Zen 4, less than a rewriting has to.
    ("hardware", "taken"),
    [("x86_avx512_intel", True), ("x86_avx512", False), ("x86_avx2", False)],
)
def test_it_is_taken_where_products_of_the_converted_are_faster(hardware: str, taken: bool) -> None:
    kernel = kernel_of(
        "kernel k { in A : bf16[128, 128]  in B : bf16[128, 128]  out Y : f32[128, 128] "
        "Y[m, n] += f32(A[m, k]) * f32(B[k, n]) }"
    )
    result = map_kernel(kernel, load_hardware(hardware), Options(prove=False))
    assert (NAME in [r.rule for r in result.rewritings]) == taken
