"""``isamap measure``: what was predicted of schedules beside what they take."""

import re
import shutil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from isamap.pipeline.correlation import rank_correlation

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import Golden

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


@pytest.fixture
def vector(tmp_path: Path) -> Path:
    path = tmp_path / "mv.ir"
    path.write_text(
        "kernel mv(M = 33, K = 20) { in A : f32[M, K] in x : f32[K] out y : f32[M]"
        " y[m] += A[m, k] * x[k] }"
    )
    return path


def test_schedules_are_simulated_where_nothing_else_runs_them(
    isamap: "Run", matmul: Path, vector: Path, golden: "Golden"
) -> None:
    done = isamap("measure", matmul, vector, "--hw", "gemm16", "--schedules", "4")
    assert (done.code, max(map(len, done.out.splitlines())) <= 80) == (0, True)
    golden(Path(__file__).parent / "golden" / "measure.txt", done.out)


@needs_gcc
@pytest.mark.parametrize("way", ["native", "simulated"])
def test_the_document_says_the_same(isamap: "Run", matmul: Path, vector: Path, way: str) -> None:
    simulate = ["--simulate"] if way == "simulated" else []
    command = ["measure", matmul, vector, "--hw", "portable_c", "--schedules", "3", "--json"]
    document = isamap(*command, *simulate).json
    assert document["hardware"] == "portable_c"
    kernels = document["kernels"]
    assert [own["kernel"] for own in kernels] == ["mm", "mv"]
    assert [own["way"] for own in kernels] == [way, way]
    for own in kernels:
        rows = own["schedules"]
        assert rows[0]["changes"] == []
        assert all(row["changes"] for row in rows[1:])
        assert all(row["measured"] > 0 and row["bound"] <= row["estimate"] for row in rows)
        assert [len(row["samples"]) for row in rows] == [7 if way == "native" else 1] * 3
        assert all(row["measured"] == median(row["samples"]) for row in rows)
        assert all(bool(row["left_out"]) == (row["whole"] > row["estimate"]) for row in rows)
        assert all(way == "simulated" or not row["left_out"] for row in rows)
        assert own["correlation"] == _correlation(rows)
    every = [row for own in kernels for row in own["schedules"]]
    assert len(every) == 6
    assert document["correlation"] == _correlation(every)


@needs_gcc
def test_how_far_samples_lie_apart_is_told(isamap: "Run", matmul: Path) -> None:
    done = isamap("measure", matmul, "--hw", "portable_c", "--schedules", "2")
    told = "7 samples of each, by turns: the middle half of them within "
    assert told in _spaced(done.out)
    assert max(map(len, done.out.splitlines())) <= 80


def test_what_estimates_have_nothing_of_is_told(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "moved.ir"
    path.write_text(
        "kernel moved(M = 16, N = 16) { in A : f32[M, N] pad 0 in B : f32[N, N] out C : f32[M, N]"
        " C[m, n] += A[m - 1, k - 1] * B[k, n] }"
    )
    told = "estimates without copies and memory that is busy, which take no simulated time"
    assert told in _spaced(isamap("measure", path, "--hw", "gemm16", "--schedules", "1").out)
    text = _spaced(isamap("map", path, "--hw", "gemm16").out)
    assert re.search(r"estimate \S+ cycles, .*, with \S+ for copies", text)
    document = isamap("map", path, "--hw", "gemm16", "--json").json
    found = document["predicted"]
    assert found["left_out"] == ["copies", "memory that is busy"]
    assert found["estimate"] == document["execution"]["cycles"] < found["whole"]
    assert found["whole"] == document["estimate"]["cycles"]
    assert "cycles without copies and memory that is busy, which take no simulated time (" in text


def test_an_emulators_time_is_not_taken(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("format: 1\nname: mine\nextends: portable_c\ntoolchain: {runner: [env]}\n")
    done = isamap("measure", matmul, "--hw", mine, "--trust", "--schedules", "1")
    assert "simulated, because an emulator's time is not the machine's" in _spaced(done.out)
    assert "no rank correlation of 1 schedule" in done.out


@needs_gcc
def test_what_fails_is_a_row_of_its_own_and_exit_5(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    (tmp_path / "measure.sh").write_text("exit 3\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "format: 1\nname: mine\nextends: portable_c\ntoolchain: {measure: [sh, measure.sh]}\n"
    )
    done = isamap("measure", matmul, "--hw", mine, "--trust", "--schedules", "2")
    assert done.code == 5
    assert len(re.findall(r"^ +failed +", done.out, re.MULTILINE)) == 2
    assert "mine.yaml:4:22: error[E506]" in done.err
    rows = isamap("measure", matmul, "--hw", mine, "--trust", "--schedules", "2", "--json").json[
        "kernels"
    ][0]["schedules"]
    assert [row["failed"] for row in rows] == [True, True]


def test_all_kernels_of_a_file_are_measured_or_the_named_one(
    isamap: "Run", matmul: Path, vector: Path
) -> None:
    matmul.write_text(matmul.read_text() + vector.read_text())
    command = ["measure", matmul, "--hw", "gemm16", "--schedules", "1"]
    done = isamap(*command)
    assert [line for line in done.out.splitlines() if line.startswith(("mm(", "mv("))] != []
    assert "all 2 kernels: no rank correlation of 2 schedules" in done.out
    assert "mm(" not in isamap(*command, "--kernel", "mv").out
    assert isamap(*command, "--kernel", "third").code == 1


def test_open_extents_have_the_size_that_a_run_has(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "open.ir"
    path.write_text("kernel k(N) { in X : f32[N] out Y : f32[N] Y[n] = X[n] + X[n] }")
    done = isamap("measure", path, "--hw", "portable_c", "--simulate", "--schedules", "2")
    assert (done.code, "k(N = 37), simulated" in done.out) == (0, True)


def test_what_takes_too_long_is_refused(isamap: "Run", matmul: Path) -> None:
    sizes = ["--set", "M=4096", "--set", "N=4096", "--set", "K=4096"]
    done = isamap("measure", matmul, "--hw", "gemm16", *sizes)
    assert (done.code, done.out) == (6, "")
    assert "error[E751]: kernel 'mm' is not run" in done.err


def _correlation(rows: "list[dict[str, float]]") -> float | None:
    return rank_correlation([r["estimate"] for r in rows], [r["measured"] for r in rows])


def _spaced(text: str) -> str:
    return " ".join(text.split())
