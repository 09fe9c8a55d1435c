"""Targets whose place is read from a buffer: what is certain about them, and what is not."""

import pytest

from isamap.diagnostics import IsamapError
from isamap.text.load import parse_module

BUFFERS = "in X : s32[N] values 0 .. 7 in Z : f32[N]"


def codes(body: str) -> list[str]:
    try:
        parse_module(f"kernel k(N = 8) {{ {BUFFERS} {body} }}")
    except IsamapError as error:
        return [d.code for d in error.diagnostics]
    return []


@pytest.mark.parametrize(
    "body",
    [
        "out H : f32[N]  H[X[i]] += Z[i]",
        "out H : f32[N]  H[X[i] // 2] += Z[i]",
        "out H : f32[N]  H[(X[i] + i) % 8] max= Z[i]",
    ],
)
def test_nothing_is_sure_to_be_written_where_data_says(body: str) -> None:
    assert codes(body) == ["E024"]


@pytest.mark.parametrize(
    "body",
    [
        "inout H : f32[N]  H[X[i]] = Z[i]",
        "inout H : f32[N]  H[X[i]] = H[X[i]] + Z[i]",
        "inout H : f32[N, N]  H[X[i], j] = Z[i]",
    ],
)
def test_points_that_may_write_one_element_have_no_order(body: str) -> None:
    assert codes(body) == ["E025"]


@pytest.mark.parametrize(
    "body",
    [
        "inout H : f32[N]  H[X[i]] += Z[i]",
        "out H : f32[N]  H[i] = 0.0\n H[X[i] // 2] += Z[i]",
        "inout H : f32[N]  H[X[0]] = 1.0",
        "inout H : f32[N, N]  H[X[0], i] = Z[i]",
        "inout H : f32[N, N]  H[X[i], i] = H[X[i], i] + Z[i]",
    ],
)
def test_what_is_sure_is_accepted(body: str) -> None:
    assert codes(body) == []
