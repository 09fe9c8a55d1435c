"""Local buffers that lie where an output does: which may, and that nothing is lost by it."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError, Source
from isamap.ir.statements import bind_extents
from isamap.lower.lent import lent_places
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.proof.claim import Claim
from isamap.proof.lent import lent_claims
from isamap.schedule.reader import parse_schedule
from isamap.schedule.space import space
from isamap.text.load import load_module, parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "lent.ir").kernels}
LENT = {"softmax": (("E", "Y"),), "product": (("T", "Y"),), "two": (("P", "Y"),)}
MACHINES = ["portable_c", "x86_avx2", "x86_avx512"]


@pytest.mark.parametrize("name", KERNELS)
def test_a_local_lies_in_an_output_where_neither_is_needed_at_the_other_s_time(name: str) -> None:
    choice = first_choice(KERNELS[name], machine("x86_avx2"))
    assert choice.lowered.lent == LENT.get(name, ())
    arrays = {array.name for array in choice.lowered.arrays}
    assert not arrays & {local for local, _ in choice.lowered.lent}


@pytest.mark.parametrize("name", LENT)
def test_where_units_are_queues_a_local_keeps_its_own_place(name: str) -> None:
    # Stores to an array hold back loads from it, and no cache is the better for one array less.
    accelerator, kernel = machine("x86_avx2"), bind_extents(KERNELS[name])
    schedule = first_choice(KERNELS[name], accelerator).schedule
    assert lent_places(kernel, schedule, accelerator) == dict(LENT[name])
    for queues in ("interlocked", "tokens"):
        assert lent_places(kernel, schedule, replace(accelerator, queues=queues)) == {}


@pytest.mark.parametrize("hardware", MACHINES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_code_computes_the_kernel(name: str, hardware: str) -> None:
    accelerator = machine(hardware)
    agrees(KERNELS[name], first_choice(KERNELS[name], accelerator).lowered, accelerator, 5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LENT)
def test_so_do_other_schedules_with_threads_and_in_rounds(name: str, seed: int) -> None:
    accelerator, generator = load_hardware("x86_avx2"), random.Random(seed)
    kernel = KERNELS[name]
    large = replace(
        kernel, extents=tuple(replace(e, value=3 * (e.value or 1)) for e in kernel.extents)
    )
    result = map_kernel(large, accelerator, Options(threads=2, rewrite=()))
    starts = [(own,) for own in result.schedule.statements]
    points = space(
        accelerator, bind_extents(large), starts, Producers(accelerator), 2, result.schedule
    )
    assert result.lowered.lent == LENT[name]
    for _ in range(3):
        point = {c.name: generator.randrange(len(c.options)) for c in points.choices}
        try:
            lowered = lower(large, accelerator, points.build(point))
        except ScheduleError:
            continue
        agrees(large, lowered, accelerator, seed)


@pytest.mark.parametrize("name", LENT)
def test_the_certificate_claims_it(name: str) -> None:
    found = [c for c in claims(name, None) if c.name == "lent"]
    assert [c.verdict for c in found] == ["proved"]


@pytest.mark.parametrize(
    ("name", "lent"),
    [
        ("later", ("E", "Y")),
        ("turned", ("E", "Y")),
        ("neighbour", ("E", "Y")),
        ("used_before", ("E", "Y")),
        ("half", ("E", "Y")),
        ("other_type", ("E", "Y")),
        ("softmax", ("M", "Y")),
        ("softmax", ("Y", "E")),
        ("softmax", ("X", "Y")),
        ("softmax", ("E", "nowhere")),
    ],
)
def test_and_refutes_what_would_lose_something(name: str, lent: tuple[str, str]) -> None:
    assert [c.verdict for c in claims(name, (lent,)) if c.name == "lent"] == ["refuted"]


def test_two_buffers_in_one_place_are_refuted() -> None:
    both = (("P", "Y"), ("Q", "Y"))
    assert {c.verdict for c in claims("two", both) if c.name == "lent"} == {"refuted"}


def claims(name: str, lent: tuple[tuple[str, str], ...] | None) -> list[Claim]:
    """Return what is claimed of buffers in the places of others: as they are, or as ``lent``."""
    kernel = bind_extents(KERNELS[name])
    choice = first_choice(kernel, machine("x86_avx512"))
    schedule, lowered = choice.schedule, choice.lowered
    if lent is not None:
        locals_ = {local for local, _ in lent}
        kept = tuple(a for a in lowered.arrays if a.name not in locals_)
        lowered = replace(lowered, lent=lent, arrays=kept)
    return list(lent_claims(kernel, schedule, lowered))


def test_what_is_computed_in_the_registers_of_the_taker_reads_what_it_wrote() -> None:
    text = """kernel taken(M = 8, N = 32, K = 3) {
      in A : f32[M, K]  in B : f32[K, N]  local T : f32[M, N]  out E : f32[M, N]  out Y : f32[M, N]
      T[m, n] += A[m, k] * B[k, n]
      E[m, n] = max(T[m, n], 0)
      Y[m, n] = E[m, n] + E[m, n]
    }"""
    written = """schedule taken {
      T { loops m/8, n/16, k/1 }
      E { loops m/4, n/16 }
      Y { within E }
    }"""
    options = Options(schedule=parse_schedule(Source("taken.schedule", written)))
    result = map_kernel(parse_module(text).kernels[0], load_hardware("x86_avx512"), options)
    assert result.lowered.lent == (("T", "E"),)
    (claim,) = lent_claims(bind_extents(result.mapped), result.schedule, result.lowered)
    assert (claim.verdict, claim.detail) == ("proved", "")
