"""Rows that share sets of a cache."""

import pytest

from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.schedule.crowded import Crowding
from isamap.text.load import parse_module


def gemm(rows: int, depth: int) -> Kernel:
    text = (
        f"kernel gemm(M = {rows}, N = 16, K = {depth}) {{ in A : f32[M, K] in B : f32[K, N]"
        " out C : f32[M, N] C[m, n] += A[m, k] * B[k, n] }"
    )
    return parse_module(text).kernels[0]


@pytest.mark.parametrize(("pitch", "pushed"), [(4096, 20), (2048, 20), (1024, 0), (4160, 0)])
def test_lines_in_sets_that_are_too_small_for_them_are_fetched_again(
    pitch: int, pushed: int
) -> None:
    # 20 rows on 1, 2, 4 and 20 of 64 sets of 8 ways.
    crowd = Crowding(((("m", pitch),),), ways=8, way=4096, fetch=1.5)
    assert crowd.cycles({"m": 20, "k": 1}) == 1.5 * pushed
    assert crowd.cycles({"m": 8, "k": 1}) == 0


def test_rows_of_two_variables_are_lines_together() -> None:
    crowd = Crowding(((("m", 4096), ("n", 64)),), ways=4, way=4096, fetch=1.0)
    assert crowd.cycles({"m": 4, "n": 9}) == 0
    assert crowd.cycles({"m": 5, "n": 9}) == 45


@pytest.mark.parametrize(("depth", "most"), [(2048, 11), (1024, 11), (512, 22)])
def test_a_block_of_aliasing_rows_fits_the_sets(depth: int, most: int) -> None:
    machine = load_hardware("x86_avx512")  # all but one of 12 ways
    schedule = map_kernel(gemm(512, depth), machine, Options()).schedule
    (step,) = [level.step for level in schedule.statements[0].levels if level.variable == "m"]
    assert most - 3 <= step <= most


@pytest.mark.parametrize(("depth", "few"), [(1024, True), (1040, False)])
def test_lines_that_come_once_are_fetched_ahead_into_sets_with_room(depth: int, few: bool) -> None:
    text = (
        f"kernel gemv {{ in A : f32[96, {depth}]  in X : f32[{depth}]  out Y : f32[96]"
        "  Y[m] += A[m, k] * X[k] }"
    )
    machine = load_hardware("x86_avx512_zen4")
    schedule = map_kernel(parse_module(text).kernels[0], machine, Options(prove=False)).schedule
    (step,) = [level.step for level in schedule.statements[0].levels if level.variable == "m"]
    assert step <= 8 if few else step > 8


def test_rows_that_do_not_alias_fill_the_registers() -> None:
    machine = load_hardware("x86_avx512")
    schedule = map_kernel(gemm(512, 1760), machine, Options()).schedule
    (step,) = [level.step for level in schedule.statements[0].levels if level.variable == "m"]
    assert step > 20


@pytest.mark.parametrize(("columns", "crowded"), [(4096, True), (4112, False)])
def test_a_block_has_no_more_rows_than_fit_in_one_set(columns: int, crowded: bool) -> None:
    # Rows that are no multiple of the cache's way apart lie in other sets.
    text = (
        f"kernel k {{ in X : f32[512, {columns}] const B : f32[{columns}]"
        f" out Y : f32[512, {columns}] Y[r, c] = X[r, c] + B[c] }}"
    )
    result = map_kernel(parse_module(text).kernels[0], load_hardware("x86_avx2"), Options())
    steps = {level.variable: level.step for level in result.schedule.statements[0].levels}
    assert (steps["r"] <= 4) is crowded
