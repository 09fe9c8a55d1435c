"""A choice that all steps of a reduction make alike is made after it."""

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import rules_for
from tests.rewrite.products import assert_equal, assert_valid, kernel_of

RULE = rules_for((), ("choice-last",))


def _kernel(statement: str, dtype: str = "f32", role: str = "out") -> str:
    return f"""kernel k {{
      in A : {dtype}[5, 7]
      in M : {dtype}[5]
      in P : s32[7]
      {role} C : {dtype}[5, 5]
      {statement}
    }}"""


def _offered(text: str) -> tuple[Rewriting, ...]:
    found = rewritings(kernel_of(text), 0, RULE)
    assert not found.refused
    for rewriting in found.proved:
        assert_valid(rewriting, kernel_of(text))
    return found.proved


@pytest.mark.parametrize("dtype", ["f64", "f32", "s32", "u8"])
def test_a_triangle_is_cut_out_of_the_product(dtype: str) -> None:
    text = _kernel("C[i, j] += select(j <= i, A[i, k] * A[j, k], 0)", dtype)
    (only,) = _offered(text)
    first, last = map(print_statement, only.kernel.statements)
    assert first == "C_all[i, j] += A[i, k] * A[j, k]"
    zero = "0.0" if dtype[0] == "f" else "0"
    assert last == f"C[i, j] = select(j <= i, C_all[i, j], {zero})"
    assert_equal(only, kernel_of(text))


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        ("C[i, j] += select(M[i] < 1, 0, A[j, k])", "C[i, j] = select(M[i] < 1, 0, C_all[i, j])"),
        (
            "C[i, j] max= select(i == j, -2147483648, A[j, k])",
            "C[i, j] = select(i == j, -2147483648, C_all[i, j])",
        ),
    ],
)
def test_whichever_way_leaves_the_terms_out(statement: str, last: str) -> None:
    text = _kernel(statement, "s32")
    (only,) = _offered(text)
    assert print_statement(only.kernel.statements[-1]) == last
    assert_equal(only, kernel_of(text))


def test_what_was_there_before_is_kept() -> None:
    text = _kernel("C[i, j] += select(j <= i, A[i, k], 0)", role="inout")
    (only,) = _offered(text)
    assert only.kernel.statements[-1].reduction == "+="
    strict = text.replace("kernel k", "kernel k permit no reassociate")
    assert not _offered(strict)
    assert _offered(strict.replace("inout", "out")), "the terms keep their order"


def test_elements_that_share_a_place_are_added_to_each_other() -> None:
    value = "select(M[i] < 1, A[i, k] * A[j, k], 0)"
    text = _kernel(f"C[(i + j) // 2] += {value}", "s32").replace("s32[5, 5]", "s32[5]")
    (only,) = _offered(text)
    assert only.kernel.statements[-1].reduction == "+="
    assert_equal(only, kernel_of(text))


def test_what_is_not_chosen_may_be_infinite_and_zeros_keep_their_sign() -> None:
    kernel = kernel_of(_kernel("C[i, j] += select(M[i] < 1, A[j, k], 0)"))
    (only,) = rewritings(kernel, 0, RULE).proved
    given = {
        "A": np.full((5, 7), -0.0, np.float32),
        "M": np.array([0, 1, 0, 1, 0], np.float32),
        "P": np.zeros(7, np.int32),
    }
    given["A"][2] = np.inf
    got, wanted = (interpret(k, given)["C"] for k in (only.kernel, kernel))
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "statement",
    [
        "C[i, j] += select(k <= i, A[i, k] * A[j, k], 0)",
        "C[i, j] += select(j <= i, A[i, k], 1)",
        "C[i, j] max= select(j <= i, A[i, k], 0)",
        "C[i, j] += select(j <= i, A[i, k] // P[k], 0)",
        "C[i, j] += select(j <= i, A[i, P[k]], 0)",
        "C[i, j] = select(j <= i, M[j], 0)",
    ],
)
def test_others_are_left_alone(statement: str) -> None:
    assert not _offered(_kernel(statement, "s32"))


def test_a_triangular_update_multiplies_and_adds_in_vectors() -> None:
    for dtype in ("f32", "f64"):
        kernel = kernel_of(
            f"""kernel syrk {{
              in A : {dtype}[40, 24]
              out C : {dtype}[40, 40]
              C[i, j] += select(j <= i, A[i, k] * A[j, k], 0)
            }}"""
        )
        report = make_report(kernel, load_hardware("x86_avx512"), Options(prove=False))
        rules = {r.rule for r in report.result.rewritings}
        assert rules == {"choice-last", "positions-from-memory", "share-local"}, dtype
        assert report.check is not None
        assert report.check.ok
