import time
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ToolError
from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.run.build import build_program, build_shared
from isamap.run.callable import Compiled
from isamap.run.process import run_limited
from tests.emit.building import MACHINE, emitted
from tests.emit.machines import machine
from tests.emit.samples import failing, gemm


def source_of(instruction: str) -> CSource:
    made = failing(instruction)
    return emit_c(made.lowered, MACHINE, made.kernel)


@pytest.mark.parametrize("build", [build_shared, build_program])
def test_an_untrusted_description_is_not_executed(build: object, tmp_path: Path) -> None:
    untrusted = machine(trusted=False, compiler=["touch", str(tmp_path / "executed")])
    assert callable(build)
    with pytest.raises(ToolError, match=r"E501.*toy is not trusted(.|\n)*--trust"):
        build(emitted(gemm()), untrusted, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_description_without_toolchain_cannot_be_compiled_for() -> None:
    with pytest.raises(ToolError, match=r"E502.*no toolchain"):
        build_shared(emitted(gemm()), replace(MACHINE, toolchain=None))


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"E503.*no-such-compiler: No such file") as caught:
        build_shared(emitted(gemm()), machine(compiler=["no-such-compiler"]), tmp_path)
    assert caught.value.exit_code == 5


def test_a_slow_compiler_is_stopped_with_its_children(tmp_path: Path) -> None:
    # The shell stands for a driver that waits for a pass of its own.
    slow = machine(compiler=["sh", "-c", "sleep 60; true"])
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"E504.*longer than 0.3 s(.|\n)*to repeat: sh -c"):
        build_shared(emitted(gemm()), slow, tmp_path, timeout=0.3)
    assert time.monotonic() - start < 10


def test_what_the_compiler_says_is_told_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"E505(.|\n)*this is no C(.|\n)*to repeat: gcc") as caught:
        build_shared(source_of("broken"), MACHINE, tmp_path)
    # The command repeats the failure.
    hint = caught.value.diagnostics[0].hint
    assert hint is not None
    again = run_limited(["sh", "-c", hint.removeprefix("to repeat: ")], 60)
    assert again.code == 1
    assert "this is no C" in again.stderr


def test_an_error_is_told_whatever_was_told_before(tmp_path: Path) -> None:
    says = "for n in $(seq 90); do echo remark $n; done; echo x.c:1: error: no; seq 50"
    told = machine(compiler=["sh", "-c", f"({says}) >&2; false"])
    with pytest.raises(ToolError, match="E505") as caught:
        build_shared(emitted(gemm()), told, tmp_path)
    lines = str(caught.value).splitlines()
    first = next(n for n, line in enumerate(lines) if "error: no" in line)
    assert lines[first - 2].endswith("refuses the emitted C: 89 lines, and then")
    assert [line.strip() for line in lines[first - 1 : first + 2]] == [
        "remark 90",
        "x.c:1: error: no",
        "1",
    ]
    assert "... and 22 more lines" in str(caught.value)


def test_the_same_text_is_compiled_once(tmp_path: Path) -> None:
    first = build_shared(emitted(gemm()), MACHINE, tmp_path)
    made = first.stat().st_mtime_ns
    assert build_shared(emitted(gemm()), MACHINE, tmp_path) == first
    assert first.stat().st_mtime_ns == made
    assert build_shared(emitted(gemm(parallel=True)), MACHINE, tmp_path) != first


def test_no_argument_reaches_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "a; touch evil; $(touch evil) 'b'"
    built = build_shared(emitted(gemm()), MACHINE, folder)
    assert Compiled(emitted(gemm()), built).path == built
    assert [p.name for p in tmp_path.iterdir()] == [folder.name]


def test_a_file_that_is_no_library_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "gemm.so"
    path.write_bytes(b"no library")
    with pytest.raises(ToolError, match=r"E510.*cannot load"):
        Compiled(emitted(gemm()), path)
