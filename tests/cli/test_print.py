"""``map --print``: what a stage hands on, and nothing else."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap.ir.printer import print_kernel
from isamap.text.load import parse_module

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
TOY = GOLDEN / "toy.yaml"
SHOWN = re.compile(r"^```\n\$ isamap (.*)\n((?:.*\n)*?)```\n", re.MULTILINE)


def never(*_: object, **__: object) -> None:
    raise AssertionError("nothing is run")


@pytest.mark.parametrize("stage", ["kernel", "schedule", "lowered"])
def test_a_stage_is_printed_and_nothing_is_run(
    stage: str, isamap: "Run", matmul: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isamap.pipeline.report.make_report", never)
    done = isamap("map", matmul, "--hw", TOY, "--print", stage)
    assert done.code == 0
    assert done.out.startswith({"schedule": "# made for"}.get(stage, f"{stage} mm("))


def test_the_kernel_is_that_which_is_mapped_and_can_be_read_again(isamap: "Run") -> None:
    done = isamap("map", GOLDEN / "chain.ir", "--hw", "gemm16", "--print", "kernel")
    (kernel,) = parse_module(done.out).kernels
    assert print_kernel(kernel) == done.out
    assert "Y_1[j, l] += B[j, k] * C[k, l]" in done.out


def test_the_schedule_is_that_which_is_saved(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    saved = tmp_path / "mm.schedule"
    done = isamap("map", matmul, "--hw", TOY, "--print", "schedule", "--save-schedule", saved)
    assert saved.read_text(encoding="utf-8") == done.out


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_the_code_is_that_which_is_emitted(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    file = tmp_path / "mm.c"
    done = isamap("map", matmul, "--hw", "portable_c", "--print", "code", "--emit", file)
    assert done.code == 0
    assert file.read_text(encoding="utf-8") == done.out


def test_no_code_is_told_before_the_work(
    isamap: "Run", matmul: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isamap.pipeline.mapped.map_kernel", never)
    done = isamap("map", matmul, "--hw", "gemm16", "--print", "code")
    assert (done.code, done.out) == (5, "")
    assert "E741" in done.err


@pytest.mark.parametrize("other", ["--json", "--all"])
def test_what_a_report_is_asked_for_contradicts_it(other: str, isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", TOY, "--print", "lowered", other)
    assert done.code == 2
    assert f"{other} contradicts it" in done.err


def test_what_the_page_shows_is_printed(isamap: "Run", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = SHOWN.finditer((ROOT / "docs" / "layout.md").read_text(encoding="utf-8"))
    assert isamap(*shown[1].split()).out == shown[2]
