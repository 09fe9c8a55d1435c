"""numpy's products of matrices, by the OpenBLAS that it brings."""

from collections.abc import Iterator

import numpy as np

from beside import inputs
from beside.cases import Case
from beside.inputs import Array
from beside.way import Way

VERSION = f"numpy {np.__version__}"


def ways(case: Case, threads: int) -> Iterator[Way]:
    """Products of f32, and pointwise convolutions as such."""
    match case["family"]:
        case "gemm_f32":
            a, b = inputs.gemm(case)
            yield _product(a, b, (case["m"], case["n"]))
        case "linear_f32":
            x, w = inputs.linear(case)
            yield _product(x, w.T, (case["n"], case["m"]))
            yield _product(x, np.ascontiguousarray(w.T), (case["n"], case["m"]))
        case "pw_f32":
            x, w = inputs.conv(case)
            ci, co, h = case["ci"], case["co"], case["h"]
            yield _product(w.reshape(co, ci), x.reshape(ci, h * h), (1, co, h, h))


def _product(a: Array, b: Array, shape: tuple[int, ...]) -> Way:
    out = np.empty((a.shape[0], b.shape[1]), a.dtype)
    return Way("matmul", lambda: np.matmul(a, b, out=out), lambda: out.reshape(shape))
