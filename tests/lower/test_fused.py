"""Statements computed in another one's registers: which may be, and that they compute the same."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError
from isamap.ir.inline import ApartError
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.finish import finishing
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.proof.claim import Claim
from isamap.proof.fusion import fusion_obligations
from isamap.schedule.schedule import Schedule
from isamap.schedule.space import space
from isamap.solver.lemma import prove
from isamap.text.load import load_module
from tests.lower.test_lowering import agrees, first_choice, machine

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "fused.ir").kernels}
FUSED = {
    "bias_relu": {1: 0, 2: 0},
    "requantised": {1: 0},
    "in_place": {1: 0, 2: 0},
    "both_wanted": {1: 0, 2: 0},
    "read_later": {1: 0},
    "transposed": {1: 0},
    "sizes": {1: 0},
    "overtaken": {1: 0},
}
CHEAPER_APART = {"transposed"}
"""What may be fused, but rows are woven faster than each result is stored down a column."""

APART = {
    "neighbours": "reads 2 elements of T at a point",
    "own_input": "A is read while the results are made",
    "part": "Y takes a part of T",
    "between": "b is computed between",
    "dead": "nothing takes T",
}


@pytest.mark.parametrize("hardware", ["x86_avx2", "x86_avx512", "portable_c"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_fused_where_they_may_and_compute_the_same(name: str, hardware: str) -> None:
    kernel, accelerator = KERNELS[name], machine(hardware)
    choice = first_choice(kernel, accelerator)
    if hardware == "x86_avx512":
        want = {} if name in CHEAPER_APART else FUSED.get(name, {})
        assert choice.schedule.fused == want
    agrees(kernel, choice.lowered, accelerator, 5)


@pytest.mark.parametrize("name", sorted(CHEAPER_APART))
def test_what_is_cheaper_apart_may_be_fused_and_computes_the_same(name: str) -> None:
    kernel, accelerator = KERNELS[name], machine("x86_avx512")
    choice = first_choice(kernel, accelerator)
    own = [replace(s, within=FUSED[name].get(n)) for n, s in enumerate(choice.schedule.statements)]
    fused = lower(kernel, accelerator, Schedule(tuple(own)))
    assert choice.estimate.cycles < estimate(fused, accelerator).cycles
    agrees(kernel, fused, accelerator, 5)


@pytest.mark.parametrize("name", ["bias_relu", "requantised", "in_place"])
def test_what_never_leaves_registers_has_no_memory(name: str) -> None:
    lowered = first_choice(KERNELS[name], machine("x86_avx512")).lowered
    assert not {"T", "U"} & {array.name for array in lowered.arrays}


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - FUSED.keys()))
def test_what_must_not_be_fused_says_why(name: str) -> None:
    kernel = bind_extents(KERNELS[name])
    last = len(kernel.statements) - 1
    with pytest.raises(ApartError, match=APART[name]):
        finishing(kernel, 0, (last,))


def test_one_that_overtakes_a_read_of_another_is_not_fused() -> None:
    kernel = bind_extents(KERNELS["overtaken"])
    with pytest.raises(ApartError, match="Z reads other elements of Y"):
        finishing(kernel, 0, (1, 2))


def refuted(name: str, number: int, fused: dict[int, int]) -> set[str]:
    """Return the claims that do not hold if some statements of a kernel are fused."""
    kernel = bind_extents(KERNELS[name])
    schedule = first_choice(KERNELS[name], machine("x86_avx512")).schedule
    own = [replace(s, within=fused.get(n)) for n, s in enumerate(schedule.statements)]
    wrong = set()
    for one in fusion_obligations(kernel, Schedule(tuple(own)), number):
        if isinstance(one, Claim):
            if one.verdict != "proved":
                wrong.add(one.name)
        elif prove(one.lemma).verdict != "proved":
            wrong.add(one.lemma.name)
    return wrong


@pytest.mark.parametrize("name", FUSED)
def test_the_proof_accepts_what_is_fused(name: str) -> None:
    for number in FUSED[name]:
        assert not refuted(name, number, FUSED[name])


@pytest.mark.parametrize(
    ("name", "number", "fused", "wrong"),
    [
        ("neighbours", 1, {1: 0}, {"coverage"}),
        ("own_input", 1, {1: 0}, {"order"}),
        ("overtaken", 2, {1: 0, 2: 0}, {"order"}),
        ("part", 1, {1: 0}, {"coverage"}),
        ("between", 2, {2: 0}, {"order"}),
    ],
)
def test_the_proof_refutes_what_must_not_be_fused(
    name: str, number: int, fused: dict[int, int], wrong: set[str]
) -> None:
    assert refuted(name, number, fused) == wrong


def test_a_reduction_in_parts_cannot_be_finished() -> None:
    kernel, accelerator = KERNELS["bias_relu"], machine("x86_avx512")
    schedule = first_choice(kernel, accelerator).schedule
    root, *others = schedule.statements
    level = next(level for level in root.levels if level.variable == "k")
    split = replace(root, levels=(replace(level, step=4 * level.step), *root.levels))
    whole = Schedule((split, *others))
    with pytest.raises(ScheduleError, match="'k' has a loop outside them"):
        lower(kernel, accelerator, whole)
    claims = fusion_obligations(bind_extents(kernel), whole, 1)
    assert "refuted" in {c.verdict for c in claims if isinstance(c, Claim)}


@pytest.mark.parametrize("name", ["bias_relu", "requantised", "in_place"])
def test_schedules_around_fused_ones_compute_the_same(name: str) -> None:
    kernel, accelerator = KERNELS[name], machine("x86_avx512")
    choice = first_choice(kernel, accelerator)
    bound = bind_extents(kernel)
    around = space(accelerator, bound, choice.starts, Producers(accelerator), 1, choice.schedule)
    assert around.build(around.first).fused == choice.schedule.fused
    rng = random.Random(3)
    fused = set()
    for seed in range(24):
        picked = {c.name: rng.randrange(len(c.options)) for c in around.choices}
        try:
            schedule = around.build(picked)
            lowered = lower(kernel, accelerator, schedule)
        except ScheduleError:
            continue
        fused.add(bool(schedule.fused))
        agrees(kernel, lowered, accelerator, seed)
    assert fused == {False, True}
