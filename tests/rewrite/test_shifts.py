"""Divisions of integers by powers of two: shifts and masks."""

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import rules_for
from tests.rewrite.products import assert_valid, kernel_of

RULE = rules_for((), ("by-shift",))


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("A[i] // 4", "A[i] >> 2"),
        ("A[i] % 8", "A[i] & 7"),
        ("A[i] // 1 + A[i] // 3", "(A[i] >> 0) + A[i] // 3"),
        ("A[i] // 64 % 2", "A[i] >> 6 & 1"),
    ],
)
def test_powers_of_two_are_shifted_out(dtype: str, value: str, want: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : {dtype}[64]\nout C : {dtype}[64]\nC[i] = {value} }}")
    (only,) = rewritings(kernel, 0, RULE).proved
    assert print_statement(only.kernel.statements[0]).replace("(A[i] >> 6)", "A[i] >> 6") == (
        f"C[i] = {want}"
    )
    assert_valid(only, kernel)
    own = DTYPES[dtype]
    step = (own.highest - own.lowest) // 63
    given = np.array([own.lowest + n * step for n in range(64)], own.numpy)
    given[:9] = [0, 1, 3, 4, 5, 7, 8, 9, own.highest]
    if own.kind == "signed":
        given[9:17] = [-1, -2, -3, -4, -5, -7, -8, own.lowest]
    got, wanted = (interpret(k, {"A": given})["C"] for k in (only.kernel, kernel))
    assert (got == wanted).all()


@pytest.mark.parametrize("value", ["A[i] // 3", "A[i] // -4", "4 // A[i]", "A[i] % 6"])
def test_others_are_divided_by(value: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : s32[9]\nout C : s32[9]\nC[i] = {value} }}")
    found = rewritings(kernel, 0, RULE)
    assert not (*found.proved, *found.refused)


def test_a_mean_of_integers_is_shifted_in_vectors() -> None:
    kernel = kernel_of(
        "kernel k { in A : s32[200]\nin B : s32[200]\nout C : s32[200]\nC[i] = (A[i] + B[i]) // 2 }"
    )
    report = make_report(kernel, load_hardware("x86_avx2"), Options(prove=False))
    assert "by-shift" in [r.rule for r in report.result.rewritings]
    assert report.check is not None
    assert report.check.ok
