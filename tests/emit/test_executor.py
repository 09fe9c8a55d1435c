"""Emitted C against the executor of lowered kernels, which also checks every access."""

import numpy as np
import pytest

from isamap.ir.index import var
from isamap.sim.lowered import run_lowered
from tests.emit.building import MACHINE, compiled
from tests.emit.samples import Sample, gemm, increment, indices, padded, reversal, scalars

CASES = {
    "gemm": (gemm(), {"M": 3, "N": 37, "K": 5}),
    "parallel": (gemm(parallel=True), {"M": 3, "N": 16, "K": 5}),
    "padded": (padded(), {}),
    "reversal": (reversal(), {"N": 13}),
    "increment": (increment(), {}),
    "bf16": (scalars("bf16", "0.1"), {}),
    "s64": (scalars("s64", "-9223372036854775808"), {}),
    "indices": (indices((var("i") * var("M"), (var("j") - var("i")) // 2), (3, 4)), {"M": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_c_and_executor_agree(name: str) -> None:
    made, symbols = CASES[name]
    rng = np.random.default_rng(4)
    arrays = {
        b.name: rng.integers(0, 9, [int(e.evaluate(symbols)) for e in b.shape]).astype(
            b.dtype.numpy
        )
        for b in made.kernel.buffers
        if b.role in ("in", "inout")
    }
    expected = _executed(made, arrays, symbols)
    actual = compiled(made).call(arrays, symbols)
    assert expected.keys() == actual.keys()
    for buffer, array in expected.items():
        np.testing.assert_array_equal(actual[buffer], array)


def _executed(
    made: Sample, arrays: dict[str, np.ndarray], symbols: dict[str, int]
) -> dict[str, np.ndarray]:
    copies = {name: array.copy() for name, array in arrays.items()}
    return run_lowered(made.lowered, MACHINE, copies, symbols, kernel=made.kernel)
