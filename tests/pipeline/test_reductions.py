"""Reductions along rows, whole: what is chosen computes what is written, at any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from tests.lower.test_lowering import agrees, machine
from tests.profiles import examples
from tests.rewrite.products import kernel_of

TEXTS = {
    "sum": "in X : {t}[R, C]  out S : {t}[R]  S[r] += X[r, c]",
    "maximum": "in X : {t}[R, C]  out S : {t}[R]  S[r] max= X[r, c]",
    "matrix by vector": "in X : {t}[R, C]  in W : {t}[C]  out S : {t}[R]  S[r] += X[r, c] * W[c]",
    "all": "in X : {t}[R, C]  out S : {t}[]  S[] += X[r, c]",
    "squares": "in X : {t}[R, C]  local V : {t}[R]  out Y : {t}[R, C]\n"
    "V[r] += X[r, c] * X[r, c]\nY[r, c] = X[r, c] + V[r]",
}


def mapped(name: str, dtype: str, rows: int, columns: int, threads: int = 1) -> Result:
    """Return a kernel on rows, mapped."""
    body = TEXTS[name].format(t=dtype)
    kernel = kernel_of(f"kernel k(R = {rows}, C = {columns}) {{ {body} }}")
    return map_kernel(kernel, machine("x86_avx512"), Options(threads=threads))


@given(
    st.sampled_from(sorted(TEXTS)),
    st.sampled_from(["f32", "s32"]),
    st.integers(1, 70),
    st.integers(1, 150),
    st.sampled_from([1, 2]),
)
@examples(1)
def test_reductions_along_rows_compute_the_same(
    name: str, dtype: str, rows: int, columns: int, threads: int
) -> None:
    result = mapped(name, dtype, rows, columns, threads)
    agrees(result.kernel, result.lowered, result.accelerator, 5)


@pytest.mark.parametrize("name", ["sum", "maximum", "matrix by vector", "all", "squares"])
def test_long_rows_are_reduced_in_lanes(name: str) -> None:
    result = mapped(name, "f32", 40, 613)
    assert [r.rule for r in result.rewritings] == ["split-reduction"]
    agrees(result.kernel, result.lowered, result.accelerator, 5)


def test_short_rows_are_not() -> None:
    assert not mapped("sum", "f32", 60, 20).rewritings


def test_as_many_rows_as_there_are_at_run_time_are_reduced_in_lanes() -> None:
    kernel = kernel_of("kernel k(N) { in X : f32[N, 613]  out S : f32[N]  S[r] += X[r, c] }")
    result = map_kernel(kernel, machine("x86_avx512"))
    assert [r.rule for r in result.rewritings] == ["split-reduction"]
    agrees(result.kernel, result.lowered, result.accelerator, 5)
