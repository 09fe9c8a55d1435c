"""Statements with one outermost loop: which may have it, and that they compute the same."""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import ScheduleError
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.fuse import LONGER
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.proof.claim import Claim
from isamap.proof.rounds import round_obligations
from isamap.schedule.rounds import rounds_of, shares_of
from isamap.schedule.schedule import Level, Schedule, StatementSchedule
from isamap.schedule.space import space
from isamap.schedule.threads import evenness
from isamap.sim.lowered import run_lowered
from isamap.solver.lemma import prove
from isamap.text.load import load_module, parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "rounds.ir").kernels}
VARIABLES = {
    "softmax": {0: "n", 1: "n", 2: "n", 3: "n"},
    "centred": {0: "n", 1: "n", 2: "n", 3: "n"},
    "turned": {0: "n", 1: "n"},
    "neighbours": None,  # a row needs the next one
    "overwritten": {0: "n", 1: "n"},
    "in_place": {0: "n", 1: "n", 2: "n", 3: "n"},
    "crossed": None,
    "pooled": {0: "n", 1: "h"},
    "doubled": {0: "n", 1: "n", 2: "n", 3: "m"},
    "cut": {0: "n", 1: "n", 2: "n", 3: "n", 4: "m"},
    "overlapping": None,  # windows of three rows, two apart
}
ALL = {name: range(len(kernel.statements)) for name, kernel in KERNELS.items()}
SCALES = {"pooled": (1, "1/2"), "doubled": (1, 1, 1, 2), "cut": (1, 1, 1, 1, 4)}


@pytest.mark.parametrize("name", KERNELS)
def test_a_variable_tells_apart_all_that_is_shared_or_there_is_no_round(name: str) -> None:
    kernel = bind_extents(KERNELS[name])
    found = shares_of(kernel, range(len(kernel.statements)))
    names = None if found is None else {n: share.variable for n, share in found.items()}
    assert names == VARIABLES[name]


@pytest.mark.parametrize("name", SCALES)
def test_more_rows_are_more_iterations_in_a_round(name: str) -> None:
    kernel = bind_extents(KERNELS[name])
    found = shares_of(kernel, range(len(kernel.statements)))
    assert found is not None
    assert [share.scale for share in found.values()] == [Fraction(n) for n in SCALES[name]]


@pytest.mark.parametrize(("name", "more"), [("pooled", 1), ("pooled", 3), ("cut", -1), ("cut", 1)])
def test_iterations_that_do_not_go_with_the_rows_are_refused(name: str, more: int) -> None:
    kernel, accelerator = KERNELS[name], machine("x86_avx512")
    bound = bind_extents(kernel)
    right = rounds_of(bound, without_rounds(first_choice(kernel, accelerator).schedule), ALL[name])
    assert right is not None
    *before, last = right.statements
    level = replace(last.levels[0], step=last.levels[0].step + more)
    wrong = Schedule((*before, replace(last, levels=(level, *last.levels[1:]))))
    assert not all(holds(bound, wrong, len(before)))
    with pytest.raises(ScheduleError, match="several rounds"):
        lower(kernel, accelerator, wrong, Producers(accelerator))


