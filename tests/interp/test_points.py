"""Chosen elements are those of the whole result."""

import numpy as np
import pytest
from hypothesis import given

from isamap.diagnostics import LimitError
from isamap.interp import points
from isamap.interp.inputs import random_inputs
from isamap.interp.points import interpret_at
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from tests.interp.test_run import KERNELS, kernel
from tests.properties.kernels import Case, cases


def check(found: Kernel, symbols: dict[str, int]) -> None:
    arrays = random_inputs(found, symbols)
    whole = interpret(found, arrays, symbols)
    for name, array in whole.items():
        rows = np.stack([i.reshape(-1) for i in np.indices(array.shape)], axis=-1)
        rows = rows.reshape(array.size, array.ndim)[::-1]
        got = interpret_at(found, arrays, symbols, name, rows)
        assert got.dtype == array.dtype
        assert got.tobytes() == array.reshape(-1)[::-1].tobytes(), name


@pytest.mark.parametrize("whole_cost", [0, 1 << 27])
@pytest.mark.parametrize("name", KERNELS)
def test_every_element_of_every_kernel(
    name: str, whole_cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "WHOLE_COST", whole_cost)
    header = "k(N, M)" if name == "symbols" else "k"
    check(kernel(KERNELS[name], header), {"N": 4, "M": 3} if name == "symbols" else {})


@given(case=cases())
def test_every_element_of_random_kernels(case: Case) -> None:
    check(case.load(), dict(case.symbols))


def test_a_large_product_is_sampled() -> None:
    found = kernel(
        "in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]\nC[m, n] += A[m, k] * B[k, n]",
        "k(M = 2000, N = 900, K = 700)",
    )
    arrays = random_inputs(found)
    rows = np.array([[0, 0], [1999, 899], [77, 512], [0, 0]])
    got = interpret_at(found, arrays, {}, "C", rows)
    want = [arrays["A"][m].astype(float) @ arrays["B"][:, n].astype(float) for m, n in rows]
    assert got.tolist() == want


def test_too_much_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "POINT_COST", 10)
    found = kernel("in A : f32[3, 20]  out C : f32[3]\n C[m] += A[m, k]")
    with pytest.raises(LimitError, match="take too long"):
        interpret_at(found, random_inputs(found), {}, "C", np.array([[1]]))
