"""A few cases of the sweep, and that it finds what is wrong and goes on where it was stopped.

``python -m tests.sweep.sweep`` runs all of it.
"""

import json
import random
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.text.load import parse_module
from tests.sweep.families import FAMILIES, LONGEST, alone, combinations
from tests.sweep.sweep import Sweep, main, name_of

# Long enough for partial tiles beside whole ones, short, and one of a kind.
SAMPLE = {
    "gemm_f32": {"M": 1, "N": 70, "K": 3},
    "gemm_bf16": {"M": 7, "N": 33, "K": 5},
    "gemm_u8s8": {"M": 9, "N": 17, "K": 7},
    "convolution_f32_stride_2": {"H": 3, "W": 4, "C": 5, "K": 17, "R": 2, "S": 5},
    "depthwise": {"H": 3, "W": 9, "C": 17, "R": 3, "S": 2},
    "separable": {"H": 3, "W": 4, "C": 17, "R": 3, "S": 2, "K": 9},
    "requantised": {"H": 3, "W": 4, "C": 7, "K": 17, "R": 2, "S": 1},
    "softmax": {"R": 3, "C": 19},
}

needs_native = pytest.mark.skipif(
    runnable(load_hardware("native")) is not None, reason="nothing is executed here"
)


@needs_native
def test_a_sample_of_the_sweep_agrees_with_the_interpreter(tmp_path: Path) -> None:
    sweep = Sweep(load_hardware("native"), tmp_path)
    families = {family.name: family for family in FAMILIES}
    for name, sizes in SAMPLE.items():
        outcome = sweep.case(families[name], sizes, 1)
        assert outcome.fault is None, (name_of(families[name], sizes), outcome.fault)
        assert outcome.executed >= 1
    sweep.close()


def _least(maximum: re.Match[str]) -> str:
    return maximum[0].replace("max", "min")


@needs_native
def test_what_is_wrong_is_found_and_made_smaller(tmp_path: Path) -> None:
    """On a machine whose maximum of floats is written as the minimum."""
    machine = load_hardware("native")
    entries = tuple(
        replace(e, emit=re.sub(r"_max(\d*)_ps|fmaxf", _least, e.emit or ""))
        for e in machine.entries
    )
    assert entries != machine.entries
    sweep = Sweep(replace(machine, entries=entries), tmp_path, points=0)
    family = next(f for f in FAMILIES if f.name == "elementwise")
    least, outcome = sweep.smaller(family, {"P": 3, "C": 40}, 0)
    sweep.close()
    assert outcome.fault is not None
    assert "schedule chain" in outcome.fault.schedule
    assert least["P"] == 1


@needs_native
def test_a_sweep_goes_on_where_it_was_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep.jsonl"
    given = ["--out", str(out), "--no-alone", "--only", "elementwise"]
    assert main([*given, "--random", str(len(FAMILIES))]) == 0
    (first,) = out.read_text(encoding="utf-8").splitlines()
    assert main([*given, "--random", str(len(FAMILIES))]) == 0
    assert "1 cases, " in capsys.readouterr().out
    assert out.read_text(encoding="utf-8").splitlines() == [first]
    entry = json.loads(first)
    out.write_text(json.dumps({**entry, "fault": {"message": "wrong"}}) + "\n", encoding="utf-8")
    assert main([*given, "--random", str(len(FAMILIES))]) == 1


def test_each_extent_goes_from_1_to_70() -> None:
    cases = list(alone())
    for family in FAMILIES:
        for extent in family.usual:
            sizes = {s[extent] for f, s in cases if f is family}
            assert sizes == set(range(1, LONGEST + 1))


def test_combinations_are_different_and_of_all_families() -> None:
    cases = list(combinations(2000, 0))
    assert len({name_of(*case) for case in cases}) == 2000
    assert {family.name for family, _ in cases} == {family.name for family in FAMILIES}
    assert cases[:50] == list(combinations(50, 0))


def test_every_kernel_of_the_sweep_is_right() -> None:
    generator = random.Random(1)
    for family in FAMILIES:
        for sizes in (*islice(family.alone(), 0, None, 25), family.random(generator)):
            (kernel,) = parse_module(family.text(sizes), "kernel").kernels
            assert kernel.extents
