from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import ToolError
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import var
from isamap.run.build import build_program
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from tests.emit.building import MACHINE, compiled, emitted
from tests.emit.machines import machine
from tests.emit.samples import Sample, failing, gemm, increment, indices, reversal, scalars

TOOLS = MACHINE.toolchain


def outcome(
    made: Sample, arrays: dict[str, np.ndarray], symbols: dict[str, int], threads: int = 1
) -> dict[str, np.ndarray] | Crash:
    source = emitted(made)
    return run_program(build_program(source, MACHINE), source, MACHINE, arrays, symbols, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_computes_what_the_library_computes(threads: int) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((30, 41), np.float32), rng.random((41, 55), np.float32)
    got = outcome(gemm(parallel=True), {"A": a, "B": b}, {"M": 30, "N": 55, "K": 41}, threads)
    assert not isinstance(got, Crash)
    np.testing.assert_array_equal(got["C"], compiled(gemm(parallel=True))(a, b)["C"])


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_passes_through_the_pipes(name: str) -> None:
    x = np.array([1]).astype(DTYPES[name].numpy)
    got = outcome(scalars(name, "true" if name == "bool" else "1"), {"X": x}, {})
    assert not isinstance(got, Crash)
    assert got["Y"].dtype == x.dtype
    np.testing.assert_array_equal(got["Y"], np.concatenate([x, x]))


def test_arrays_longer_than_a_pipe_come_through() -> None:
    x = np.arange(9 * 300_000, dtype=np.int32).reshape(9, 300_000)
    got = outcome(reversal(), {"X": x[:, ::-1]}, {"N": 300_000}, 2)
    assert not isinstance(got, Crash)
    np.testing.assert_array_equal(got["Y"], x)


def test_inout_arrays_go_both_ways() -> None:
    got = outcome(increment(), {"Z": np.array([41], np.int64)}, {})
    assert not isinstance(got, Crash)
    assert got["Z"].tolist() == [42]


def test_a_crash_is_reported() -> None:
    got = outcome(failing("crash"), {"X": np.array([1], np.int64)}, {})
    assert isinstance(got, Crash)
    assert (got.kind, got.signal) == ("crash", "SIGSEGV")
    assert got.command.endswith("crash.run")


def test_a_program_that_does_not_end_is_stopped() -> None:
    source = emitted(failing("hang"))
    path = build_program(source, MACHINE)
    got = run_program(path, source, MACHINE, {"X": np.array([1], np.int64)}, {}, seconds=0.3)
    assert isinstance(got, Crash)
    assert got.kind == "timeout"


def test_a_violated_requirement_is_told_in_words() -> None:
    made = indices((var("M"),), (1, 1), requires=(3 - var("M"),))
    got = outcome(made, {"T": np.zeros(4, np.int32)}, {"M": 4})
    assert isinstance(got, Crash)
    assert (got.kind, got.detail) == ("refused", "'-M + 3 >= 0' does not hold")


def with_runner(*runner: str, trusted: bool = True) -> Accelerator:
    assert TOOLS is not None
    return replace(machine(trusted), toolchain=replace(TOOLS, runner=runner))


def test_the_runner_stands_before_the_program() -> None:
    made = increment()
    source, through = emitted(made), with_runner("env", "--", "nice")
    path = build_program(source, MACHINE)
    got = run_program(path, source, through, {"Z": np.array([1], np.int64)}, {})
    assert not isinstance(got, Crash)
    assert got["Z"].tolist() == [2]


@pytest.mark.parametrize(
    ("field", "place"),
    [("runner: [sh, -c, exit 3]", "mine.yaml:5:11"), ("seconds: 9", None)],
)
def test_what_a_runner_ends_with_is_told_where_it_is_named(
    field: str, place: str | None, tmp_path: Path
) -> None:
    text = f"format: 1\nname: mine\nextends: portable_c\ntoolchain:\n  {field}\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    hardware = load_hardware(str(tmp_path / "mine.yaml"), trust=True)
    source = emitted(increment())
    path = build_program(source, hardware)
    got = run_program(path, source, hardware, {"Z": np.array([41], np.int64)}, {})
    assert isinstance(got, Crash) == (place is not None)
    if isinstance(got, Crash):
        assert f"{place}: error[E506]" in str(ToolError(got.diagnostic))


def test_a_missing_runner_is_named() -> None:
    source = emitted(increment())
    path = build_program(source, MACHINE)
    with pytest.raises(ToolError, match=r"E511.*no-such-emulator(.|\n)*runner"):
        run_program(
            path, source, with_runner("no-such-emulator"), {"Z": np.array([1], np.int64)}, {}
        )


def test_a_runner_of_an_untrusted_description_is_not_started(tmp_path: Path) -> None:
    source = emitted(increment())
    path = build_program(source, MACHINE)
    wary = with_runner("touch", str(tmp_path / "executed"), trusted=False)
    with pytest.raises(ToolError, match="--trust"):
        run_program(path, source, wary, {"Z": np.array([1], np.int64)}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("runner", ["true", "false", "echo"])
def test_a_runner_that_does_something_else_is_reported(runner: str) -> None:
    source = emitted(increment())
    path = build_program(source, MACHINE)
    got = run_program(path, source, with_runner(runner), {"Z": np.array([1], np.int64)}, {})
    assert isinstance(got, Crash)
    assert got.kind == "crash"


@pytest.mark.parametrize("name", ["result", "magic", "bytes", "put", "get", "x"])
def test_a_kernel_may_have_any_name(name: str) -> None:
    made = increment()
    renamed = replace(made.lowered, name=name)
    source = emit_c(renamed, MACHINE, made.kernel)
    got = run_program(
        build_program(source, MACHINE), source, MACHINE, {"Z": np.array([1], np.int64)}, {}
    )
    assert not isinstance(got, Crash)
    assert got["Z"].tolist() == [2]
