"""Descriptions among the examples: what their page shows is in them, and they do what they say."""

import re
from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.targets.test import check_target
from isamap.text.load import load_module

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "machines" / "power8.yaml"
PAGE = ROOT / "docs" / "new_machine.md"
KERNELS = {k.name: k for k in load_module(ROOT / "tests" / "targets" / "kernels.ir").kernels}
SETS = 500


def machine() -> Accelerator:
    found = load_hardware(str(FILE), trust=True)
    if missing := runnable(found):
        pytest.skip(f"{missing}: isamap targets install examples/machines/{FILE.name}")
    return found


def test_the_page_shows_what_the_file_says() -> None:
    text = FILE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    lines = {line.partition("  #")[0].rstrip() for line in text.splitlines()}
    for block in blocks:
        assert [line for line in block.splitlines() if line not in lines] in ([], ["    ..."])


def test_its_instructions_do_what_they_say() -> None:
    found = check_target(machine(), SETS)
    assert [f"{f.name}: {f.status}\n{f.text}" for f in found.findings if f.status != "right"] == []
    assert len(found.findings) >= 3


@pytest.mark.parametrize(
    ("kernel", "instruction"),
    [("gemm_u8s8", "vmsummbm"), ("gemm_s8", "vmsummbm"), ("convolution", "v_mac_f32")],
)
def test_its_instructions_are_found(kernel: str, instruction: str) -> None:
    report = make_report(KERNELS[kernel], machine(), Options(prove=False))
    assert report.fault is None, report.fault
    used = [s.mapping.matching.needle.name for s in report.result.schedule.statements]
    assert instruction in used
    assert report.execution.way == "program"
    assert report.check is not None
    assert report.check.ok, report.check
