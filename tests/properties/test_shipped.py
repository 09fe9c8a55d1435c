"""Random kernels of all types and operations on the machines that ship."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import Choice, choose
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.needles.needles import needles
from isamap.run.build import build_shared
from isamap.run.worker import Loaded, Worker
from isamap.sim.lowered import run_lowered
from tests.profiles import examples
from tests.strategies import kernels

Arrays = dict[str, np.ndarray]

GENERAL = ("portable_c", "x86_avx2", "x86_avx512")
"""Machines on which every kernel maps: they extend the portable one."""


@lru_cache
def machine(name: str) -> Accelerator:
    return load_hardware(name)


def mapped(kernel: Kernel, name: str) -> Choice:
    """Return the first choice; every kernel has one on these machines."""
    index, bound = needles(machine(name)), bind_extents(kernel)
    enumerations = [
        enumerate_mappings(zero_based(s), index, bound.permissions) for s in bound.statements
    ]
    return choose(kernel, machine(name), enumerations, producers=Producers(machine(name)))


def check(kernel: Kernel, outputs: Arrays, arrays: Arrays, name: str) -> None:
    results = interpret(kernel, arrays)
    expected = {b.name: results[b.name] for b in kernel.buffers if b.role in ("out", "inout")}
    found = compare(kernel, arrays, expected, {n: outputs[n] for n in expected})
    assert found.ok, f"{name}: {found}\n{print_kernel(kernel)}"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Yield a process that runs compiled code."""
    with Worker() as process:
        yield process


@given(kernels(), st.sampled_from(GENERAL))
def test_every_kernel_maps_and_computes_what_the_interpreter_computes(
    kernel: Kernel, name: str
) -> None:
    arrays = random_inputs(kernel, seed=1)
    lowered = mapped(kernel, name).lowered
    check(kernel, run_lowered(lowered, machine(name), arrays, kernel=kernel), arrays, name)


@examples(0.2)
@given(kernels(), st.sampled_from([n for n in GENERAL if runnable(machine(n)) is None]))
def test_compiled_code_computes_what_the_interpreter_computes(
    worker: Worker, kernel: Kernel, name: str
) -> None:
    arrays = random_inputs(kernel, seed=1)
    source = emit_c(mapped(kernel, name).lowered, machine(name), kernel)
    outputs = worker.run(Loaded(build_shared(source, machine(name)), source), arrays, {})
    assert isinstance(outputs, dict), outputs
    check(kernel, outputs, arrays, name)
