from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pytest

from isamap.cli.options import BudgetType, SizeType
from isamap_search.budget import Budget
from tests.cli.conftest import MATMUL

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
        ("map", "--emit", "none/x.c", "there is no folder"),
        ("map", "--emit", "none/made", "there is no folder"),
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
    assert [file.name for file in tmp_path.iterdir() if file != matmul] == ["file"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("map", "--save-schedule"),
        ("map", "--records"),
        ("map", "--log"),
        ("map", "--study"),
        ("run", "--outputs"),
        ("run", "--records"),
        ("prove", "--save"),
    ],
)
@pytest.mark.parametrize("name", ["mm.ir", "part.ir", "own.yaml", "base.yaml"])
def test_what_is_read_is_not_written(
    isamap: "Run", tmp_path: Path, command: str, option: str, name: str
) -> None:
    (tmp_path / "part.ir").write_text(MATMUL)
    (tmp_path / "mm.ir").write_text('include "part.ir"\n')
    (tmp_path / "base.yaml").write_text("format: 1\nname: base\nextends: portable_c\n")
    (tmp_path / "own.yaml").write_text("format: 1\nname: own\nextends: base.yaml\n")
    before = (tmp_path / name).read_text()
    searched = ["--tune", "2"] if option in ("--log", "--study") else []
    arguments = [command, tmp_path / "mm.ir", "--hw", tmp_path / "own.yaml", *searched]
    done = isamap(*arguments, option, tmp_path / name)
    assert done.code == 1
    assert f"error[E732]: cannot write '{tmp_path / name}': this command reads it" in done.err
    assert f"help: give {option} another file" in done.err
    assert (tmp_path / name).read_text() == before


def test_a_kernel_in_a_file_of_c_is_not_written(isamap: "Run", tmp_path: Path) -> None:
    for file, option in (("mm.c", tmp_path / "mm.c"), ("mm.h", tmp_path)):
        (tmp_path / file).write_text(MATMUL)
        done = isamap("map", tmp_path / file, "--hw", "portable_c", "--emit", option)
        assert "error[E732]: cannot write" in done.err
        assert (tmp_path / file).read_text() == MATMUL


def test_a_schedule_may_be_renewed_and_not_lost(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mm.schedule"
    common = ["map", matmul, "--hw", "portable_c", "--no-proof"]
    assert isamap(*common, "--save-schedule", file).code == 0
    assert isamap(*common, "--schedule", file, "--save-schedule", file).code == 0
    done = isamap(*common, "--schedule", file, "--records", file)
    assert "error[E732]: cannot write" in done.err


def test_c_is_written_to_a_file_of_c_or_a_folder(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    common = ["map", matmul, "--hw", "portable_c", "--no-proof", "--emit"]
    done = isamap(*common, tmp_path / "mm.txt")
    assert done.code == 1
    assert "is neither a file .c nor a folder that there is" in done.err
    assert f"help: name a file such as '{tmp_path / 'mm.c'}'" in done.err
    (tmp_path / "made.d").mkdir()
    for folder in ("made.d", "made"):
        assert isamap(*common, tmp_path / folder).code == 0
        assert (tmp_path / folder / "mm.c").exists()


@pytest.mark.parametrize("given", ["VL", "VL=", "VL=512,VL"])
def test_a_parameter_without_a_value_is_told(isamap: "Run", matmul: Path, given: str) -> None:
    done = isamap("map", matmul, "--hw", f"aarch64_sve2:{given}")
    assert done.code == 1
    assert "error[E128]: the parameter 'VL' needs a value" in done.err
    assert "help: a number, as in aarch64_sve2:VL=512" in done.err


def test_of_arrays_that_are_missing_those_that_there_are_are_told(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "in.npz", A=np.zeros((24, 16), np.float32))
    done = isamap("run", matmul, "--hw", "portable_c", "--inputs", tmp_path / "in.npz")
    assert "error[E733]: no array for input 'B'" in done.err
    assert "help: arrays are found by the names of the buffers; there are: A" in done.err


def test_a_machine_without_c_is_told_before_the_work(
    isamap: "Run", matmul: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be mapped")

    monkeypatch.setattr("isamap.pipeline.report.map_kernel", work)
    done = isamap("map", matmul, "--hw", "gemm16", "--emit", tmp_path / "x.c")
    assert done.code == 5
    assert "error[E741]" in done.err
