"""A runner for CPUs that lack features: where it is used, and which description inherits it."""

from pathlib import Path

import pytest

from isamap.diagnostics import HardwareError
from isamap.hw import native
from isamap.hw.load import load_hardware

BASE = """\
format: 1
name: base
extends: portable_c
features: [one, two]
toolchain:
  program: [-plain]
  emulator: {program: [-static], runner: [emulate, model]}
"""
CHILD = """\
format: 1
name: child
extends: base.yaml
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : one three\n")
    monkeypatch.setattr(native, "_CPUINFO", cpuinfo)
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def made(folder: Path, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return how a description's programs are linked and run."""
    (folder / "child.yaml").write_text(text)
    toolchain = load_hardware(str(folder / "child.yaml")).toolchain
    assert toolchain is not None
    return toolchain.program, toolchain.runner


def test_the_emulator_runs_what_the_cpu_cannot(folder: Path) -> None:
    assert made(folder, CHILD) == (("-static",), ("emulate", "model"))
    machine = load_hardware(str(folder / "child.yaml"))
    assert native.runnable(machine) == (
        "this CPU lacks two, and the runner 'emulate' is not installed"
    )


def test_a_cpu_with_all_features_runs_the_code_itself(folder: Path) -> None:
    (folder / "cpuinfo").write_text("flags : one two three\n")
    assert made(folder, CHILD) == (("-plain",), ())


def test_without_flags_of_its_own_programs_are_made_as_always(folder: Path) -> None:
    (folder / "base.yaml").write_text(BASE.replace("program: [-static], ", ""))
    assert made(folder, CHILD) == (("-plain",), ("emulate", "model"))


@pytest.mark.parametrize(
    "more",
    [
        "features: [three]\n",
        "toolchain: {compiler: [other]}\n",
        "toolchain: {runner: []}\n",
    ],
)
def test_what_the_emulator_may_not_know_does_not_inherit_it(folder: Path, more: str) -> None:
    assert made(folder, CHILD + more)[1] == ()


def test_an_own_emulator_is_the_nearest(folder: Path) -> None:
    more = "features: [three]\ntoolchain: {emulator: {runner: [other]}}\n"
    assert made(folder, CHILD + more) == (("-plain",), ("other",))


def test_a_runner_leaves_nothing_to_an_emulator(folder: Path) -> None:
    with pytest.raises(HardwareError, match=r"child\.yaml:4:\d+: error\[E135\]: 'emulator' beside"):
        made(folder, CHILD + "toolchain: {runner: [always], emulator: {runner: [other]}}\n")
