"""Elements that are written as one C type and read as another: compilers must not reorder that."""

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import remedy, runnable
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

# The results lie two apart: they are stored next to each other as halves, and copied as integers.
APART = """kernel apart {
  in X : f16[5, 37]
  inout Y : f16[5, 74]
  Y[m, 2*n] = X[m, n]
}"""


@pytest.mark.parametrize("name", ["aarch64_sve2", "riscv_rvv", "arm_mve", "hexagon_hvx"])
def test_what_is_stored_aside_is_there_when_it_is_copied(name: str) -> None:
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    (kernel,) = parse_module(APART).kernels
    report = make_report(kernel, machine, Options(prove=False))
    assert report.fault is None, report.fault
    assert report.check is not None
    assert report.check.ok, report.check
