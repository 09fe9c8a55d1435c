"""``--schedule`` and ``--save-schedule``."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TOY = Path(__file__).parent / "golden" / "toy.yaml"


def test_a_saved_schedule_is_taken(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    saved = tmp_path / "mm.schedule"
    lost = isamap("map", matmul, "--hw", TOY, "--save-schedule", tmp_path / "new" / "mm.schedule")
    assert (lost.code, (tmp_path / "new").exists()) == (1, False)
    assert "error[E732]" in lost.err
    first = isamap("map", matmul, "--hw", TOY, "--no-proof", "--json", "--save-schedule", saved)
    assert first.code == 0
    assert saved.read_text(encoding="utf-8") == first.json["schedule_text"]
    again = isamap("map", matmul, "--hw", TOY, "--no-proof", "--json", "--schedule", saved)
    assert again.json["schedule"] == first.json["schedule"]
    assert again.json["execution"]["cycles"] == first.json["execution"]["cycles"]
    assert again.json["statements"][0]["why"] == f"as {saved}:5:5 says"


def test_the_report_has_the_lines_that_a_written_schedule_needs(
    isamap: "Run", tmp_path: Path
) -> None:
    chain, own = TOY.parent / "chain.ir", tmp_path / "own.schedule"
    first = isamap("map", chain, "--hw", "gemm16")
    told = first.out.split("\nschedule\n")[1].split("\n  Y_1: ")[0]
    assert told.split("\n") == ["  rewrite insert-identity of S", "  rewrite contract of Y"]
    own.write_text(f"schedule chain {{\n{told}\n}}\n", encoding="utf-8")
    again = isamap("map", chain, "--hw", "gemm16", "--schedule", own)
    assert "Y_1[j, l] += B[j, k] * C[k, l]" in again.out
    assert again.out.split("\nschedule\n")[1] == first.out.split("\nschedule\n")[1]


def test_what_a_search_found_is_had_again(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    saved, log = tmp_path / "mm.schedule", tmp_path / "mm.log"
    tuned = isamap(
        "map", matmul, "--hw", TOY, "--tune", "12", "--json", "--save-schedule", saved, "--log", log
    )
    assert tuned.code == 0
    again = isamap("map", matmul, "--hw", TOY, "--json", "--schedule", saved)
    assert again.json["schedule"] == tuned.json["schedule"]
    assert again.json["estimate"] == tuned.json["estimate"]


def test_a_search_from_a_written_schedule_is_replayed(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    own, log = tmp_path / "own.schedule", tmp_path / "mm.log"
    own.write_text("schedule mm {\n  C { loops m/1, n/4, k/1 }\n}\n", encoding="utf-8")
    done = isamap("map", matmul, "--hw", TOY, "--schedule", own, "--tune", "6", "--log", log)
    assert done.code == 0
    own.unlink()
    replayed = isamap("replay", log, "--hw", TOY)
    assert replayed.code == 0
    assert "the same decisions" in replayed.out


def test_run_takes_a_schedule_too(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.schedule"
    own.write_text("schedule mm {\n  C { loops m/2, n/8, k/1 }\n}\n", encoding="utf-8")
    plain = isamap("run", matmul, "--hw", TOY)
    done = isamap("run", matmul, "--hw", TOY, "--schedule", own)
    assert (done.code, done.out) == (0, plain.out)


@pytest.mark.parametrize(
    ("text", "code"), [("schedule mm {\n  C { loops q/4 }\n}\n", "E412"), ("kernel mm", "E410")]
)
def test_a_wrong_schedule_is_wrong_input(
    text: str, code: str, isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.schedule"
    own.write_text(text, encoding="utf-8")
    done = isamap("map", matmul, "--hw", TOY, "--schedule", own)
    assert done.code == 1
    assert f"error[{code}]" in done.err
    assert f"{own}:" in done.err


def test_a_schedule_that_is_not_there_is_told(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    done = isamap("map", matmul, "--hw", TOY, "--schedule", tmp_path / "none.schedule")
    assert done.code == 1
    assert "error[E001]: cannot read" in done.err


def test_where_nothing_can_be_saved_is_told_before_the_work(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    done = isamap("map", matmul, "--hw", TOY, "--save-schedule", matmul / "x.schedule")
    assert done.code == 1
    assert "error[E732]" in done.err
