"""Reductions that are cut so that what is read as it lies stays in the first cache."""

from dataclasses import replace

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.near import HELD, SHORTEST, cut_near
from isamap.schedule.schedule import Level, StatementSchedule, Treatment
from isamap.text.load import parse_module

MACHINE = load_hardware("x86_avx2")
FIRST = next(s.size for s in MACHINE.storages if s.kind == "cache") or 0
LOOPS = (Level("j", 16), Level("i", 4), Level("k", 1))


def scheduled(
    rows: int, depth: int, loops: tuple[Level, ...] = LOOPS, treated: Treatment = "direct"
) -> StatementSchedule:
    """Return a schedule of a product in which blocks of 4 rows pass panels of 16 columns."""
    text = f"""kernel product {{
      in A : f32[{rows}, {depth}]
      in B : f32[{depth}, 48]
      out C : f32[{rows}, 48]
      C[i, j] += A[i, k] * B[k, j]
    }}"""
    found = map_kernel(parse_module(text).kernels[0], MACHINE, Options(prove=False, rewrite=()))
    own = found.schedule.statements[0]
    assert own.mapping.tile["j"] == 8
    return replace(own, levels=loops, operands=("direct", treated), early=(), inside=())


def test_a_panel_that_is_passed_again_fits_half_of_the_first_cache() -> None:
    depth = 4 * FIRST // (16 * 4)
    levels = cut_near(scheduled(64, depth), MACHINE)
    assert levels is not None
    # Inside the loop over panels, outside the one that passes them again.
    assert [level.variable for level in levels] == ["j", "k", "i", "k"]
    assert levels[1].step * 16 * 4 == HELD * FIRST


def test_tails_of_results_in_parts_do_not_begin_earlier() -> None:
    loops = (replace(LOOPS[0], overlap=True), *LOOPS[1:])
    levels = cut_near(scheduled(64, 4 * FIRST // (16 * 4), loops), MACHINE)
    assert levels is not None
    assert not any(level.overlap for level in levels)


def test_it_is_cut_outside_all_where_no_loop_moves_it() -> None:
    levels = cut_near(scheduled(64, 4 * FIRST // (16 * 4), LOOPS[1:]), MACHINE)
    assert levels is not None
    assert [level.variable for level in levels] == ["k", "i", "k"]


@pytest.mark.parametrize(
    ("rows", "depth", "loops", "treated"),
    [
        (64, 128, LOOPS, "direct"),  # it is near anyway
        (12, 4096, LOOPS, "direct"),  # it is passed three times
        (64, 4096, LOOPS, "packed"),  # it lies in one piece
        (64, 4096, (Level("k", 512), *LOOPS), "direct"),  # results are in parts already
        (64, 4096, LOOPS[:2], "direct"),  # the reduction has no loop
    ],
)
def test_what_is_left_as_it_is(
    rows: int, depth: int, loops: tuple[Level, ...], treated: Treatment
) -> None:
    assert cut_near(scheduled(rows, depth, loops, treated), MACHINE) is None


def test_results_do_not_come_and_go_for_a_few_iterations() -> None:
    wide = (Level("j", 16), Level("i", 4), Level("k", SHORTEST))
    depth = 4 * FIRST // (16 * 4)
    assert cut_near(scheduled(64, depth, wide), MACHINE) is not None
    assert cut_near(scheduled(64, depth, (*wide[:2], Level("k", depth // 2))), MACHINE) is None
