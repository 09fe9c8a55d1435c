"""Random kernels on random machines: whatever is found, scheduled and emitted is right."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import NoMappingError, ScheduleError
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import Choice, choose
from isamap.lower.grouping import group_mappings
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.checks.legal import violations
from isamap.mapping.find import describe, enumerate_mappings
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.groups import grouped
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import needles
from isamap.run.build import build_shared
from isamap.run.worker import Loaded, Worker
from isamap.schedule.space import space
from isamap.sim.lowered import run_lowered
from tests.profiles import examples
from tests.properties.kernels import Case, pairs
from tests.properties.machines import load

MAPPINGS = 12
"""Mappings of one statement that are lowered and run; they are sorted, so the choice is spread."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A kernel and a machine, with random inputs and what the interpreter computes from them."""

    case: Case
    kernel: Kernel
    machine: Accelerator
    symbols: dict[str, int]
    arrays: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]

    def enumerations(self) -> tuple[Enumeration, ...]:
        bound = bind_extents(self.kernel)
        return tuple(
            enumerate_mappings(zero_based(s), self.machine, bound.permissions)
            for s in bound.statements
        )

    def together(self) -> Iterator[tuple[Kernel, int, tuple[Enumeration, ...]]]:
        """Yield the kernel with statements that an instruction computes together as one.

        With it come the number of that statement and the legal mappings of all.
        """
        alone = self.enumerations()
        for group, found in group_mappings(self.kernel, needles(self.machine)):
            rest = alone[group.first + group.count :]
            one = grouped(self.kernel, (group,))
            yield one, group.first, (*alone[: group.first], found, *rest)

    def is_right(self, outputs: dict[str, np.ndarray]) -> str:
        """Return '' where the outputs are those of the interpreter within the error bound."""
        actual = {n: outputs[n] for n in self.expected}
        found = compare(self.kernel, self.arrays, self.expected, actual, self.symbols)
        return "" if found.ok else f"{found}\n{self.case.text}"

    def check(self, lowered: LoweredKernel, what: str) -> None:
        """Execute a lowered kernel, every access checked, and compare."""
        outputs = run_lowered(lowered, self.machine, self.arrays, self.symbols, kernel=self.kernel)
        wrong = self.is_right(outputs)
        assert not wrong, f"{what}: {wrong}"


def problem(case: Case, description: str) -> Problem:
    kernel, machine = case.load(), _machine(description)
    symbols = dict(case.symbols)
    arrays = random_inputs(kernel, symbols, seed=1)
    results = interpret(kernel, arrays, symbols)
    written = [b.name for b in kernel.buffers if b.role in ("out", "inout")]
    return Problem(case, kernel, machine, symbols, arrays, {n: results[n] for n in written})


@lru_cache(maxsize=16)
def _machine(description: str) -> Accelerator:
    return load(description)


def first_choice(found: Problem, enumerations: tuple[Enumeration, ...]) -> Choice:
    return choose(found.kernel, found.machine, enumerations, symbols=found.symbols)


@examples(0.15)
@given(pairs())
def test_every_mapping_is_legal_and_computes_what_the_interpreter_computes(
    pair: tuple[Case, str],
) -> None:
    found = problem(*pair)
    alone = found.enumerations()
    numbers = range(len(alone))
    ways = [(found.kernel, number, alone) for number in numbers] + list(found.together())
    for kernel, number, enumerations in ways:
        enumeration = enumerations[number]
        step = -(-len(enumeration.mappings) // MAPPINGS) or 1
        for mapping in enumeration.mappings[::step]:
            assert violations(mapping.matching, found.kernel.permissions) == (), describe(mapping)
            one = Enumeration(enumeration.statement, (mapping,), True)
            chosen = (*enumerations[:number], one, *enumerations[number + 1 :])
            try:
                choice = choose(kernel, found.machine, chosen, symbols=found.symbols)
            except NoMappingError:
                continue  # legal, but this machine cannot move its operands
            found.check(choice.lowered, describe(mapping))


@examples(0.25)
@given(pairs())
def test_portable_instructions_compute_every_kernel(pair: tuple[Case, str]) -> None:
    found = problem(*pair)
    found.check(first_choice(found, found.enumerations()).lowered, "first choice")


@examples(0.15)
@given(pairs(), st.data())
def test_every_schedule_computes_what_the_interpreter_computes(
    pair: tuple[Case, str], data: st.DataObject
) -> None:
    found = problem(*pair)
    choice = first_choice(found, found.enumerations())
    producers = Producers(found.machine)
    around = space(found.machine, bind_extents(found.kernel), choice.starts, producers)
    assignment = around.first
    for name in data.draw(st.permutations([c.name for c in around.choices]), label="choices"):
        count = next(len(c.options) for c in around.choices if c.name == name)
        option = data.draw(st.integers(0, count - 1), label=name)
        wanted = {**assignment, name: option}
        try:
            lowered = lower(found.kernel, found.machine, around.build(wanted), producers)
        except ScheduleError:
            continue  # it contradicts the choices before it, and the message says how
        assignment = wanted
        found.check(lowered, f"schedule {assignment}")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Yield a process that runs compiled code."""
    with Worker() as process:
        yield process


@examples(0.1)
@given(pairs())
def test_compiled_code_computes_what_the_interpreter_computes(
    worker: Worker, pair: tuple[Case, str]
) -> None:
    found = problem(*pair)
    lowered = first_choice(found, found.enumerations()).lowered
    source = emit_c(lowered, found.machine, found.kernel)
    compiled = Loaded(build_shared(source, found.machine), source)
    outputs = worker.run(compiled, found.arrays, found.symbols)
    assert isinstance(outputs, dict), outputs
    wrong = found.is_right(outputs)
    assert not wrong, f"{wrong}\n{source.functions}"
