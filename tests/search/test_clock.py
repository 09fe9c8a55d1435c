import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from isamap.diagnostics import ToolError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.fragments.produce import Producers
from isamap.run.build import build_shared
from isamap.run.process import run_limited
from isamap.run.worker import Loaded
from isamap.schedule.space import Space, space
from isamap.text.load import parse_module
from isamap_search.budget import Budget
from isamap_search.clock import Clock
from isamap_search.code_size import code_bytes
from isamap_search.features import features
from isamap_search.objective import Candidate, Model, rank
from isamap_search.plan import Plan
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


TINY = parse_module("kernel one { in A : f32[1] in B : f32[1] out C : f32[1] C[i] = A[i] * B[i] }")
"""It has no loops, so that many of its schedules make the same code."""


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


def test_what_makes_the_same_code_is_tried_once() -> None:
    (kernel,), machine = TINY.kernels, load_hardware("x86_avx2")
    found = [enumerate_mappings(kernel.statements[0], machine, kernel.permissions)]
    choice = choose(kernel, machine, found)
    starts = [[s] for s in choice.schedule.statements]
    every_choice = space(machine, kernel, starts, Producers(machine), like=choice.schedule)
    model = Model(kernel, machine, every_choice, {})
    every = [c for p in product(*map(range, model.sizes)) if (c := model.candidate(p))]
    assert len({repr(c.schedule) for c in every}) > len({repr(c.lowered) for c in every})
    ranked = rank(model, 10_000, seed=0)
    assert len({repr(c.lowered) for c in ranked}) == len(ranked)


def _candidates(model: Model) -> list[Candidate]:
    return rank(model, 3, seed=0)


def test_candidates_are_timed_by_turns(machine: Accelerator, model: Model) -> None:
    candidates = _candidates(model)
    with _clock(machine) as clock:
        samples = clock(candidates, 3)
        again = clock(candidates[1:], 2)
    assert clock.fault is None
    assert [len(own or ()) for own in samples] == [3] * len(candidates)
    assert [len(own or ()) for own in again] == [2] * (len(candidates) - 1)
    assert all(0 < s < 1 for own in samples for s in own or ())


def test_what_the_compiler_refuses_has_no_samples(machine: Accelerator, model: Model) -> None:
    assert machine.toolchain is not None
    broken = replace(machine, toolchain=replace(machine.toolchain, flags=("--no-such-flag",)))
    with _clock(broken) as clock:
        assert clock(_candidates(model)[:1], 3) == [None]
    assert clock.fault is not None
    assert "refuses" in clock.fault.diagnostics[0].message


def test_what_crashes_takes_the_others_not_along(machine: Accelerator, model: Model) -> None:
    class Crashing(Clock):
        """Compiles a fault of the code into the second candidate."""

        def _build(self, candidate: Candidate) -> Loaded | None:
            if candidate != candidates[1]:
                return super()._build(candidate)
            loaded = super()._build(candidate)
            assert loaded is not None
            text, entry = loaded.source.functions, loaded.source.entry
            brace = text.index("{", text.index(f"int {entry}("))
            fault = text[: brace + 1] + "\n*(volatile int *)0 = 1;" + text[brace + 1 :]
            source = replace(loaded.source, functions=fault)
            return replace(loaded, path=build_shared(source, machine), source=source)

    candidates = _candidates(model)
    with Crashing(KERNEL, machine, random_inputs(KERNEL, {}, 0), {}, 1) as clock:
        samples = clock(candidates, 2)
    assert [own is None for own in samples] == [c == candidates[1] for c in candidates]
    assert clock.fault is not None


def test_a_search_on_the_machine_is_never_worse_than_its_start(
    machine: Accelerator, model: Model
) -> None:
    with _clock(machine) as clock:
        found = search(model, Budget(trials=5), 0, clock)
    assert found.measured
    assert found.first is not None
    assert found.score is not None
    assert found.score <= found.first


def test_time_and_size_are_searched_for_together(machine: Accelerator, model: Model) -> None:
    plan = Plan(sampler="nsga2", objectives=("time", "size", "memory"))
    with _clock(machine) as clock:
        found = search(model, Budget(trials=6), 0, clock, plan)
    assert found.best is not None
    assert found.front
    for _, (time, size, memory) in found.values:
        assert 0 < time < 1000
        assert 100 < size < 100_000
        assert memory >= 0


def test_the_size_of_code_grows_with_the_code(machine: Accelerator, tmp_path: Path) -> None:
    sizes = []
    for count in (1, 100):
        text = "".join(f"int f{n}(int x) {{ return x * {n} + 7; }}\n" for n in range(count))
        (tmp_path / "f.c").write_text(text)
        command = ["gcc", "-shared", "-fPIC", "-O1", str(tmp_path / "f.c"), "-o"]
        assert run_limited([*command, str(tmp_path / f"{count}.so")], 60.0).code == 0
        sizes.append(code_bytes(tmp_path / f"{count}.so"))
    assert 3 * 99 <= sizes[1] - sizes[0] <= 16 * 99


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF" + b"\x02" * 80])
def test_the_size_of_what_is_no_library_is_not_known(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.so").write_bytes(content)
    with pytest.raises(ToolError, match="no ELF file"):
        code_bytes(tmp_path / "x.so")


def test_the_model_alone_is_reproducible(machine: Accelerator) -> None:
    models = [Model(KERNEL, machine, _space(KERNEL, machine), {}) for _ in range(2)]
    first, second = (search(m, Budget(trials=8), seed=5) for m in models)
    assert first.best is not None
    assert second.best is not None
    assert first.best.schedule == second.best.schedule
    assert first.values == second.values


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


def test_features_tell_candidates_apart(model: Model) -> None:
    found = [features(c, KERNEL, {}) for c in rank(model, 12, seed=0)]
    assert len({tuple(sorted(own.items())) for own in found}) == len(found)
    assert {name for own in found for name in own} >= {"calls", "pitch 0", "block 0.0"}
