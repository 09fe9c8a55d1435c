"""Blocks of element-wise statements walk no more pages side by side than hardware follows."""

from math import prod

import pytest

from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.schedule import Level
from isamap.schedule.streams import Walks
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, machine

STREAMS = 24
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


@pytest.mark.parametrize("columns", [5000, 9000])
def test_long_rows_are_walked_a_few_at_a_time(columns: int) -> None:
    # Two arrays of rows; as rows share their factors, more of them would take fewer loads.
    rows = rows_of_a_block(chain(4096, columns))
    assert 2 < 2 * rows <= STREAMS


@pytest.mark.parametrize("columns", [256, 1000, 2048])
def test_short_rows_from_far_away_are_walked_one_after_the_other(columns: int) -> None:
    assert rows_of_a_block(chain(1 << 14, columns)) == 1


def test_short_rows_that_are_near_share_what_they_read() -> None:
    assert 2 * rows_of_a_block(chain(512, 64)) > STREAMS


@pytest.mark.parametrize(("rows", "lanes"), [(1 << 14, 64), (8, 16)])
def test_rows_of_a_sum_are_walked_side_by_side_where_they_are_near(rows: int, lanes: int) -> None:
    text = f"""kernel sums permit reassociate {{
      in X : f32[{rows}, 1024]  out Y : f32[{rows}]
      Y[r] += X[r, c]
    }}"""
    kernel = parse_module(text, "test.ir").kernels[0]
    parts = map_kernel(kernel, machine("x86_avx512"), Options()).schedule.statements[0]
    variables = {v.name: v.extent.constant for v in parts.mapping.matching.statement.variables}
    steps = {level.variable: level.step for level in parts.levels}
    assert variables["c_lane"] == lanes
    assert (steps.get("r", rows) == 1) == (lanes == 64)


def test_a_statement_is_judged_as_part_of_a_kernel() -> None:
    # The input is half of what the third cache holds, and the result is the other half.
    text = """kernel softmax permit reassociate, approximate(1.2e-7) {
      in X : f32[4096, 1000]  local M : f32[4096]  local E : f32[4096, 1000]
      local S : f32[4096]  out Y : f32[4096, 1000]
      M[r] max= X[r, c]
      E[r, c] = exp(X[r, c] - M[r])
      S[r] += E[r, c]
      Y[r, c] = E[r, c] / S[r]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    schedule = map_kernel(kernel, machine("x86_avx512"), Options()).schedule
    assert {own.levels[0] for own in schedule.statements} == {Level("r", 1)}


def test_where_nothing_is_reduced_loops_go_along_the_target() -> None:
    text = """kernel turned(R = 700, C = 900) {
      in X : f32[R, C]  in F : f32[C]  out Y : f32[R, C]
      Y[r, c] = X[r, c] * F[c]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    own = map_kernel(kernel, machine("x86_avx512"), Options()).schedule.statements[0]
    assert [level.variable for level in own.levels] == ["r", "c"]


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