@pytest.mark.parametrize("length", [3, 4, 12, 25])
def test_rounds_are_as_long_as_is_asked(length: int) -> None:
    kernel, accelerator = KERNELS["centred"], load_hardware("x86_avx512")
    apart = without_rounds(map_kernel(kernel, accelerator, Options(rewrite=())).schedule)
    apart = replace(apart, abreast=False, once=True)
    trial = rounds_of(bind_extents(kernel), apart, roots(apart), length)
    assert trial is not None
    assert (trial.abreast, trial.once) == (False, True)
    assert {own.levels[0].step for own in trial.statements if own.within is None} == {length}
    agrees(kernel, lower(kernel, accelerator, trial), accelerator, 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_rounds_that_read_borders_again_are_longer(threads: int) -> None:
    text = """kernel separable {
      in X : f32[80, 80, 96] pad 0  const D : f32[3, 3, 96]  const F : f32[96, 96]
      local T : f32[80, 80, 96]  out Y : f32[80, 80, 96]
      T[p, q, c] += X[p + r - 1, q + t - 1, c] * D[r, t, c]
      Y[p, q, k] += T[p, q, c] * F[c, k]
    }"""
    (kernel,) = parse_module(text).kernels
    found = map_kernel(kernel, load_hardware("x86_amx"), Options(threads=threads))
    assert found.schedule.rounds
    # Blocks have a few rows; two or four rounds of each thread are tried.
    assert found.schedule.statements[0].levels[0].step in {ceil(80 / threads / n) for n in LONGER}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_rounds_compute_the_same(name: str, threads: int) -> None:
    kernel = KERNELS[name]
    # Another instruction wants rows packed, all of them before the rounds that compute them.
    wanted = "vmax_f32" if name == "in_place" else None
    options = Options(threads=threads, rewrite=(), instruction=wanted)
    result = map_kernel(kernel, load_hardware("x86_avx512"), options)
    whole = result.schedule
    trial = rounds_of(bind_extents(kernel), without_rounds(whole), roots(whole))
    assert (trial is None) == (VARIABLES[name] is None)
    if trial is None:
        assert not whole.rounds
        return
    accelerator = load_hardware("x86_avx512")
    lowered = lower(kernel, accelerator, trial)
    if name == "softmax":
        return  # it rounds: the report of the pipeline is tested below
    agrees(kernel, lowered, accelerator, 3)


def roots(schedule: Schedule) -> tuple[int, ...]:
    return tuple(n for n, own in enumerate(schedule.statements) if own.within is None)


def without_rounds(schedule: Schedule) -> Schedule:
    return Schedule(tuple(replace(own, along=None) for own in schedule.statements))


@pytest.mark.parametrize("hardware", ["portable_c", "x86_avx2", "x86_avx512"])
def test_rows_that_fit_a_cache_are_done_at_once(hardware: str) -> None:
    kernel = load_module(Path(__file__).parent / "rounds.ir").kernels[0]
    large = replace(kernel, extents=tuple(replace(e, value=1024) for e in kernel.extents))
    choice = first_choice(large, machine(hardware))
    if hardware != "portable_c":  # whose arithmetic is slower than memory
        assert choice.schedule.rounds
    bound = bind_extents(large)
    for number in choice.schedule.rounds.get(0, ()):
        assert all(holds(bound, choice.schedule, number))


def holds(kernel: Kernel, schedule: Schedule, number: int) -> list[bool]:
    found = []
    for obligation in round_obligations(kernel, schedule, number):
        if isinstance(obligation, Claim):
            found.append(obligation.verdict == "proved")
        else:
            found.append(prove(obligation.lemma).verdict == "proved")
    return found


def others(own: StatementSchedule) -> tuple[Level, ...]:
    return tuple(level for level in own.levels if level.variable != "n")


@pytest.mark.parametrize("name", ["neighbours", "crossed"])
def test_rounds_that_would_reorder_are_refused_and_refuted(name: str) -> None:
    kernel, accelerator = KERNELS[name], machine("x86_avx512")
    bound = bind_extents(kernel)
    schedule = first_choice(kernel, accelerator).schedule
    first, second = schedule.statements
    if second.within is not None:
        second = replace(second, within=None)
    if not second.levels:
        second = replace(second, levels=first.levels)
    level = replace(first.levels[0], variable="n", step=16)
    wrong = Schedule(
        (
            replace(first, levels=(level, *others(first))),
            replace(second, levels=(level, *others(second)), along=0),
        )
    )
    assert not all(holds(bound, wrong, 1))
    with pytest.raises(ScheduleError, match="lies in several rounds"):
        lower(kernel, accelerator, wrong, Producers(accelerator))


def test_the_space_has_rounds_apart_too() -> None:
    kernel, accelerator = KERNELS["centred"], machine("x86_avx512")
    big = replace(kernel, extents=tuple(replace(e, value=2048) for e in kernel.extents))
    choice = first_choice(big, accelerator)
    assert choice.schedule.rounds
    around = space(
        accelerator, bind_extents(big), choice.starts, Producers(accelerator), 1, choice.schedule
    )
    assert around.build(around.first) == choice.schedule
    apart = around.build({**around.first, "0.rounds": 1})
    assert not apart.rounds


def test_a_soft_max_in_rounds_is_within_its_bound() -> None:
    kernel = KERNELS["softmax"]
    accelerator = load_hardware("native")
    result = map_kernel(kernel, accelerator, Options())
    x = np.random.default_rng(0).normal(size=(1000, 60)).astype(np.float32)
    want = np.asarray(interpret(kernel, {"X": x})["Y"])
    got = result.compile()(x)["Y"]
    np.testing.assert_allclose(got, want, rtol=1e-4)  # the pipeline derives the exact bound


def test_a_single_round_has_no_loop_that_another_one_could_be_taken_for() -> None:
    kernel = replace(
        KERNELS["softmax"],
        extents=tuple(
            replace(e, value=20 if e.name == "N" else 40) for e in KERNELS["softmax"].extents
        ),
    )
    accelerator = machine("x86_avx512")
    schedule = first_choice(kernel, accelerator).schedule
    level = Level("n", 16)
    made = Schedule(
        tuple(
            replace(own, levels=(level, *others(own)), along=0 if n else None)
            for n, own in enumerate(schedule.statements)
        )
    )
    inputs = {"X": np.random.default_rng(0).normal(size=(20, 40)).astype(np.float32)}
    want = np.asarray(interpret(kernel, inputs)["Y"])
    got = run_lowered(lower(kernel, accelerator, made), accelerator, inputs, kernel=kernel)["Y"]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4)


