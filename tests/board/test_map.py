"""A description's measuring command in place of a native run or a simulator."""

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import pytest

from tests.board.making import RIGHT, board

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "map.schema.json").read_text())

# Cycles by the program's bytes: those of another schedule are others.
BY_BYTES = (
    'SUM=$(cksum <"$1" | cut -d" " -f1)\n'
    '"$1" && echo $((1000 + RUNS * (8000000 + SUM % 999999))) >"$2"'
)


def test_measured_and_predicted_cycles_stand_side_by_side(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    mine = board(tmp_path, RIGHT)
    done = isamap("map", matmul, "--hw", mine, "--trust")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "ran by the description's measuring command: 500 cycles" in text
    assert "times the 500 measured; bound " in text
    assert "all 960 outputs agree" in text

    document = isamap("map", matmul, "--hw", mine, "--trust", "--json").json
    jsonschema.validate(document, SCHEMA)
    execution, predicted = document["execution"], document["predicted"]
    assert (execution["way"], execution["cycles"], execution["seconds"]) == ("measured", 500, None)
    assert predicted["measured"] == 500
    assert predicted["estimate"] == document["estimate"]["cycles"]
    assert 0 < predicted["bound"] <= predicted["estimate"]


def test_a_simulated_machine_is_told_of_alike(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "gemm16")
    assert " simulated; bound " in " ".join(done.out.split())
    document = isamap("map", matmul, "--hw", "gemm16", "--json").json
    assert document["predicted"]["measured"] == document["execution"]["cycles"] > 0


def test_nothing_is_predicted_of_an_emulators_time(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("format: 1\nname: mine\nextends: portable_c\ntoolchain: {runner: [env]}\n")
    document = isamap("map", matmul, "--hw", mine, "--trust", "--json").json
    assert (document["execution"]["way"], document["predicted"]) == ("program", None)


def test_a_stranger_executes_nothing(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = board(tmp_path, f"touch executed; {RIGHT}")
    for command in (["map", matmul], ["map", matmul, "--tune", "2"], ["measure", matmul]):
        done = isamap(*command, "--hw", mine)
        assert done.code == 0, done.err
        assert "simulated" in done.out or "estimated" in done.out
    assert isamap("run", matmul, "--hw", mine).code == 0
    assert isamap("targets", "test", mine, "--instruction", "c_neg_f32").code == 5
    assert "measured by: sh measure.sh" in isamap("hw", "show", mine).out
    assert isamap("check", mine).code == 0
    assert not (tmp_path / "executed").exists()


def test_it_measures_where_there_is_a_runner_too(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    mine = board(tmp_path, RIGHT)
    with mine.open("a") as file:
        file.write("  runner: [no-such-emulator]\n")
    document = isamap("map", matmul, "--hw", mine, "--trust", "--json").json
    assert document["execution"]["way"] == "measured"
    assert document["checked"]


def test_a_description_that_extends_one_inherits_the_command(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    board(tmp_path, RIGHT)
    other = tmp_path / "other.yaml"
    other.write_text("format: 1\nname: other\nextends: mine.yaml\ntoolchain: {seconds: 50}\n")
    document = isamap("map", matmul, "--hw", other, "--trust", "--json").json
    assert (document["execution"]["way"], document["execution"]["cycles"]) == ("measured", 500)
    other.write_text("format: 1\nname: other\nextends: mine.yaml\ntoolchain: {measure: []}\n")
    document = isamap("map", matmul, "--hw", other, "--trust", "--json").json
    assert document["execution"]["way"] == "native"


def test_run_computes_by_the_command(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine, out = board(tmp_path, f"echo >>calls; {RIGHT}"), tmp_path / "out.npz"
    a = np.ones((24, 16), np.float32)
    np.savez(tmp_path / "in.npz", A=a, B=np.ones((16, 40), np.float32))
    done = isamap(
        "run", matmul, "--hw", mine, "--trust", "--inputs", tmp_path / "in.npz", "--outputs", out
    )
    assert done.code == 0, done.err
    assert np.array_equal(np.load(out)["C"], np.full((24, 40), 16, np.float32))
    assert (tmp_path / "calls").read_text() == "\n"


def test_a_search_measures_by_the_command(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine, records = board(tmp_path, BY_BYTES), tmp_path / "records"
    told = ["--tune", "4", "--records", records, "--log", tmp_path / "log", "--no-proof"]
    done = isamap("map", matmul, "--hw", mine, "--trust", *told)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "tuning 4 schedules measured, 0 failed" in text
    assert re.search(
        r"rank correlation of estimates and times -?[01]\.\d\d, of 4 measured schedules", text
    )

    lines = [json.loads(line) for line in records.read_text().splitlines()]
    assert len(lines) >= 4
    assert {line["machine"]["cpu"] for line in lines} == {"behind sh measure.sh"}
    assert all(8000 < line["seconds"] * 1e9 / 1000 < 9000 for line in lines)

    replayed = isamap("replay", tmp_path / "log", "--hw", mine)
    assert replayed.code == 0, replayed.err
    assert "the same decisions" in replayed.out


def test_a_search_tells_cycles(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = board(tmp_path, BY_BYTES)
    command = ["map", matmul, "--hw", mine, "--trust", "--tune", "4", "--no-records"]
    document = isamap(*command, "--json").json
    jsonschema.validate(document, SCHEMA)
    tuning = document["tuning"]
    assert (tuning["measured"], tuning["counted"], tuning["compared"]) == (True, True, 4)
    assert 8_000_000 < tuning["best"] <= tuning["first"] < 9_000_000
    assert tuning["best"] == pytest.approx(document["execution"]["cycles"])


def test_instructions_are_tested_by_the_command(isamap: "Run", tmp_path: Path) -> None:
    # A battery's input has another form: the count does not matter.
    mine = board(tmp_path, '"$1"; echo >>calls')
    test = ["targets", "test", mine, "--trust", "--samples", "50"]
    done = isamap(*test, "--instruction", "c_neg_f32", "--json")
    assert done.code == 0, done.err
    (document,) = done.json
    assert (document["runner"], document["ok"]) == ("sh measure.sh", True)
    assert (tmp_path / "calls").exists()
