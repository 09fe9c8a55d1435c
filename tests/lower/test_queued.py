"""Estimates of machines of queues: the times of the simulator, found without computing anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.lower import queued
from isamap.lower.choose import Choice, choose
from isamap.lower.cost import estimate
from isamap.lower.judge import Judge
from isamap.lower.printer import print_lowered
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.unmapped import enumerate_each
from isamap.schedule.schedule import Schedule
from isamap.sim.run import simulate
from isamap.text.load import load_module, parse_module

EXPLICIT = Path(__file__).parent.parent / "explicit"
MACHINES = {
    "sums.ir": ("gemmini", str(EXPLICIT / "array12.yaml")),
    "bytes.ir": ("vta",),
    "layers.ir": ("nvdla",),
}
LONG = """
kernel product(M = 300, N = 100, K = 500) {
  in A : s8[M, K]  in B : s8[K, N]  out C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}
kernel convolution(H = 28, W = 28, C = 32, K = 48) {
  in X : s8[H + 2, W + 2, C]  in F : s8[3, 3, C, K]  out Y : s32[H, W, K]
  Y[h, w, k] += s32(X[h + r, w + s, c]) * s32(F[r, s, c, k])
}
"""


def chosen(kernel: Kernel, machine: Accelerator) -> Choice | None:
    try:
        own = Producers(machine)
        return choose(kernel, machine, enumerate_each(kernel, machine), producers=own)
    except NoMappingError:
        return None


def both(kernel: Kernel, machine: Accelerator, choice: Choice) -> tuple[float, float]:
    """Return what is estimated of the queues, and what is simulated."""
    made = estimate(choice.lowered, machine, copies=False).busy
    return made, float(simulate(choice.lowered, machine, random_inputs(kernel, {}, 0)).cycles)


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, names in MACHINES.items() for name in names]
)
def test_short_kernels_take_the_time_of_the_simulator(
    file: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = load_hardware(name)
    seen = 0
    for kernel in load_module(EXPLICIT / file).kernels:
        choice = chosen(kernel, machine)
        if choice is not None and not kernel.symbols:
            with monkeypatch.context() as patch:
                patch.setattr(queued, "FOLLOWED", 10**9)
                made, taken = both(kernel, machine, choice)
            # What nests hand over to each other in memory is taken as a whole.
            is_copied = "copy " in print_lowered(choice.lowered)
            assert made == pytest.approx(taken, rel=0.02 if is_copied else 1e-9), kernel.name
            seen += 1
    assert seen >= 3


@pytest.mark.parametrize("name", ["product", "convolution"])
def test_iterations_that_are_not_followed_take_as_long_as_others(name: str) -> None:
    machine = load_hardware("gemmini")
    kernel = next(k for k in parse_module(LONG).kernels if k.name == name)
    choice = chosen(kernel, machine)
    assert choice is not None
    made, taken = both(kernel, machine, choice)
    assert made == pytest.approx(taken, rel=0.05)


def test_places_and_blocks_of_a_first_schedule_keep_units_busy() -> None:
    """As many cycles as the rules' own block and places take is what a search came below by 1.6."""
    machine = load_hardware("gemmini")
    (kernel,) = parse_module(
        "kernel k(M = 128, N = 96, K = 64) {\n  in A : s8[M, K]  in B : s8[K, N]  "
        "out C : s32[M, N]\n  C[m, n] += s32(A[m, k]) * s32(B[k, n])\n}\n"
    ).kernels
    choice = chosen(kernel, machine)
    assert choice is not None
    _, taken = both(kernel, machine, choice)
    calls = 128 * 96 * 64 / 16**3
    assert taken <= 1.3 * 16 * calls


def test_copies_of_the_host_take_time_unless_they_are_said_not_to() -> None:
    machine = load_hardware("gemmini")
    (kernel,) = parse_module(
        "kernel k(M = 40, N = 40, K = 40) {\n  in A : s8[K, M]  in B : s8[K, N]  "
        "out C : s32[N, M]\n  C[n, m] += s32(A[k, m]) * s32(B[k, n])\n}\n"
    ).kernels
    choice = chosen(kernel, machine)
    assert choice is not None
    whole = estimate(choice.lowered, machine)
    without = estimate(choice.lowered, machine, copies=False)
    assert without.parts["copies"] == 0
    assert (whole.cycles > without.cycles) == (whole.parts["copies"] > 0)


def test_more_places_let_units_go_on() -> None:
    machine = load_hardware("gemmini")
    (kernel,) = parse_module(
        "kernel k(M = 16, N = 16, K = 640) {\n  in A : s8[M, K]  in B : s8[K, N]  "
        "out C : s32[M, N]\n  C[m, n] += s32(A[m, k]) * s32(B[k, n])\n}\n"
    ).kernels
    choice = chosen(kernel, machine)
    assert choice is not None
    (own,) = choice.schedule.statements
    judge = Judge(machine, Producers(machine))
    taken = [
        judge.estimate(judge.lowered(kernel, Schedule((replace(own, buffers=(n, n, 1)),)))).cycles
        for n in (1, 2, 3)
    ]
    assert taken == sorted(taken, reverse=True)
    assert len(set(taken)) > 1


NESTED = "kernel k(M = 100, N = 36, K = 120) {\n  in A : f32[K, M]  in B : f32[K, N]  "
NESTED += "out C : f32[M, N]\n  C[m, n] += A[k, m] * B[k, n]\n}\n"


def test_loops_inside_others_are_followed_until_they_repeat() -> None:
    """Each block begins while the one before is stored: its first turns are no measure."""
    machine = load_hardware(str(EXPLICIT / "rows10.yaml"))
    (kernel,) = parse_module(NESTED).kernels
    choice = chosen(kernel, machine)
    assert choice is not None
    (own,) = choice.schedule.statements
    judge = Judge(machine, Producers(machine))
    (k,) = (level for level in own.levels if level.variable == "k")
    for step in (1, 2, k.step):
        levels = tuple(replace(one, step=step) if one is k else one for one in own.levels)
        lowered = judge.lowered(kernel, Schedule((replace(own, levels=levels),)))
        made = estimate(lowered, machine, copies=False).busy
        taken = float(simulate(lowered, machine, random_inputs(kernel, {}, 0)).cycles)
        assert made == pytest.approx(taken, rel=0.05), step


def test_steps_of_a_reduction_are_as_long_as_loads_take() -> None:
    """One step brings what it needs to one register: the next one waits for it, and for memory."""
    machine = load_hardware(str(EXPLICIT / "rows10.yaml"))
    (kernel,) = parse_module(NESTED).kernels
    choice = chosen(kernel, machine)
    assert choice is not None
    _, taken = both(kernel, machine, choice)
    assert taken < 1.5 * 100 * 36 * 120 / 60  # two units take two cycles for 60 products
