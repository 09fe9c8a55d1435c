"""Code for other machines, compiled and run by the tools that their descriptions name."""

from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.ir.nodes import Kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.targets.state import emulated
from isamap.text.load import load_module

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "kernels.ir").kernels}
TARGETS = [target.name for target in emulated()]


def computed(kernel: Kernel, target: str) -> Report:
    machine = load_hardware(target)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: isamap targets install {target}")
    return make_report(kernel, machine, Options(prove=False))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_what_a_target_computes_is_what_the_interpreter_does(name: str, target: str) -> None:
    report = computed(KERNELS[name], target)
    assert report.fault is None, report.fault
    assert report.execution.way == "program"
    assert report.check is not None
    assert report.check.ok, report.check
