"""Every template that this CPU can run does what its statement says, bit for bit."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.hw.shipped import shipped_names
from isamap.targets.probe.probe import probe

SETS = max(100, settings().max_examples * 2)
"""Operand sets of each instruction: a few here, 10 000 in the command and in the deep profile."""

WARNINGS = ("-Wall", "-Wextra", "-Werror")


def native_names() -> list[str]:
    """Return the shipped descriptions whose code this CPU might run itself."""
    machines = {name: load_hardware(name) for name in shipped_names()}
    return [
        name
        for name, machine in machines.items()
        if machine.toolchain is not None
        and not machine.toolchain.runner
        and not machine.scratchpads
    ]


def strict(machine: Accelerator) -> Accelerator:
    """Return a machine whose compiler takes warnings for errors."""
    assert machine.toolchain is not None
    flags = (*machine.toolchain.flags, *WARNINGS)
    return replace(machine, toolchain=replace(machine.toolchain, flags=flags))


def check_templates(machine: Accelerator, names: list[str], folder: Path) -> None:
    if reason := runnable(machine):
        pytest.skip(f"{machine.name} cannot run here: {reason}")
    findings = probe(strict(machine), names, SETS, folder=folder)
    wrong = [f"{f.name}: {f.status}\n{f.text}" for f in findings if f.status != "right"]
    assert not wrong, f"{len(wrong)} of {len(names)}:\n" + "\n".join(wrong[:20])
    assert all(f.sets >= SETS for f in findings)


@pytest.mark.parametrize("name", native_names())
def test_templates_do_what_their_statements_say(name: str, tmp_path: Path) -> None:
    machine = load_hardware(name)
    names = [entry.name for entry in machine.own_entries]
    assert names
    check_templates(machine, names, tmp_path)


def test_the_documented_example_does_what_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text(encoding="utf-8")
    (example, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "sse.yaml").write_text(example, encoding="utf-8")
    machine = load_hardware(str(tmp_path / "sse.yaml"), trust=True)
    assert machine.entry("c_add_f32").emit == "{r} = {a} + {b};"
    names = [entry.name for entry in machine.own_entries]
    assert len(names) >= 7
    check_templates(machine, names, tmp_path)
