"""Loads and stores of every second, third or fourth element, and of groups in rows."""

from collections.abc import Set
from typing import Any

import numpy as np
import pytest

import isamap
from isamap.hw.native import runnable
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.text.load import parse_module

TEXT = """kernel pool {{
  in X : s32[2, {wide}, {wide}]  out Z : s32[2, {size}, {size}]
  Z[c, p, q] max= X[c, 2*p + r, 2*q + s]
  for r in 0..3  for s in 0..3 }}"""

MAXIMA = """kernel maxima {{
  in X : {dtype}[{size}, {apart}]  out Z : {dtype}[{size}]
  Z[n] max= X[n, k] }}"""
WOVEN = """kernel woven {{
  in A : {dtype}[{size}]  in B : {dtype}[{size}]  out Z : {dtype}[{size}, 2]
  Z[n, 0] = A[n]
  Z[n, 1] = max(A[n], B[n]) }}"""
TURNED = """kernel turned {{
  in X : {dtype}[{size}, 37]  out Z : {dtype}[37, {size}]
  Z[j, i] = X[i, j] }}"""
SIZES = [7, 33, 129]


@pytest.mark.parametrize("name", ["x86_avx2", "x86_avx512"])
@pytest.mark.parametrize("size", [1, 5, 8, 9, 16, 23])
def test_pools_of_stride_two_take_them_and_are_right(name: str, size: int) -> None:
    instructions = computed(TEXT.format(size=size, wide=2 * size + 1), name, size)
    if size > 4:
        assert any(name.startswith("vevens") for name in instructions)


@pytest.mark.parametrize(
    ("name", "dtype"), [("x86_avx512", "s8"), ("x86_avx512", "u16"), ("x86_avx2", "u8")]
)
@pytest.mark.parametrize("apart", [2, 3, 4, 5])
def test_maxima_of_neighbours_take_what_lies_apart(name: str, dtype: str, apart: int) -> None:
    for size in SIZES:
        instructions = computed(MAXIMA.format(dtype=dtype, size=size, apart=apart), name, size)
        taken = any(name.startswith(("vevens", "vapart")) for name in instructions)
        assert size < 100 or taken == (apart < 5)


@pytest.mark.parametrize("dtype", ["s8", "u16", "s32", "f32", "f64"])
def test_results_that_alternate_are_stored_into_every_second_element(dtype: str) -> None:
    for size in SIZES:
        instructions = computed(WOVEN.format(dtype=dtype, size=size), "x86_avx512", size)
        assert size < 16 or any(name.startswith("vspread") for name in instructions)


@pytest.mark.parametrize("dtype", ["u8", "s16", "s32", "f32"])
def test_what_is_turned_is_woven_from_rows_and_stored_into_rows(dtype: str) -> None:
    for size in (5, 33):
        instructions = computed(TURNED.format(dtype=dtype, size=size), "x86_avx512", size)
        for stem in ("vweave", "vscatter"):
            assert any(name.startswith(stem) for name in instructions), size


def computed(text: str, name: str, seed: int) -> Set[str]:
    """Return the instructions of a kernel's code, whose results are right if this CPU runs it."""
    kernel = parse_module(text).kernels[0]
    machine = isamap.load_hardware(name)
    made = isamap.map(kernel, machine, isamap.Options(prove=False))
    if runnable(machine) is None:
        arrays = random_inputs(kernel, {}, seed)
        call: Any = made.compile()
        got = call(**arrays)
        found = got["Z"] if isinstance(got, dict) else got
        assert np.array_equal(found, interpret(kernel, arrays)["Z"])
    return made.estimate.instructions.keys()
