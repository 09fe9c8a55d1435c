"""Ranges are inferred from variables that stand alone, never solved for."""

import pytest

from isamap.diagnostics import VerifyError
from isamap.ir.nodes import Statement
from isamap.text.load import parse_module


def statement(text: str) -> Statement:
    (kernel,) = parse_module(f"kernel k(N, M) {{ {text} }}").kernels
    return kernel.statements[-1]


def ranges(text: str) -> dict[str, str]:
    return {v.name: f"{v.lower}..{v.lower + v.extent}" for v in statement(text).variables}


CONV = "in X : f32[8, 8, 3] pad 0  const D : f32[3, 3, 3, 5]  out Y : f32[8, 8, 5]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{CONV}\n Y[h, w, k] += X[h + r - 1, w + s - 1, c] * D[r, s, c, k]",
            {"h": "0..8", "w": "0..8", "k": "0..5", "r": "0..3", "s": "0..3", "c": "0..3"},
        ),
        (
            "in X : f32[9]  const W : f32[3]  out Y : f32[4]\n Y[p] += X[2*p + r] * W[2 - r]",
            {"p": "0..4", "r": "0..3"},
        ),
        (
            "in X : f32[4]  const W : f32[2]  out O : f32[8]\n O[2*p + r] += X[p] * W[r]",
            {"p": "0..4", "r": "0..2"},
        ),
        ("in A : f32[4, 4]  out Y : f32[]\n Y[] += A[i//4, i%4]", {"i": "0..16"}),
        ("in A : f32[4]  out Y : f32[14]\n Y[i] = A[i//4]", {"i": "0..14"}),
        (
            "in X : f32[4, 3] pad 0  out Y : f32[4]\n Y[h] += X[h, c]",
            {"h": "0..4", "c": "0..3"},
        ),
        (
            "in X : f32[9]  out Y : f32[4]\n for r in -1..2\n Y[p] max= X[2*p + r + 1]",
            {"p": "0..4", "r": "-1..2"},
        ),
        ("in X : f32[N]  out Y : f32[N]\n Y[N - 1 - i] = X[i]", {"i": "0..N"}),
        (
            "in T : s32[5] values 0..3  in X : f32[4]  out Y : f32[5]\n Y[t] = X[T[t]]",
            {"t": "0..5"},
        ),
        ("in T : s32[5] values 0..3  in X : f32[4]  out Y : f32[]\n Y[] += X[T[t]]", {"t": "0..5"}),
    ],
)
def test_a_variable_alone_in_a_dimension_has_its_range(text: str, expected: dict[str, str]) -> None:
    assert ranges(text) == expected
    assert list(ranges(text)) == list(expected)  # in order of appearance


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("X[2*p + r]", "r"),
        ("X[p + r]", "r"),
        ("X[p - r]", "r"),
        ("X[r % 4]", "r"),
        ("X[2*r]", "r"),
        ("X[p] * f32(r)", "r"),
    ],
)
def test_a_variable_that_nothing_bounds_needs_a_line(value: str, name: str) -> None:
    with pytest.raises(VerifyError) as caught:
        ranges(f"in X : f32[9] pad 0  out Y : f32[4]\n for p in 0..4\n Y[p] max= {value}")
    (told,) = caught.value.diagnostics
    assert told.code == "E022"
    assert f"{name}" in told.message
    assert told.hint is not None
    assert name in told.hint


def test_the_hint_for_a_window_is_the_line_to_add() -> None:
    with pytest.raises(VerifyError) as caught:
        ranges("in X : f32[9]  out Y : f32[4]\n Y[p] max= X[2*p + r]")
    told = "say its range on a line before, such as: for r in 0..3"
    assert caught.value.diagnostics[0].hint == told


def test_extents_with_one_value_agree_and_others_do_not() -> None:
    text = "kernel k(A = 4, B = 2*A) {{ in X : f32[B]  out Y : f32[{}]\n Y[i] = X[i] }}"
    parse_module(text.format("8"))
    parse_module(text.format("2*A"))
    with pytest.raises(VerifyError, match=r"i has two ranges: 0\.\.7 from Y, 0\.\.8 from X"):
        parse_module(text.format("7"))


def test_overrides_change_what_is_proved() -> None:
    text = "kernel k(N, M = 4) { in X : f32[N]  out Y : f32[M]\n Y[i] = X[i] }"
    with pytest.raises(VerifyError, match=r"0\.\.4 from Y, 0\.\.N from X"):
        parse_module(text)
    (kernel,) = parse_module(text, overrides={"N": 4}).kernels
    assert [(e.name, e.value) for e in kernel.extents] == [("N", 4), ("M", 4)]
    (kernel,) = parse_module(text, overrides={"N": 7, "M": 7}).kernels
    assert kernel.symbols == ()


@pytest.mark.parametrize("value", [0, -1, 1 << 63])
def test_overrides_are_sizes(value: int) -> None:
    with pytest.raises(VerifyError) as caught:
        parse_module("kernel k(N) { out Y : f32[N]\n Y[i] = 1 }", overrides={"N": value})
    assert [d.code for d in caught.value.diagnostics] == ["E029"]


def test_overrides_name_extents() -> None:
    with pytest.raises(VerifyError) as caught:
        parse_module("kernel k(N) { out Y : f32[N]\n Y[i] = 1 }", overrides={"M": 3})
    (told,) = caught.value.diagnostics
    assert (told.code, told.hint) == ("E030", "the extents are: N")


def test_derived_extents_of_symbols_stay_symbolic() -> None:
    (kernel,) = parse_module(
        "kernel k(H, K = 2*H) { in X : f32[K]  out Y : f32[K]\n Y[i] = X[i] }"
    ).kernels
    assert kernel.symbols == ("H",)
    assert str(kernel.buffers[0].shape[0]) == "2*H"
