import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.sizes import (
    array_bytes,
    infer_symbols,
    iterations,
    sample_symbols,
    shape_of,
    variable_extents,
)
from isamap.text.load import parse_module

NOTHING = LoweredKernel("k", (), (), ())


def _kernel(extents: str, shapes: str = "A : f32[M, K]") -> Kernel:
    text = f"kernel k({extents}) {{ in {shapes} out C : f32[M] C[m] += A[m, k] }}"
    return parse_module(text).kernels[0]


def test_iterations_are_those_of_all_statements() -> None:
    kernel = parse_module(
        "kernel k(N = 4, M = 3) { in A : f32[N, M] local T : f32[N] out Y : f32[N]"
        " T[n] += A[n, m]\n  Y[n] = T[n] + T[n] }"
    ).kernels[0]
    assert iterations(kernel, {}) == 4 * 3 + 4
    assert variable_extents(kernel, kernel.statements[0], {}) == {"n": 4, "m": 3}


def test_arrays_are_counted_in_bytes() -> None:
    assert array_bytes(_kernel("M = 10, K = 20"), {}) == 4 * (10 * 20 + 10)


def test_shapes_take_symbols() -> None:
    assert shape_of(_kernel("M, K = 20"), "A", {"M": 7}) == (7, 20)


def test_sizes_that_are_tried_are_no_multiple_of_a_tile() -> None:
    assert sample_symbols(_kernel("M, K"), NOTHING) == {"M": 37, "K": 37}


def test_no_symbols_need_no_sizes() -> None:
    assert sample_symbols(_kernel("M = 2, K = 3"), NOTHING) == {}


def test_symbols_follow_from_shapes() -> None:
    arrays = {"A": np.zeros((5, 9), np.float32)}
    assert infer_symbols(_kernel("M, K"), arrays) == {"M": 5, "K": 9}


def test_symbols_follow_from_linear_extents() -> None:
    kernel = _kernel("M, K", "A : f32[M, 2*K + 1]")
    arrays = {"A": np.zeros((5, 9), np.float32)}
    assert infer_symbols(kernel, arrays) == {"M": 5, "K": 4}


def test_shapes_that_disagree_are_refused() -> None:
    kernel = _kernel("M, K", "A : f32[M, K] in B : f32[M]")
    arrays = {"A": np.zeros((5, 9), np.float32), "B": np.zeros(6, np.float32)}
    with pytest.raises(ArgumentsError, match="M is 5 by dimension 0 of A but 6 by dimension 0"):
        infer_symbols(kernel, arrays)


def test_a_symbol_without_shape_is_refused() -> None:
    with pytest.raises(ArgumentsError, match=r"extent M of kernel 'k' has no value"):
        infer_symbols(_kernel("M, K"), {})
