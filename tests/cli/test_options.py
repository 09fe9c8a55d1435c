from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from isamap.cli.options import BudgetType, SizeType
from isamap_search.budget import Budget

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("50", Budget(trials=50)),
        ("30s", Budget(seconds=30.0)),
        ("2m", Budget(seconds=120.0)),
        ("1h", Budget(seconds=3600.0)),
    ],
)
def test_budgets_are_trials_or_time(text: str, budget: Budget) -> None:
    assert BudgetType().convert(text, None, None) == budget


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1.5", "30 s", "s", "9999999999"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a number of trials"):
        BudgetType().convert(text, None, None)


def test_sizes_are_a_name_and_a_number() -> None:
    assert SizeType().convert("N_1=64", None, None) == ("N_1", 64)


@pytest.mark.parametrize("text", ["", "N", "N=", "=3", "N=x", "1=2", "N=1=2", "N=0x10"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="NAME=SIZE"):
        SizeType().convert(text, None, None)


@pytest.mark.parametrize(
    ("command", "option", "path", "why"),
    [
        ("map", "--emit", "file/x.c", "is no folder"),
        ("map", "--emit", "file", "it is no folder"),
        ("map", "--records", "none/r.jsonl", "there is no folder"),
        ("map", "--log", "none/mm.log", "there is no folder"),
        ("run", "--study", "file/study", "is no folder"),
        ("prove", "--save", "none/proof.json", "there is no folder"),
        ("prove", "--save", ".", "it is a folder"),
        ("run", "--outputs", "none/out.npz", "there is no folder"),
    ],
)
def test_files_that_cannot_be_written_are_told_before_the_work(
    isamap: "Run",
    matmul: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    option: str,
    path: str,
    why: str,
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be mapped")

    # Those that import it first: what they are given back must not be what it is replaced by.
    monkeypatch.setattr("isamap.pipeline.report.map_kernel", work)
    monkeypatch.setattr("isamap.pipeline.compute.map_kernel", work)
    monkeypatch.setattr("isamap.pipeline.mapped.map_kernel", work)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    searched = ["--tune", "2"] if option in ("--log", "--study") else []
    done = isamap(command, matmul, "--hw", "portable_c", option, path, *searched)
    assert done.code == 1
    assert f"error[E732]: cannot write '{path}'" in done.err
    assert why in done.err


def test_a_machine_without_c_is_told_before_the_work(
    isamap: "Run", matmul: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be mapped")

    monkeypatch.setattr("isamap.pipeline.report.map_kernel", work)
    done = isamap("map", matmul, "--hw", "gemm16", "--emit", tmp_path / "x.c")
    assert done.code == 5
    assert "error[E741]" in done.err
