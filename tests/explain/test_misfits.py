"""Hand-made misfits: the explanation names the real cause, and what it suggests works."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap.explain.explain import explain
from isamap.explain.explanation import Change
from isamap.hw.accelerator import Accelerator
from isamap.mapping.needles.needles import covered, needles
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.source import load_hardware, load_kernel

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import Golden

HERE = Path(__file__).parent / "misfits"
NAMES = sorted(path.stem for path in HERE.glob("*.ir"))
# What each change must be, in the order told; none: nothing that was tried helps.
HELPED = {
    "assignment": 0,
    "constants_only": 0,
    "fixed_axis": 0,
    "loud_padding": 0,
    "machine_state": 0,
    "missing_movement": 0,
    "not_a_constant": 0,
    "one_register": 0,
    "two_places": 0,
    "used_twice": 0,
}


def command(name: str) -> list[str]:
    """Return the command in the second line of a misfit."""
    line = (HERE / f"{name}.ir").read_text(encoding="utf-8").splitlines()[1]
    return line.removeprefix("# isamap ").split()


def alone(machine: Accelerator, instruction: str) -> Accelerator:
    """Return the machine with one instruction that computes; the movements stay."""
    index = needles(machine)
    kept = tuple(
        entry
        for entry in machine.entries
        if entry.name == instruction
        or not any(covered(needle) for needle in index.readings(entry).needles)
    )
    return replace(machine, entries=kept)


def suggested(name: str) -> tuple[str, Accelerator, tuple[Change, ...]]:
    kernel = load_kernel(HERE / f"{name}.ir")
    machine = load_hardware(HERE / f"{name}.yaml")
    instruction = command(name)[-1]
    (statement,) = explain(kernel, machine, instruction)
    (explanation,) = statement.instructions
    return instruction, machine, explanation.changes


def test_there_are_enough() -> None:
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_explanation_is_the_golden_one(
    name: str, isamap: "Run", golden: "Golden", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    done = isamap(*command(name))
    assert "error" not in done.err
    golden(HERE / f"{name}.expect", f"{done.out}--- exit {done.code}\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_change_runs_right(name: str) -> None:
    instruction, machine, changes = suggested(name)
    assert bool(changes) == (HELPED.get(name, 1) > 0)
    for change in changes:
        assert not change.rest
        report = make_report(change.kernel, alone(machine, instruction), Options(simulate=True))
        used = [s.mapping.matching.needle.name for s in report.result.schedule.statements]
        assert instruction in used
        assert report.check is not None
        assert report.check.ok
