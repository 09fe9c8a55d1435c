"""What emulators and compilers tell of a program, counted."""

from pathlib import Path

import pytest

from isamap.diagnostics import ToolError
from isamap.hw.catalogue import Executed, catalogue
from isamap.hw.load import load_hardware
from isamap.targets.count import _read, innermost_loops, way_to_count

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


def test_what_runs_here_without_an_emulator_is_not_counted() -> None:
    machine = load_hardware("portable_c")
    assert way_to_count(machine) is None
