"""Statements whose blocks have all of a variable get a loop over it, to share rounds."""

from dataclasses import replace

from isamap.ir.statements import bind_extents
from isamap.lower.judge import Judge
from isamap.lower.looped import Looped
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module

LARGEST = """
kernel largest(H = 8, R = 511) {
  in P : f32[H, R, 31, 16]    local M : f32[H, R, 16]    out Y : f32[H, R, 31, 16]
  M[h, i, l] max= P[h, i, j, l]
  Y[h, i, j, l] = P[h, i, j, l] - M[h, i, l]
}
"""


def mapped(text: str = LARGEST) -> Result:
    machine = load_hardware("x86_avx512_zen4")
    return map_kernel(parse_module(text).kernels[0], machine, Options(rewrite=(), prove=False))


def test_a_block_that_has_all_of_a_variable_leaves_it_to_a_loop() -> None:
    alone = LARGEST.replace("local M", "out M").replace("    out Y : f32[H, R, 31, 16]", "")
    (whole,) = mapped(alone[: alone.index("  Y[")] + "}").schedule.statements
    assert "h" not in {level.variable for level in whole.levels}

    result = mapped()
    first, second = result.schedule.statements
    assert second.along == 0
    assert first.levels[0].variable == second.levels[0].variable == "h"
    assert first.mapping == whole.mapping


def test_what_has_a_loop_keeps_it_and_is_found_once() -> None:
    result = mapped()
    plain = result.schedule.with_statement(1, replace(result.schedule.statements[1], along=None))
    looped = Looped(
        bind_extents(result.mapped), Judge(result.accelerator, Producers(result.accelerator))
    )
    assert looped.over(plain, [0, 1]) == plain
    levels = tuple(level for level in plain.statements[0].levels if level.variable != "h")
    blocked = plain.with_statement(0, replace(plain.statements[0], levels=levels))
    found = looped.over(blocked, [0, 1]).statements[0]
    assert {level.step for level in found.levels if level.variable == "h"} == {1}
    assert looped.over(blocked, [0, 1]).statements[0] is found
