"""The measuring commands in examples/board, executed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.hw.tools import find_tool
from isamap.ir.nodes import Kernel
from isamap.pipeline.measured import measure_schedules
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.run.process import run_limited
from isamap.text.load import parse_module

BOARD = Path(__file__).parents[2] / "examples" / "board"
KERNEL = parse_module(
    "kernel mm(M = 17, N = 33, K = 9) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N]"
    " C[m, n] += A[m, k] * B[k, n] }"
).kernels[0]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def reported(name: str, kernel: Kernel = KERNEL) -> Report:
    machine = load_hardware(str(BOARD / f"{name}.yaml"), trust=True)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: isamap targets install")
    return make_report(kernel, machine, Options(prove=False))


def counted(report: Report) -> float:
    assert report.fault is None, report.fault
    assert report.execution.way == "measured"
    assert report.check is not None
    assert report.check.ok, report.check
    assert report.execution.cycles is not None
    return report.execution.cycles


def test_instructions_are_counted_by_qemu() -> None:
    if find_tool("qemu-riscv64") is None:
        pytest.skip("no qemu-riscv64: isamap targets install riscv_rvv")
    cycles = counted(reported("rvv_instructions"))
    # Eight lanes: a step of k computes 33 columns in five instructions, and loads what they read.
    assert 17 * 9 * 33 / 8 < cycles < 17 * 9 * 33
    assert counted(reported("rvv_instructions")) == cycles


def test_schedules_are_ordered_by_counted_instructions() -> None:
    if find_tool("qemu-riscv64") is None:
        pytest.skip("no qemu-riscv64: isamap targets install riscv_rvv")
    machine = load_hardware(str(BOARD / "rvv_instructions.yaml"), trust=True)
    found = measure_schedules(KERNEL, machine, 3, Options())
    assert (found.way, found.fault) == ("measured", None)
    assert len(found.predictions) == 3
    assert all(own.bound is not None and own.bound <= own.estimate for own in found.predictions)
    assert all(own.measured.is_integer() for own in found.predictions)


@needs_gcc
def test_this_cpu_is_timed() -> None:
    larger = parse_module(
        "kernel mm(M = 96, N = 96, K = 96) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N]"
        " C[m, n] += A[m, k] * B[k, n] }"
    ).kernels[0]
    small, large = counted(reported("this_cpu")), counted(reported("this_cpu", larger))
    # 175 times the work.
    assert 20 < large / small < 2000


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that puts a shell script under a name before everything on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, text: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    return put


def test_over_ssh_copies_runs_and_counts(tmp_path: Path, shims: Callable[[str, str], None]) -> None:
    shims("scp", 'test "$1" = -q && cp "$2" "${3#board:}"')
    shims("ssh", 'test "$1" = -n && shift; test "$1" = board || exit 255; exec sh -c "$2"')
    shims(
        "perf",
        'test "$1 $2 $3 $4 $5" = "stat -x, -e cycles:u -o" || exit 9; to=$6; "$7"; s=$?\n'
        'printf "# started\\n\\n4711,,cycles:u,100,100.00,,\\n" > "$to"; exit $s',
    )
    program, count = tmp_path / "upper.run", tmp_path / "cycles"
    program.write_text('#!/bin/sh\ntr a-z A-Z; test ! -e "$0.stop" || exit 7\n')
    program.chmod(0o755)
    command = ["sh", str(BOARD / "over_ssh.sh"), "board", str(program), str(count)]
    done = run_limited(command, 20.0, b"what comes in")
    assert (done.code, done.stdout, done.stderr) == (0, b"WHAT COMES IN", "")
    assert count.read_text() == "4711\n"
    assert not list(Path("/tmp").glob("isamap.*.upper.run*"))

    program.write_text("#!/bin/sh\nexit 7\n")
    assert run_limited(command, 20.0).code == 7
    assert run_limited([*command[:2], "elsewhere", *command[3:]], 20.0).code != 0


def test_the_readme_shows_the_script() -> None:
    page, script = (BOARD / "README.md").read_text(), (BOARD / "over_ssh.sh").read_text()
    (shown,) = [block for block in page.split("```sh\n")[1:]]
    for line in shown.split("```")[0].splitlines():
        assert line in script.splitlines()


@pytest.mark.parametrize("path", sorted(BOARD.glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_is_executed_without_trust(path: Path) -> None:
    report = make_report(KERNEL, load_hardware(str(path)), Options(prove=False))
    assert report.execution.way == "simulated"
    assert "--trust" in report.execution.hint
