"""How far apart rows of padded copies begin."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError, Source
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.schedule.pitches import spread_rows
from isamap.schedule.reader import parse_schedule, read_schedule
from isamap.schedule.schedule import Schedule
from isamap.schedule.space import space
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, machine


def rows(width: int) -> Kernel:
    """A window that leaves its input on both sides, by vectors along the rows."""
    text = f"""kernel rows(C = 3, H = 5, W = {width}) {{
      in X : f32[C, H, W] pad 0  in F : f32[C, 3]  out Y : f32[C, H, W]
      Y[c, h, w] += X[c, h, w + s - 1] * F[c, s]
    }}"""
    return parse_module(text).kernels[0]


def written(kernel: Kernel, clause: str, hardware: str = "x86_avx512") -> Result:
    text = f"schedule rows {{ Y {{ {clause} }} }}"
    schedule = parse_schedule(Source("test.schedule", text))
    return map_kernel(kernel, machine(hardware), Options(schedule=schedule))


def sizes(result: Result) -> dict[str, int]:
    return {array.name: int(array.size.constant or 0) for array in result.lowered.arrays}


@pytest.mark.parametrize(
    ("length", "width", "pitch"),
    [
        (1024, 4, 1040),  # rows of 4 KiB, all in one set
        (256, 4, 272),  # rows of 1 KiB, in four
        (64, 4, 80),  # rows of 256 bytes, in sixteen of 64
        (48, 4, 0),
        (1025, 4, 0),
        (1024, 1, 1088),
        (2048, 2, 2080),
    ],
)
def test_rows_that_fall_into_few_sets_begin_a_line_further_apart(
    length: int, width: int, pitch: int
) -> None:
    assert spread_rows(length, width, machine("x86_avx512")) == pitch


def test_a_machine_without_sets_has_rows_that_follow_each_other() -> None:
    assert spread_rows(1024, 4, machine("gemm16")) == 0


@pytest.mark.parametrize("hardware", ["x86_avx512", "x86_avx2", "portable_c"])
@pytest.mark.parametrize("pitch", [27, 32, 101])
def test_a_pitch_changes_where_rows_lie_and_nothing_else(hardware: str, pitch: int) -> None:
    kernel = rows(25)
    dense = written(kernel, "operands X padded, F direct", hardware)
    apart = written(kernel, f"operands X padded pitch {pitch}, F direct", hardware)
    (name,) = [name for name in sizes(apart) if name.endswith("_padded")]
    assert sizes(apart)[name] - sizes(dense)[name] >= 3 * 5 * (pitch - 27)
    agrees(kernel, apart.lowered, machine(hardware), 1)


def test_a_pitch_is_written_and_read_again(tmp_path: Path) -> None:
    kernel = rows(25)
    first = written(kernel, "operands X padded pitch 40, F direct")
    text = schedule_text(first)
    assert "padded pitch 40" in text
    (tmp_path / "s").write_text(text)
    again = map_kernel(
        kernel, machine("x86_avx512"), Options(schedule=read_schedule(tmp_path / "s"))
    )
    assert again.schedule == first.schedule
    assert again.lowered == first.lowered


@pytest.mark.parametrize(("width", "pitch"), [(62, 80), (60, 0)])
def test_padded_rows_lie_by_the_rule_or_as_is_said(width: int, pitch: int) -> None:
    kernel = rows(width)
    ruled = map_kernel(kernel, machine("x86_avx2"), Options())
    (own,) = ruled.schedule.statements
    assert own.operands[0] == "padded"
    assert own.pitch(0) == pitch
    agrees(kernel, ruled.lowered, machine("x86_avx2"), 2)
    said = written(kernel, "operands X padded", "x86_avx2")
    assert not said.schedule.statements[0].pitches


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("operands X padded pitch 26", "the pitch 26 is too small"),
        ("operands X direct pitch 32", "what is direct has no pitch"),
    ],
)
def test_a_pitch_that_cannot_be_is_told(clause: str, told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        written(rows(25), clause)


def test_code_cannot_be_made_with_rows_that_overlap() -> None:
    kernel = rows(25)
    result = written(kernel, "operands X padded pitch 40, F direct")
    (own,) = result.schedule.statements
    wrong = Schedule((replace(own, pitches=(20, 0)),))
    with pytest.raises(ScheduleError, match="longer than 20"):
        lower(kernel, machine("x86_avx512"), wrong, Producers(machine("x86_avx512")))


@pytest.mark.parametrize("clause", ["padded pitch 300", "padded"])
def test_a_search_begins_with_the_pitch_that_is_written(clause: str) -> None:
    kernel, hardware = rows(254), machine("x86_avx2")
    schedule = written(kernel, f"operands X {clause}", "x86_avx2").schedule
    points = space(
        hardware,
        bind_extents(kernel),
        (schedule.statements,),
        Producers(hardware),
        like=schedule,
        written=True,
    )
    assert points.build(points.first) == schedule
