"""What emulators and compilers tell of a program, counted."""

import platform
from pathlib import Path

import pytest

from isamap.diagnostics import ToolError
from isamap.emit.source import CSource
from isamap.hw.catalogue import Executed, Native, catalogue, native_ways
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.targets.count import (
    Counted,
    Step,
    _read,
    count_instructions,
    innermost_loops,
    on_stack,
    way_to_count,
)
from isamap.targets.native import read_times
from isamap.text.load import parse_module

LOG = """\
----------------
IN: main
0x00000010:  d280001d  bl       f

Trace 0: 0x7efc10600100 [81009331/0000000000000010/00000001/00000201] main
----------------
IN: f
0x00000020:  aa        {  add; sub
0x00000024:  bb           mul }

Trace 0: 0x7efc10600100 [81009331/0000000000000020/00000001/00000201] f
----------------
IN: helper
0x00000030:  cc        ret
Trace 0: 0x7efc10600100 [81009331/0000000000000030/00000001/00000201] helper
Trace 0: 0x7efc10600100 [81009331/0000000000000020/00000001/00000201] f
Trace 0: 0x7efc10600100 [81009331/0000000000000010/00000001/00000201] main
Trace 0: 0x7efc10600100 [81009331/0000000000000030/00000001/00000201] helper
"""


def executed() -> Executed:
    found = catalogue()["qemu-aarch64"].executed
    assert found is not None
    return found


@pytest.mark.parametrize(("packets", "instructions"), [(False, 3), (True, 7)])
def test_a_log_tells_what_a_function_and_its_callees_execute(
    packets: bool, instructions: int, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(LOG)
    counted = _read(tmp_path / "log", "f", executed(), packets)
    assert [(step.address, step.times) for step in counted.steps] == [(0x20, 2), (0x30, 1)]
    assert counted.instructions == instructions
    assert counted.steps[1].text == "cc        ret"


def test_a_log_without_the_function_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    with pytest.raises(ToolError, match="no function g"):
        _read(tmp_path / "log", "g", executed(), False)


def test_innermost_loops_have_none_inside() -> None:
    text = """\
for (a) {
    for (b) {
        x;
    }
    for (c) {
        for (d) {
        }
    }
}
for (e) {
}
"""
    assert innermost_loops(text) == {2, 6, 10}


def test_programs_of_a_machine_that_tells_nothing_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    machine = load_hardware("portable_c")
    assert way_to_count(machine) is None
    with pytest.raises(ToolError, match="counts no instructions"):
        count_instructions(product(8)[0], machine, {})


@pytest.mark.skipif(platform.machine() not in native_ways(), reason="programs tell nothing here")
def test_programs_of_this_machine_are_counted() -> None:
    machine = load_hardware("portable_c")
    counted = [
        count_instructions(source, machine, random_inputs(kernel, {}, 0))
        for source, kernel in (product(8), product(16))
    ]
    short, long = counted
    assert 64 <= short.instructions < long.instructions < 256 * 20
    assert long.steps[-1].address > long.steps[0].address > 0
    assert all(step.text for step in long.steps)
    assert [step.times for step in long.steps if step.text.startswith("ret")] == [1]


def test_what_a_program_does_not_write_is_an_error(tmp_path: Path) -> None:
    way = native_ways()["x86_64"]
    with pytest.raises(ToolError, match="no function f"):
        read_times(tmp_path / "log", "f", way)
    (tmp_path / "log").write_text("1a 3\n1f 12\n")
    assert read_times(tmp_path / "log", "f", way) == {0x1A: 3, 0x1F: 12}


def test_what_is_on_the_stack_is_told() -> None:
    machine = load_hardware("portable_c")
    steps = (Step(0, 1, 10, "add (%rsp),%rax"), Step(4, 1, 9, "mov %rax,8(%rbp,%rcx)"))
    rare = Step(8, 1, 1, "push (%rsp)")
    way = way_to_count(machine)
    told = on_stack(Counted((*steps, rare)), machine)
    assert told == ("2 spills or reloads" if isinstance(way, Native) else None)


def product(size: int) -> tuple[CSource, Kernel]:
    """Return the C of a sum of products of ``size`` squared, and its kernel."""
    text = (
        f"kernel product {{ in A : f32[{size}, {size}]  in B : f32[{size}]  out C : f32[{size}]\n"
        "  C[i] += A[i, k] * B[k] }\n"
    )
    kernel = parse_module(text).kernels[0]
    result = map_kernel(kernel, load_hardware("portable_c"), Options(prove=False))
    assert result.source is not None
    return result.source, result.kernel
