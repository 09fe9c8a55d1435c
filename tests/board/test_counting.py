"""Candidates of a search, counted by a measuring command."""

import shutil
from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.pipeline.mapped import arrange_kernel
from isamap.pipeline.options import Clock, Options
from isamap.pipeline.tune import model_of
from isamap.text.load import parse_module
from isamap_search.counting import Counting
from isamap_search.objective import Candidate, rank
from tests.board.making import RIGHT, board

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

KERNEL = parse_module(
    "kernel mm(M = 24, N = 20, K = 32) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N]"
    " C[m, n] += A[m, k] * B[k, n] }"
).kernels[0]


@pytest.fixture(scope="module")
def candidates() -> list[Candidate]:
    machine = load_hardware("portable_c")
    _, choice = arrange_kernel(KERNEL, machine, Options(), Clock())
    found = rank(model_of(KERNEL, machine, choice, {}, 1), 8, seed=0)[:3]
    assert len(found) == 3
    return found


def counting(machine: Accelerator) -> Counting:
    return Counting(KERNEL, machine, random_inputs(KERNEL, {}, 0), {}, 1)


def test_samples_are_seconds_at_the_clock(tmp_path: Path, candidates: list[Candidate]) -> None:
    bench = counting(load_hardware(str(board(tmp_path, RIGHT)), trust=True))
    assert bench(candidates, 2) == [(500e-9, 500e-9)] * 3
    assert bench(candidates[1:], 1) == [(500e-9,)] * 2
    assert bench.fault is None
    assert bench.code_bytes(candidates[0]) > 1000


def test_one_that_fails_takes_the_others_not_along(
    tmp_path: Path, candidates: list[Candidate]
) -> None:
    only_the_first = 'test -e first || echo "$1" >first; test "$(cat first)" = "$1" || exit 3\n'
    machine = load_hardware(str(board(tmp_path, only_the_first + RIGHT)), trust=True)
    bench = counting(machine)
    assert bench(candidates, 3) == [(500e-9,) * 3, None, None]
    assert bench.fault is not None
    assert "ended with status 3" in bench.fault.diagnostics[0].message
    assert bench(candidates, 1) == [(500e-9,), None, None]


def test_a_command_that_is_not_there_is_the_fault(
    tmp_path: Path, candidates: list[Candidate]
) -> None:
    mine = board(tmp_path, RIGHT, command="[./no-such-script]")
    bench = counting(load_hardware(str(mine), trust=True))
    assert bench(candidates, 3) == [None, None, None]
    assert bench.fault is not None
    assert bench.fault.diagnostics[0].code == "E511"


def test_candidates_learn_from_each_other_how_often_to_compute(
    tmp_path: Path, candidates: list[Candidate]
) -> None:
    noisy = (
        'echo $RUNS >>runs; N=$(wc -l <runs); "$1" && '
        'echo $((100000 + RUNS * 5000 + (N * 7919) % 1000)) >"$2"'
    )
    bench = counting(load_hardware(str(board(tmp_path, noisy)), trust=True))
    for own in bench(candidates, 3):
        assert own is not None
        assert own == pytest.approx([5e-6] * 3, rel=0.06)
    runs = [int(line) for line in (tmp_path / "runs").read_text().split()]
    most = max(runs)
    assert most > 10
    # The first finds out; after it nobody computes more often than once and less than enough.
    settled = runs.index(most)
    assert set(runs[settled:]) == {0, 1, most}
