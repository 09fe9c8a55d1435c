"""Rows that windows slide over, end to end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import rules_for
from tests.rewrite.products import assert_equal, kernel_of

RULE = rules_for((), ("join-rows",))


def _offered(text: str, number: int = 0) -> tuple[Rewriting, ...]:
    found = rewritings(kernel_of(text), number, RULE)
    assert not found.refused, [refused.text for refused in found.refused]
    for rewriting in found.proved:
        assert_equal(rewriting, kernel_of(text))
    return found.proved


def _statements(text: str) -> list[str]:
    (only,) = _offered(text)
    return [print_statement(statement) for statement in only.kernel.statements]


CONV = """kernel k {{
  in X : s8[7, 7, 5] pad 0
  in F : s8[3, 3, 5, 4]
  {role} S : s32[7, 7, 4]
  {result}
  S[p, q, k] += s32(X[p + r - 1, q + s - 1, c]) * s32(F[r, s, c, k])
  {then}
}}"""
OWN = {
    "role": "local",
    "result": "out Y : s8[7, 7, 4]",
    "then": "Y[p, q, k] = sat[s8](S[p, q, k])",
}


def test_places_of_several_rows_are_neighbours() -> None:
    assert _statements(CONV.format(**OWN)) == [
        "X_rows[9*i + j, l] = X[i - 1, j - 1, l]",
        "S_rows[p_q, k] += s32(X_rows[p_q + 9*r + s, c]) * s32(F[r, s, c, k])",
        "Y[p, q, k] = sat[s8](S_rows[9*p + q, k])",
    ]


def test_what_a_caller_sees_is_copied() -> None:
    text = CONV.format(**{**OWN, "role": "out", "result": "", "then": ""})
    assert _statements(text)[1:] == [
        "S_rows[p_q, k] += s32(X_rows[p_q + 9*r + s, c]) * s32(F[r, s, c, k])",
        "S[p, q, k] = S_rows[9*p + q, k]",
    ]


@pytest.mark.parametrize(
    "then",
    [
        "Y[p, q, k] = sat[s8](S[-p + 6, q, k])",
        "Y[p, q, k] = sat[s8](S[p, q, k] + S[6 - p, q, k])",
        "Y[q, p, k] = sat[s8](S[p, q, k])",
    ],
)
def test_whoever_reads_results_finds_them(then: str) -> None:
    assert _offered(CONV.format(**{**OWN, "then": then}))


def test_results_that_are_read_as_an_index_are_copied() -> None:
    text = """kernel k {
      in X : s32[4, 4] pad 0 values 0 .. 2  in A : s8[40]
      local S : s32[4, 4]  out Y : s8[4, 4]
      for r in 0..2 for s in 0..2
      S[p, q] += X[p + r, q + s]
      Y[p, q] = A[S[p, q]]
    }"""
    assert _statements(text)[2:] == ["S[p, q] = S_rows[5*p + q]", "Y[p, q] = A[S[p, q]]"]


SUM = """kernel k {{
  in X : {dtype}[{shape}]{pad}
  {buffers}
  out Y : {dtype}[4, 6]
  {ranges}
  Y[p, q] {reduction} {value}
}}"""


def _sum(value: str, **given: str) -> str:
    usual = {
        "dtype": "s32",
        "shape": "6, 8",
        "pad": "",
        "buffers": "",
        "ranges": "for r in 0..3 for s in 0..3",
        "reduction": "+=",
    }
    return SUM.format(value=value, **{**usual, **given})


@pytest.mark.parametrize(
    "text",
    [
        _sum("X[2*p + r, q + s]", shape="9, 8"),
        _sum("X[p + r, 2*q + s]", shape="6, 13"),
        _sum("X[p + r, q]", ranges="for r in 0..3", shape="6, 6"),
        _sum("X[p + r, q + s] // 3"),
        _sum("X[p + r, q + s] + s32(q)"),
        _sum("X[p + r, q + s] * F[p, r, s]", buffers="in F : s32[4, 3, 3]"),
        _sum("X[p + r, q + s + p]", shape="6, 11"),
        _sum("X[p + r, q + s] * X[q + s, p + r]", shape="8, 8"),
        _sum("X[p + r, q + s] * A[p, q]", buffers="in A : s32[4, 6]"),
        _sum("X[p + r, q + s] * A[q + s, p]", buffers="in A : s32[8, 4]"),
        _sum("X[p + r, q + 3*s]", shape="6, 12"),
        _sum("X[p + r, q + s]").replace("out Y", "inout Y"),
        _sum("X[p + r, q + s]").replace("Y[p, q] +=", "Y[3 - p, q] +="),
        _sum("X[p + r, q + I[s]]", buffers="in I : s32[3] values 0 .. 2"),
    ],
)
def test_nothing_is_offered_where_rows_do_not_slide_so(text: str) -> None:
    assert not _offered(text)


@pytest.mark.parametrize(
    "text",
    [
        _sum("X[p + r, q + s]"),
        _sum("X[p + 2*r, q + 2*s]", shape="8, 10"),
        _sum("X[p - r + 2, q - s + 2]"),
        _sum("X[p + r - 1, q + s - 2]", pad=" pad 3", reduction="max="),
        _sum("X[p, q + s]", ranges="for s in 0..3", shape="4, 8"),
        _sum(
            "X[p, q - 1] + X[p, q + 1] + X[p - 1, q]",
            reduction="=",
            ranges="",
            pad=" pad 0",
            shape="4, 6",
        ),
        _sum(
            "X[p + r, q + s] * X[p, q]",
            ranges="for p in 0..4 for q in 0..6 for r in 0..3 for s in 0..3",
        ),
    ],
)
def test_windows_of_all_kinds_slide(text: str) -> None:
    assert _offered(text)


def test_floats_are_summed_in_their_order() -> None:
    text = _sum("X[p + s, q + r]", dtype="f32")
    (only,) = rewritings(kernel_of(text), 0, RULE).proved
    assert {lemma.name for lemma in only.lemmas} >= {"associative", "commutative"}
    kept = text.replace("kernel k {", "kernel k permit no reassociate {")
    assert not rewritings(kernel_of(kept), 0, RULE).proved
    assert rewritings(kernel_of(_sum("X[p + r, q + s]", dtype="f32")), 0, RULE).proved


@given(
    st.integers(2, 5),
    st.integers(5, 7),
    st.integers(1, 3),
    st.integers(2, 3),
    st.integers(1, 2),
    st.integers(0, 2),
    st.permutations(["y", "x", "c"]),
    st.booleans(),
)
def test_random_windows(
    height: int,
    width: int,
    rows: int,
    columns: int,
    apart: int,
    shift: int,
    order: list[str],
    local: bool,
) -> None:
    sizes = {"y": height + apart * (rows - 1), "x": width + apart * (columns - 1), "c": 2}
    if shift:
        sizes["x"] = max(1, sizes["x"] - 2 * shift)
    at = {"y": f"p + {apart}*r", "x": f"q + {apart}*s - {shift}", "c": "c"}
    text = f"""kernel k {{
      in X : s32[{", ".join(str(sizes[v]) for v in order)}] pad 1
      in F : s32[{rows}, {columns}, 2, 3]
      {"local" if local else "out"} S : s32[3, {height}, {width}]
      {f"out Y : s32[{height}, 3, {width}]" if local else ""}
      S[k, p, q] += X[{", ".join(at[v] for v in order)}] * F[r, s, c, k]
      {"Y[p, k, q] = S[k, p, q] + 1" if local else ""}
    }}"""
    assert bool(_offered(text)) == (order.index("y") < order.index("x"))


LAYER = """kernel k {
  in X : s8[7, 7, 512] pad 0  const F : s8[3, 3, 512, 128]
  local S : s32[7, 7, 128]  out Y : s8[7, 7, 128]
  S[p, q, k] += s32(X[p + r - 1, q + s - 1, c]) * s32(F[r, s, c, k])
  Y[p, q, k] = sat[s8](S[p, q, k])
}"""


def test_rows_are_joined_where_tiles_have_more_places() -> None:
    machine = load_hardware("x86_amx")
    options = Options(prove=False, rewrite=("join-rows",))
    joined = map_kernel(kernel_of(LAYER), machine, options)
    assert [one.rule for one in joined.rewritings] == ["join-rows"]
    wider = kernel_of(LAYER.replace("[7, 7", "[16, 16").replace("512", "64"))
    assert not map_kernel(wider, machine, options).rewritings
