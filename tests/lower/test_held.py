"""Local buffers of rounds: as long as a round needs them, and no longer than is right."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.index import product
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.claim import Claim
from isamap.proof.evidence import Evidence, obligations
from isamap.schedule.rounds import rounds_of
from isamap.schedule.schedule import Schedule
from isamap.text.load import load_module
from tests.lower.test_lowering import agrees, machine
from tests.lower.test_rounds import roots, without_rounds
from tests.profiles import examples

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "rounds.ir").kernels}
HELD = {
    "softmax": {"M", "E", "S"},
    "centred": {"S", "D", "V"},
    "turned": set(),  # in its rounds, whose index is not the outermost one of Y
    "overwritten": set(),
}


def in_rounds(kernel: Kernel, threads: int = 1) -> tuple[Schedule, LoweredKernel] | None:
    """Return the first schedule with all statements in one loop, if there are rounds."""
    hardware = machine("x86_avx512")
    whole = map_kernel(kernel, hardware, Options(threads=threads, rewrite=())).schedule
    trial = rounds_of(bind_extents(kernel), without_rounds(whole), roots(whole))
    return None if trial is None else (trial, lower(kernel, hardware, trial))


def sized(kernel: Kernel, **sizes: int) -> Kernel:
    """Return a kernel with other values of its extents."""
    extents = tuple(replace(e, value=sizes.get(e.name, e.value)) for e in kernel.extents)
    return replace(kernel, extents=extents)


def held(kernel: Kernel, lowered: LoweredKernel) -> set[str]:
    """Return the buffers that are shorter than their shape."""
    shapes = {b.name: product(b.shape) for b in bind_extents(kernel).buffers}
    return {a.name for a in lowered.arrays if a.size != shapes.get(a.name, a.size)}


def claims(kernel: Kernel, schedule: Schedule, lowered: LoweredKernel) -> dict[str, set[str]]:
    """Return what became of the claims that need no solver, by their kind."""
    bound = bind_extents(kernel)
    evidence = Evidence(kernel, (), bound, machine("x86_avx512"), schedule, lowered)
    found: dict[str, set[str]] = {}
    for one in obligations(evidence):
        if isinstance(one, Claim):
            found.setdefault(one.name, set()).add(one.verdict)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", HELD)
def test_buffers_have_the_rows_of_a_round(name: str, threads: int) -> None:
    made = in_rounds(KERNELS[name], threads)
    assert made is not None
    schedule, lowered = made
    short = held(KERNELS[name], lowered)
    assert short <= HELD[name]
    assert bool(short) == bool(HELD[name])
    shared = schedule.statements[0].levels[0].parallel
    assert all(a.private == shared for a in lowered.arrays if a.name in short)
    found = claims(KERNELS[name], schedule, lowered)
    assert found.get("held", {"proved"}) == found["arrays"] == {"proved"}


def test_a_buffer_too_short_and_one_that_threads_lack_are_refuted() -> None:
    kernel = KERNELS["centred"]
    made = in_rounds(kernel)
    assert made is not None
    schedule, lowered = made

    def changed(**more: object) -> LoweredKernel:
        arrays = (replace(a, **more) if a.name == "D" else a for a in lowered.arrays)  # type: ignore[arg-type]
        return replace(lowered, arrays=tuple(arrays))

    step = schedule.statements[0].levels[0].step
    assert lowered.array("D").size.constant == step * 700
    wrong = claims(kernel, schedule, changed(size=product(()) * 700 * (step + 1)))
    assert "refuted" in wrong["held"]
    assert "refuted" in wrong["arrays"]


def test_rows_of_one_thread_are_shared_out_by_the_outermost_loop_alone() -> None:
    kernel = KERNELS["centred"]
    made = in_rounds(kernel, 2)
    assert made is not None
    schedule = made[0]
    assert schedule.statements[0].levels[0].parallel
    apart = Schedule(tuple(replace(own, along=None) for own in schedule.statements))
    arrays = tuple(
        replace(a, private=a.name == "D")
        for a in lower(kernel, machine("x86_avx512"), apart).arrays
    )
    plain = replace(lower(kernel, machine("x86_avx512"), apart), arrays=arrays)
    assert "refuted" in claims(kernel, apart, plain)["held"]


@given(st.integers(2, 70), st.integers(1, 70), st.sampled_from([1, 2]))
@examples(0.12)
def test_rounds_with_short_buffers_compute_the_same(n: int, c: int, threads: int) -> None:
    kernel = sized(KERNELS["centred"], N=n, C=c)
    made = in_rounds(kernel, threads)
    if made is not None:
        agrees(kernel, made[1], machine("x86_avx512"), 3)
