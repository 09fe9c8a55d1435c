"""Indices that arrays hold are looked at before code follows them."""

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.interp.reads import check_reads, reads_data
from isamap.text.load import parse_module


def check(text: str, **arrays: list[int]) -> None:
    (kernel,) = parse_module(f"kernel k(N = 3, V = 4) {{ {text} }}").kernels
    assert reads_data(kernel)
    check_reads(kernel, {name: np.array(a) for name, a in arrays.items()}, {})


LOOKUP = "in T : s32[N]  in X : f32[V]  out Y : f32[N]  Y[n] = X[T[n]]"


def test_indices_inside_are_fine() -> None:
    check(LOOKUP, T=[0, 3, 2])


@pytest.mark.parametrize("bad", [-1, 4, 900_000_000])
def test_an_index_outside_is_told(bad: int) -> None:
    message = rf"E216.*T leads outside X: index 1, T\[n\], becomes {bad}, and the extent is 4"
    with pytest.raises(ArgumentsError, match=message):
        check(LOOKUP, T=[0, bad, 2])


def test_the_whole_index_counts() -> None:
    text = LOOKUP.replace("X[T[n]]", "X[T[n] + 1]")
    check(text, T=[-1, 2, 0])
    with pytest.raises(ArgumentsError, match="becomes 4"):
        check(text, T=[0, 3, 0])


def test_a_padded_buffer_may_be_left() -> None:
    check(LOOKUP.replace("X : f32[V]", "X : f32[V] pad 0"), T=[-5, 77, 0])


def test_a_written_buffer_may_not() -> None:
    with pytest.raises(ArgumentsError, match="T leads outside H"):
        check("in T : s32[N]  inout H : s32[V]  H[T[n]] += 1", T=[0, 4, 0], H=[0] * 4)


def test_indices_of_indices_are_looked_at_first() -> None:
    text = "in S : s32[N] in T : s32[N] in X : f32[V] out Y : f32[N]  Y[n] = X[T[S[n]]]"
    check(text, S=[2, 1, 0], T=[3, 0, 1])
    with pytest.raises(ArgumentsError, match="an index of T is outside"):
        check(text, S=[3, 1, 0], T=[3, 0, 1])


def test_kernels_without_such_indices_need_no_look() -> None:
    (kernel,) = parse_module("kernel k(N = 3) { in X : f32[N] out Y : f32[N] Y[n] = X[n] }").kernels
    assert not reads_data(kernel)
