"""Every first schedule, and random ones around it, compute what the kernel means."""

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from isamap.diagnostics import NoMappingError, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import Choice, choose
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.fragments.produce import Producers
from isamap.schedule.space import space
from isamap.sim.lowered import run_lowered
from isamap.text.load import load_module, parse_module

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "kernels.ir").kernels}
NO_GEMM = {"bits", "triangle_by_coordinates", "half"}
SYMBOLS = {"M": 6, "N": 37, "K": 19, "H": 13, "C": 21}


@cache
def machine(name: str) -> Accelerator:
    return load_hardware(name)


def first_choice(kernel: Kernel, accelerator: Accelerator) -> Choice:
    found = [
        enumerate_mappings(zero_based(s), accelerator, kernel.permissions)
        for s in bind_extents(kernel).statements
    ]
    return choose(kernel, accelerator, found)


def agrees(
    kernel: Kernel,
    lowered: LoweredKernel,
    accelerator: Accelerator,
    seed: int,
    sizes: Mapping[str, int] = MappingProxyType(SYMBOLS),
) -> None:
    """Run both on small whole numbers, on which no rounding happens."""
    rng = np.random.default_rng(seed)
    symbols = {name: sizes[name] for name in kernel.symbols}
    arrays = {}
    for buffer in bind_extents(kernel).buffers:
        if buffer.role in ("in", "const", "inout"):
            shape = [extent.evaluate(symbols) for extent in buffer.shape]
            low, high = (0, 3) if buffer.dtype.kind == "unsigned" else (-2, 3)
            if buffer.values is not None:
                low, high = 0, 9
            arrays[buffer.name] = rng.integers(low, high, shape).astype(buffer.dtype.numpy)
    expected = interpret(kernel, arrays, symbols)
    actual = run_lowered(lowered, accelerator, arrays, symbols)
    for buffer in kernel.buffers:
        if buffer.role in ("out", "inout"):
            want = np.asarray(expected[buffer.name]).astype(np.float64).ravel()
            got = np.asarray(actual[buffer.name]).astype(np.float64).ravel()
            np.testing.assert_array_equal(got, want, err_msg=buffer.name)


@pytest.mark.parametrize("hardware", ["portable_c", "x86_avx2", "x86_avx512"])
@pytest.mark.parametrize("name", KERNELS)
def test_first_schedule_computes_the_kernel(name: str, hardware: str) -> None:
    kernel = KERNELS[name]
    choice = first_choice(kernel, machine(hardware))
    agrees(kernel, choice.lowered, machine(hardware), 1)


@pytest.mark.parametrize("name", KERNELS)
def test_gemm_unit_computes_the_kernel_or_says_that_nothing_maps(name: str) -> None:
    kernel = KERNELS[name]
    if name in NO_GEMM:
        with pytest.raises(NoMappingError, match="nothing on gemm16 computes"):
            first_choice(kernel, machine("gemm16"))
        return
    choice = first_choice(kernel, machine("gemm16"))
    agrees(kernel, choice.lowered, machine("gemm16"), 2)


@pytest.mark.parametrize("hardware", ["x86_avx512", "gemm16", "portable_c"])
@pytest.mark.parametrize(
    "name",
    ["matmul", "bytes", "brain_floats", "padded_convolution", "depthwise", "matrix_vector",
     "strided_dilated_channels_first", "element_wise_chain", "symbols", "transposed_convolution"],
)  # fmt: skip
def test_schedules_around_the_first_compute_the_kernel(name: str, hardware: str) -> None:
    kernel = KERNELS[name]
    accelerator = machine(hardware)
    if hardware == "gemm16" and name in NO_GEMM:
        pytest.skip("the machine lacks the operation")
    choice = first_choice(kernel, accelerator)
    producers = Producers(accelerator)
    around = space(accelerator, bind_extents(kernel), choice.starts, producers)
    source = random.Random(name)
    done = 0
    for _ in range(60):
        assignment = {c.name: source.randrange(len(c.options)) for c in around.choices}
        for choice_name in source.sample(sorted(assignment), len(assignment) // 2):
            assignment[choice_name] = 0
        try:
            lowered = lower(kernel, accelerator, around.build(assignment), producers)
        except ScheduleError:
            continue
        agrees(kernel, lowered, accelerator, done)
        done += 1
        if done == 6:
            break
    assert done, "some schedule around the first one must be possible"


def test_a_size_may_be_called_like_an_extent_of_an_instruction() -> None:
    """The pitch of rows is called P by movements, and is a size of the kernel called P, or not."""
    accelerator, sizes = machine("gemm16"), {"P": 19, "n": 37, "rows": 6}
    assert "P" in {e.name for own in accelerator.entries for e in own.instruction.extents}
    (kernel,) = parse_module(
        """kernel named(P, n, rows) {
          in A : f32[rows, P]   in B : f32[n, P]   out C : f32[rows, n]   out D : f32[n, P]
          C[i, j] += A[i, k] * B[j, k]
          D[i, j] = B[i, j] + B[i, j]
        }"""
    ).kernels
    choice = first_choice(kernel, accelerator)
    agrees(kernel, choice.lowered, accelerator, 1, sizes)
    producers = Producers(accelerator)
    around = space(accelerator, kernel, choice.starts, producers)
    source = random.Random(3)
    for seed in range(12):
        point = {c.name: source.randrange(len(c.options)) for c in around.choices}
        try:
            lowered = lower(kernel, accelerator, around.build(point), producers)
        except ScheduleError:
            continue
        agrees(kernel, lowered, accelerator, seed, sizes)