def test_threads_share_rounds_and_not_what_is_inside_of_them() -> None:
    # The sums along rows are too little work for threads to share them alone.
    kernel = replace(
        KERNELS["centred"],
        extents=tuple(
            replace(e, value=240) if e.name == "N" else e for e in KERNELS["centred"].extents
        ),
    )
    result = map_kernel(kernel, machine("x86_avx512"), Options(threads=2))
    assert result.schedule.rounds
    for first, others in result.schedule.rounds.items():
        members = [result.schedule.statements[n] for n in (first, *others)]
        assert len({member.levels[0].parallel for member in members}) == 1
        if any(level.parallel for member in members for level in member.levels):
            assert members[0].levels[0].parallel
    assert any(own.levels and own.levels[0].parallel for own in result.schedule.statements)
    agrees(kernel, result.lowered, machine("x86_avx512"), 4)


def separable(rows: int, channels: int) -> Kernel:
    text = f"""kernel separable(H = {rows}, C = {channels}) {{
      in X : f32[2*H, 2*H, C] pad 0  const D : f32[3, 3, C]  const F : f32[C, 2*C]
      local T : f32[H, H, C]  out Y : f32[H, H, 2*C]
      T[p, q, c] += X[2*p + r - 1, 2*q + t - 1, c] * D[r, t, c]
      Y[p, q, k] += T[p, q, c] * F[c, k]
    }}"""
    return parse_module(text).kernels[0]


@pytest.mark.parametrize(("threads", "are_shared"), [(2, True), (11, False)])
@pytest.mark.parametrize("rows", [28])
def test_threads_have_as_many_rounds_each(rows: int, threads: int, are_shared: bool) -> None:
    kernel = separable(rows, 256)
    one, several = (
        map_kernel(kernel, machine("x86_avx512"), Options(threads=n)).schedule for n in (1, threads)
    )
    assert one.rounds
    # Neither has a multiple of eleven rows: apart, statements are shared out evenly.
    assert bool(several.rounds) == are_shared
    if are_shared:
        (first,) = {several.statements[root].levels[0] for root in several.rounds}
        assert first.parallel
        assert evenness(rows, first.step, threads, False) > 0.9
