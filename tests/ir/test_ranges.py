"""Intervals hold every value that the interpreter finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.nodes import Kernel
from isamap.ir.ranges import (
    Interval,
    exact_interval_of,
    full,
    interval_of,
    intervals_before,
    wrapped,
)
from isamap.text.load import parse_module
from tests.strategies import EVERY, kernels

INTEGERS = [dtype for dtype in DTYPES.values() if dtype.is_integer]
NARROW = [dtype for dtype in INTEGERS if dtype.bits <= 16]


@given(kernels(INTEGERS, EVERY - {"cast", "sat"}), st.integers(0, 9))
def test_buffers_hold_only_values_of_their_intervals(kernel: Kernel, seed: int) -> None:
    arrays = interpret(kernel, random_inputs(kernel, seed=seed))
    known = intervals_before(kernel, len(kernel.statements))
    for name, array in arrays.items():
        interval = known.get(name, full(kernel.buffer(name).dtype))
        assert interval.low <= int(array.min())
        assert int(array.max()) <= interval.high


@given(kernels(NARROW, EVERY, max_statements=2), st.integers(0, 9))
def test_intervals_hold_through_casts(kernel: Kernel, seed: int) -> None:
    arrays = interpret(kernel, random_inputs(kernel, seed=seed))
    known = intervals_before(kernel, len(kernel.statements))
    for name, array in arrays.items():
        interval = known.get(name, full(kernel.buffer(name).dtype))
        assert interval.low <= int(array.min())
        assert int(array.max()) <= interval.high


@given(st.sampled_from(NARROW), st.integers(-(2**17), 2**17), st.integers(0, 300))
def test_wrapping_an_interval_holds_all_wrapped_numbers(dtype: DType, low: int, size: int) -> None:
    found = wrapped(Interval(low, low + size), dtype)
    width = 1 << dtype.bits
    values = [(n - dtype.lowest) % width + dtype.lowest for n in range(low, low + size + 1)]
    assert found.fits(dtype)
    assert found.low <= min(values)
    assert max(values) <= found.high
    if max(values) - min(values) == size:
        assert found == Interval(min(values), max(values))


def kernel_of(text: str) -> Kernel:
    return parse_module(text).kernels[0]


def test_declared_values_bound_products_and_sums() -> None:
    kernel = kernel_of("""kernel k {
      in A : u8[4, 8] values 0 .. 15
      in B : s8[8] values -8 .. 7
      local S : s32[4]
      out Y : s8[4]
      S[i] += s32(A[i, k]) * s32(B[k])
      Y[i] = sat[s8](S[i])
    }""")
    known = intervals_before(kernel, 1)
    assert known["S"] == Interval(-960, 840)
    product = kernel.statements[0].value
    assert interval_of(product, kernel.statements[0], known) == Interval(-120, 105)
    sat = kernel.statements[1].value
    assert exact_interval_of(sat, kernel.statements[1], known) == Interval(-128, 127)


def test_padding_belongs_to_what_is_read() -> None:
    kernel = kernel_of("""kernel k {
      in A : s8[4] pad -7 values 0 .. 1
      out Y : s8[4]
      Y[i] = A[i + 1]
    }""")
    assert intervals_before(kernel, 0)["A"] == Interval(-7, 1)


def test_elements_that_a_sum_does_not_reach_hold_its_identity() -> None:
    kernel = kernel_of("""kernel k {
      in A : s8[2] values 3 .. 4
      local T : s8[4]
      out Y : s8[4]
      T[2*i] += A[i]
      Y[i] = T[i]
    }""")
    known = intervals_before(kernel, 1)["T"]
    array = interpret(kernel, random_inputs(kernel))["Y"]
    assert known.low <= array.min()
    assert array.max() <= known.high
    assert 0 in array
    assert known.low == 0


def test_a_sum_over_a_symbol_may_be_anything() -> None:
    kernel = kernel_of("""kernel k(K) {
      in A : s8[K] values 0 .. 1
      out Y : s32[]
      Y[] += s32(A[k])
    }""")
    assert intervals_before(kernel, 1)["Y"] == full(DTYPES["s32"])
    assert np.iinfo(np.int32).max == full(DTYPES["s32"]).high


def test_sums_that_wrap_on_the_way_are_those_that_do_not() -> None:
    kernel = kernel_of("""kernel k {
      in A : s8[8] values -64 .. 63
      out Y : u8[8]
      Y[i] = u8(A[i]) + 128
    }""")
    assert intervals_before(kernel, 1)["Y"] == Interval(64, 191)
