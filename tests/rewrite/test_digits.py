"""Quotients and remainders of variables become variables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.index import Index
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite import digits
from isamap.rewrite.apply import prove_once, rewritings
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import rules_for
from isamap.rewrite.simple import Simple
from tests.rewrite.products import assert_equal, assert_valid, kernel_of

RULE = rules_for((), ("split-variables",))


def _offered(text: str) -> tuple[Rewriting, ...]:
    found = rewritings(kernel_of(text), 0, RULE)
    assert not found.refused, [refused.text for refused in found.refused]
    for rewriting in found.proved:
        assert_valid(rewriting, kernel_of(text))
        assert_equal(rewriting, kernel_of(text))
    return found.proved


def _statements(text: str) -> list[str]:
    (only,) = _offered(text)
    return [print_statement(statement) for statement in only.kernel.statements]


KRONECKER = """kernel k {
  in A : f32[3, 2]
  in B : f32[4, 5]
  out C : f32[12, 10]
  for i in 0..12 for j in 0..10
  C[i, j] = A[i // 4, j // 5] * B[i % 4, j % 5]
}"""


def test_digits_are_variables() -> None:
    assert _statements(KRONECKER) == ["C[4*i_1 + i_2, 5*j_1 + j_2] = A[i_1, j_1] * B[i_2, j_2]"]


def _of_one(value: str, size: int, more: int = 64) -> str:
    return f"""kernel k {{
      in A : s32[{more}]
      in B : s32[{more}]
      out C : s32[{size}]
      for i in 0..{size}
      C[i] = {value}
    }}"""


@pytest.mark.parametrize(
    ("value", "size", "statements"),
    [
        ("A[i // 4] + B[i % 4]", 8, ["C[4*i_1 + i_2] = A[i_1] + B[i_2]"]),
        ("A[2*i // 4] + B[i]", 8, ["C[2*i_1 + i_2] = A[i_1] + B[2*i_1 + i_2]"]),
        ("A[i % 8 // 2]", 16, ["C[8*i_1 + 2*i_2 + i_3] = A[i_2]"]),
        ("A[i // 2 // 4]", 16, ["C[8*i_1 + 2*i_2 + i_3] = A[i_1]"]),
        ("A[(i + 4) // 4]", 8, ["C[4*i_1 + i_2] = A[i_1 + 1]"]),
        ("A[(i + 1) // 2]", 8, ["C[2*i_1 + i_2] = A[i_1 + (i_2 + 1) // 2]"]),
        ("A[i // 4]", 11, ["C[4*i_1 + i_2] = A[i_1]", "C[i_from_8 + 8] = A[2]"]),
        ("s32(i // 4) + A[i]", 8, ["C[4*i_1 + i_2] = s32(i_1) + A[4*i_1 + i_2]"]),
        ("A[i // 4]", 9, ["C[4*i_1 + i_2] = A[i_1]", "C[8] = A[2]"]),
        ("A[i] + s32(i % 4)", 9, ["C[4*i_1 + i_2] = A[4*i_1 + i_2] + s32(i_2)", "C[8] = A[8] + 0"]),
        ("A[(i + 1) % 8]", 8, ["C[i_from_0] = A[i_from_0 + 1]", "C[7] = A[0]"]),
        (
            "A[(3 - i) % 8]",
            8,
            ["C[i_from_0] = A[-i_from_0 + 3]", "C[i_from_4 + 4] = A[-i_from_4 + 7]"],
        ),
        (
            "A[(i + 7) % 8] + A[(i + 1) % 8]",
            8,
            [
                "C[0] = A[7] + A[1]",
                "C[i_from_1 + 1] = A[i_from_1] + A[i_from_1 + 2]",
                "C[7] = A[6] + A[0]",
            ],
        ),
    ],
)
def test_what_becomes_of_a_variable(value: str, size: int, statements: list[str]) -> None:
    assert _statements(_of_one(value, size)) == statements


@pytest.mark.parametrize("value", ["A[i]", "A[i // 16]", "A[i % 8]"])
def test_where_nothing_is_apart_nothing_is_changed(value: str) -> None:
    assert not _offered(_of_one(value, 8))


def test_windows_that_wrap_around_do_so_at_the_ends() -> None:
    text = """kernel k {
      in A : s32[20]
      in W : s32[3]
      out C : s32[20]
      for i in 0..20 for k in 0..3
      C[i] += A[(i + k + 19) % 20] * W[k]
    }"""
    assert _statements(text) == [
        "C[0] += A[(k + 19) % 20] * W[k]",
        "C[i_from_1 + 1] += A[i_from_1 + k] * W[k]",
        "C[19] += A[(k + 18) % 20] * W[k]",
    ]


@pytest.mark.parametrize("target", ["C[j] += A[i % 4, i // 4]", "C[i % 4] += A[i // 4, j]"])
def test_sums_that_keep_their_order_keep_their_variables(target: str) -> None:
    """The digits of i would be taken in the order in which they appear."""
    text = f"""kernel k permit no reassociate {{
      in A : f32[4, 4]
      out C : f32[4]
      for i in 0..16 for j in 0..4
      {target}
    }}"""
    assert not _offered(text)
    assert (
        len(rewritings(kernel_of(text.replace("permit no reassociate", "")), 0, RULE).proved) == 1
    )
    assert _offered(text.replace("f32", "s32"))
    assert _offered(KRONECKER.replace("kernel k", "kernel k permit no reassociate"))


def test_an_iteration_without_a_trace_is_kept() -> None:
    text = """kernel k {
      in A : s32[4]
      out C : s32[1]
      for i in 0..16 for j in 0..1
      C[j] += A[i // 4]
    }"""
    assert not _offered(text)


@st.composite
def _indices(draw: st.DrawFn, depth: int = 3) -> str:
    if not depth or draw(st.booleans()):
        return draw(
            st.sampled_from(
                ["i", "j", "3*i + j", "2*j + 1", "i + 2", "6*i", "i + 40 - 2*j", "41 - i"]
            )
        )
    inner = draw(_indices(depth - 1))
    divided = f"({inner}) {draw(st.sampled_from(['//', '%']))} {draw(st.integers(1, 12))}"
    return divided if draw(st.booleans()) else f"{divided} + ({draw(_indices(depth - 1))})"


@given(_indices(), _indices(), st.integers(1, 30), st.integers(1, 9))
def test_whatever_is_apart_is_the_same(left: str, right: str, rows: int, columns: int) -> None:
    _offered(f"""kernel k {{
      in A : s32[1000]
      out C : s32[{rows}, {columns}]
      for i in 0..{rows} for j in 0..{columns}
      C[i, j] = A[{left}] - A[{right}]
    }}""")


def test_the_solver_finds_an_index_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Simple._apart

    def wrong(self: Simple, value: Index, divisor: int) -> tuple[Index, Index]:
        quotient, remainder = right(self, value, divisor)
        return quotient, remainder if remainder.constant is not None else remainder * 2

    monkeypatch.setattr(Simple, "_apart", wrong)
    (refused,) = rewritings(kernel_of(KRONECKER), 0, RULE).refused
    assert refused.text.startswith("split-variables: 'where i = 4*i_1 + i_2 and j = 5*j_1 + j_2")


def test_pieces_that_leave_values_out_or_overlap_are_found() -> None:
    whole = digits._digits(kernel_of(KRONECKER), "i", 11, (4,), ())
    assert prove_once(digits._once("i", 11, whole)).verdict == "proved"
    assert prove_once(digits._once("i", 12, whole)).verdict != "proved"
    assert prove_once(digits._once("i", 10, whole)).verdict != "proved"
    assert (
        prove_once(digits._once("i", 11, (*whole, whole[1].marked("_again")))).verdict != "proved"
    )


def test_vectors_compute_what_had_an_element_at_a_time() -> None:
    text = """kernel scaled {
      in X : f32[6, 40]
      in S : f32[40]
      out Y : f32[240]
      for i in 0..240
      Y[i] = X[i // 40, i % 40] * S[i % 40]
    }"""
    report = make_report(kernel_of(text), load_hardware("vector_c"), Options(prove=False))
    assert report.check is not None
    assert report.check.ok
    assert [r.rule for r in report.result.rewritings] == ["split-variables"]
