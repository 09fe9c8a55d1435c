"""Blocks of element-wise statements walk no more pages side by side than hardware follows."""

from math import prod

import pytest

from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.streams import Walks
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, machine

STREAMS = 32
"""Walks that the second cache of x86_avx512 follows."""

CHAIN = """kernel chain(R = {rows}, C = {columns}) {{
  in X : f32[R, C]  const A : f32[C]  const B : f32[C]  local T : f32[R, C]  out Y : f32[R, C]
  T[r, c] = X[r, c] * A[c] + B[c]
  Y[r, c] = max(T[r, c], 0)
}}"""


def chain(rows: int, columns: int) -> Kernel:
    text = CHAIN.format(rows=rows, columns=columns)
    return parse_module(text, "test.ir").kernels[0]


def rows_of_a_block(kernel: Kernel) -> int:
    own = map_kernel(kernel, machine("x86_avx512"), Options()).schedule.statements[0]
    steps = {level.variable: level.step for level in own.levels}
    return steps.get("r", kernel.buffers[0].shape[0].constant or 0)


@pytest.mark.parametrize("columns", [1024, 1000, 5000])
def test_long_rows_are_walked_a_few_at_a_time(columns: int) -> None:
    # Two arrays of rows; as rows share their factors, more of them would take fewer loads.
    near = columns * 4 < 4096
    rows = rows_of_a_block(chain(512, columns))
    assert (2 * rows > STREAMS) == near


def test_rows_within_a_page_are_one_walk() -> None:
    assert 2 * rows_of_a_block(chain(512, 64)) > STREAMS


def test_a_block_is_judged_by_all_that_it_walks() -> None:
    both = Walks(((("r", 1),), (("r", 1), ("s", 1))), followed=32)
    assert not both.too_many({"r": 16, "s": 1, "c": 8})
    assert both.too_many({"r": 17, "s": 1, "c": 1})
    assert both.too_many({"r": 4, "s": 8, "c": 1})
    assert not Walks((), 32).too_many({"r": prod(range(1, 5)), "c": 9})


def test_rows_of_a_tile_are_walked_each() -> None:
    tiles = Walks(((("r", 16),),), followed=32)
    assert not tiles.too_many({"r": 2})
    assert tiles.too_many({"r": 3})
    # One tile is the least: there is no block of fewer pages.
    assert not Walks(((("r", 64),),), followed=32).too_many({"r": 1})


def test_the_result_is_the_same() -> None:
    kernel = chain(33, 1040)
    lowered = map_kernel(kernel, machine("x86_avx512"), Options()).lowered
    agrees(kernel, lowered, machine("x86_avx512"), 1)
