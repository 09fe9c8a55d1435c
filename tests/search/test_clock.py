import shutil
from dataclasses import replace

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.produce import Producers
from isamap.schedule.space import Space, space
from isamap.text.load import parse_module
from isamap_search.budget import Budget
from isamap_search.clock import Clock
from isamap_search.objective import Candidate, Model, rank
from isamap_search.records import Record, described, recalled
from isamap_search.study import search

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

KERNEL = parse_module(
    "kernel mm(M = 24, N = 20, K = 32) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N]"
    " C[m, n] += A[m, k] * B[k, n] }"
).kernels[0]


@pytest.fixture(scope="module")
def machine() -> Accelerator:
    return load_hardware("portable_c")


@pytest.fixture(scope="module")
def model(machine: Accelerator) -> Model:
    return Model(KERNEL, machine, _space(KERNEL, machine), {})


def _space(kernel: Kernel, machine: Accelerator) -> Space:
    bound = bind_extents(kernel)
    found = [enumerate_mappings(s, machine, kernel.permissions) for s in bound.statements]
    choice = choose(kernel, machine, found)
    starts = [[s] for s in choice.schedule.statements]
    return space(machine, bound, starts, Producers(machine))


def _clock(machine: Accelerator) -> Clock:
    return Clock(KERNEL, machine, random_inputs(KERNEL, {}, 0), {}, 1)


def _candidates(model: Model) -> list[Candidate]:
    return rank(model, 3, seed=0)


def test_candidates_are_timed(machine: Accelerator, model: Model) -> None:
    candidates = _candidates(model)
    with _clock(machine) as clock:
        seconds = clock(candidates)
    assert clock.fault is None
    assert len(seconds) == len(candidates)
    assert all(s is not None and 0 < s < 1 for s in seconds)


def test_what_the_compiler_refuses_is_none(machine: Accelerator, model: Model) -> None:
    assert machine.toolchain is not None
    broken = replace(machine, toolchain=replace(machine.toolchain, flags=("--no-such-flag",)))
    with _clock(broken) as clock:
        assert clock(_candidates(model)[:1]) == [None]
    assert clock.fault is not None
    assert "refuses" in clock.fault.diagnostics[0].message


def test_a_search_on_the_machine_is_never_worse_than_its_start(
    machine: Accelerator, model: Model
) -> None:
    with _clock(machine) as clock:
        found = search(model, Budget(trials=5), 0, clock)
    assert found.measured
    assert found.first is not None
    assert found.score <= found.first


def test_the_model_alone_is_reproducible(machine: Accelerator) -> None:
    models = [Model(KERNEL, machine, _space(KERNEL, machine), {}) for _ in range(2)]
    first, second = (search(m, Budget(trials=8), seed=5) for m in models)
    assert first.best is not None
    assert second.best is not None
    assert first.best.schedule == second.best.schedule
    assert first.scores == second.scores


def test_assignments_survive_a_record(model: Model) -> None:
    for candidate in _candidates(model):
        assignment = model.assignment(candidate.point)
        record = Record(described(model.space, assignment), 1.0)
        assert recalled(model.space, record) == assignment


def test_a_record_of_another_space_is_not_recalled(model: Model) -> None:
    words = described(model.space, model.space.first)
    assert recalled(model.space, Record(words[1:], 1.0)) is None
    renamed = tuple((name, f"99: {text}") for name, text in words)
    assert recalled(model.space, Record(renamed, 1.0)) is None
