"""Kernels whose loops and copies threads share."""

from pathlib import Path

import numpy as np
import pytest

from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import Copy, Loop, LoweredKernel, Node
from isamap.lower.printer import print_lowered
from isamap.lower.share import share_copies
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.text.load import load_module, parse_module
from tests.emit import samples

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "threads.ir").kernels}
SIZES = {"M": 131, "N": 150, "K": 33}


def small_numbers(kernel: Kernel) -> dict[str, np.ndarray]:
    """Return inputs on which no sum rounds."""
    rng = np.random.default_rng(1)
    symbols = {name: SIZES[name] for name in kernel.symbols}
    return {
        b.name: rng.integers(-2, 3, [e.evaluate(symbols) for e in b.shape]).astype(b.dtype.numpy)
        for b in bind_extents(kernel).buffers
        if b.role in ("in", "const")
    }


@pytest.mark.parametrize("hardware", ["portable_c", "native"])
@pytest.mark.parametrize("name", ["gemm", "sized", "deep", "separable"])
def test_threads_compute_what_one_does_time_and_again(name: str, hardware: str) -> None:
    kernel = KERNELS[name]
    result = map_kernel(kernel, load_hardware(hardware), Options(threads=3))
    assert "parallel for" in print_lowered(result.lowered)
    arrays = small_numbers(kernel)
    symbols = {name: SIZES[name] for name in kernel.symbols}
    expected = interpret(kernel, arrays, symbols)
    compiled = result.compile()
    (out,) = [b.name for b in kernel.buffers if b.role == "out"]
    want = np.asarray(expected[out])
    for threads in (1, 2, 3, 4):
        # A fault of how threads meet shows in few of many calls.
        for _ in range(1 if threads == 1 else 60):
            np.testing.assert_array_equal(
                compiled.call(arrays, symbols, threads=threads)[out], want
            )


def gemm(m: int, n: int, k: int) -> LoweredKernel:
    """Return the lowered product of matrices for two threads."""
    text = (
        f"kernel gemm(M = {m}, N = {n}, K = {k}) {{ in A : f32[M, K] in B : f32[K, N]"
        " out C : f32[M, N] C[m, n] += A[m, k] * B[k, n] }"
    )
    (kernel,) = parse_module(text).kernels
    return map_kernel(kernel, load_hardware("x86_avx512"), Options(threads=2)).lowered


def is_copy(node: Node) -> bool:
    return isinstance(node, Copy)


def test_large_copies_are_shared_and_small_ones_are_not() -> None:
    large = gemm(512, 512, 512)
    assert not any(map(is_copy, large.body))
    shared = [n for n in large.body if isinstance(n, Loop) and n.parallel and is_copy(n.body[0])]
    assert len(shared) == 1
    small = samples.padded().lowered
    assert any(map(is_copy, small.body))
    assert share_copies(small) == small


def test_little_work_is_left_to_one_thread() -> None:
    assert "parallel" not in print_lowered(gemm(8, 16, 4))


def test_what_is_long_to_fetch_is_shared_though_it_is_soon_computed() -> None:
    text = (
        "kernel sums(M = {m}) {{ in A : f32[M, 768]  in B : f32[M, 768]  out C : f32[M, 768]"
        " C[m, n] = A[m, n] + B[m, n] }}"
    )
    for m, shared in ((64, True), (8, False)):
        (kernel,) = parse_module(text.format(m=m)).kernels
        result = map_kernel(kernel, load_hardware("x86_avx512"), Options(threads=2))
        assert ("parallel for" in print_lowered(result.lowered)) == shared
