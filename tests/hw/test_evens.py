"""Loads of every second element, where neighbours along an axis are two apart."""

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


@pytest.mark.parametrize("name", ["x86_avx2", "x86_avx512"])
@pytest.mark.parametrize("size", [1, 5, 8, 9, 16, 23])
def test_pools_of_stride_two_take_them_and_are_right(name: str, size: int) -> None:
    kernel = parse_module(TEXT.format(size=size, wide=2 * size + 1)).kernels[0]
    machine = isamap.load_hardware(name)
    made = isamap.map(kernel, machine, isamap.Options(prove=False))
    if size > 4:
        assert any(name.startswith("vevens") for name in made.estimate.instructions)
    if runnable(machine) is not None:
        pytest.skip("this CPU lacks the instructions")
    arrays = random_inputs(kernel, {}, size)
    call: Any = made.compile()
    got = call(**arrays)
    found = got["Z"] if isinstance(got, dict) else got
    assert np.array_equal(found, interpret(kernel, arrays)["Z"])
