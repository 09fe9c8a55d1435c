"""Descriptions whose vectors have a chosen length: each length computes, and only where it fits."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.targets.state import emulated
from isamap.text.load import load_module

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "kernels.ir").kernels}
MACHINES = [
    machine
    for machine in (load_hardware(target.name) for target in emulated())
    if any(len(parameter.values) > 1 for parameter in machine.parameters)
]
LENGTHS = [
    f"{machine.name}:{p.name}={value}"
    for machine in MACHINES
    for p in machine.parameters
    for value in p.values
    if value != p.default
]


def there(name: str) -> Accelerator:
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: isamap targets install {name.partition(':')[0]}")
    return machine


def with_runner_of(machine: Accelerator, other: Accelerator) -> Accelerator:
    """Return a machine whose code runs where that of another one does."""
    assert machine.toolchain is not None
    assert other.toolchain is not None
    toolchain = replace(machine.toolchain, runner=other.toolchain.runner)
    return replace(machine, toolchain=toolchain)


def computes(machine: Accelerator, kernel: str) -> None:
    report = make_report(KERNELS[kernel], machine, Options(prove=False))
    assert report.fault is None, report.fault
    assert report.execution.way == "program"
    assert report.check is not None
    assert report.check.ok, report.check


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("kernel", ["gemm_s8", "symbols", "broadcast"])
def test_every_length_computes(name: str, kernel: str) -> None:
    computes(there(name), kernel)


@pytest.mark.parametrize("name", [machine.name for machine in MACHINES])
@pytest.mark.parametrize("kernel", ["gemm_f32", "gemm_s8", "symbols"])
def test_code_of_a_length_is_right_where_vectors_are_longer(name: str, kernel: str) -> None:
    machine = there(name)
    longest = f"{name}:{machine.parameters[0].name}={max(machine.parameters[0].values)}"
    computes(with_runner_of(machine, load_hardware(longest)), kernel)


@pytest.mark.parametrize("name", [machine.name for machine in MACHINES])
def test_where_vectors_are_shorter_code_refuses_to_run(name: str) -> None:
    machine = there(name)
    shortest = f"{name}:{machine.parameters[0].name}={min(machine.parameters[0].values)}"
    assert load_hardware(shortest).name != machine.name, "the default is not the shortest"
    elsewhere = with_runner_of(machine, load_hardware(shortest))
    fault = make_report(KERNELS["gemm_f32"], elsewhere, Options(prove=False)).fault
    assert "does not permit to use registers" in str(fault)
    assert str(machine.parameters[0].value) in str(fault)
