"""Random arrays respect what a kernel declares."""

import numpy as np
import pytest

from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from tests.interp.test_run import kernel


def test_the_seed_decides() -> None:
    found = kernel("in X : f32[100]  out Y : f32[100]\n Y[i] = X[i]")
    one, two, other = (random_inputs(found, seed=s)["X"] for s in (1, 1, 2))
    assert one.tobytes() == two.tobytes() != other.tobytes()


@pytest.mark.parametrize("name", [d for d in DTYPES if DTYPES[d].is_float])
def test_floats_are_between_minus_one_and_one(name: str) -> None:
    found = kernel(f"in X : {name}[5000]  out Y : {name}[5000]\n Y[i] = X[i]")
    x = random_inputs(found)["X"]
    assert x.dtype == DTYPES[name].numpy
    wide = x.astype(float)
    assert (wide.min(), wide.max()) == (-1, 1)
    assert len(np.unique(wide)) >= 16


@pytest.mark.parametrize("name", ["s4", "u4", "s8", "u8", "bool"])
def test_small_integers_take_every_value(name: str) -> None:
    found = kernel(f"in X : {name}[9000]  out Y : {name}[9000]\n Y[i] = X[i]")
    values = set(random_inputs(found)["X"].astype(int).tolist())
    assert values == set(range(DTYPES[name].lowest, DTYPES[name].highest + 1))


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("f32", "0", "6"), ("bf16", "-0.3", "0.2"), ("u8", "3", "5")]
)
def test_declared_ranges_are_kept(dtype: str, low: str, high: str) -> None:
    found = kernel(
        f"in X : {dtype}[500] values {low} .. {high}  out Y : {dtype}[500]\n Y[i] = X[i]"
    )
    arrays = random_inputs(found)
    wide = arrays["X"].astype(float)
    assert wide.min() >= float(low)
    assert wide.max() <= float(high)
    assert len(np.unique(wide)) > 2
    interpret(found, arrays)  # which checks them


def test_indices_are_in_bounds() -> None:
    found = kernel(
        "in I : s32[300]  in J : u8[300]  in X : f32[40, 9]  out Y : f32[300, 3]\n"
        "Y[i, r] = X[2*I[i] + r, J[i] // 2]"
    )
    arrays = random_inputs(found)
    interpret(found, arrays)
    assert len(np.unique(arrays["I"])) > 10


def test_huge_arrays_repeat() -> None:
    found = kernel("in X : u8[20000000]  out Y : u8[]\n Y[] max= X[i]")
    x = random_inputs(found)["X"]
    assert x.shape == (20000000,)
    assert np.array_equal(x[: 1 << 20], x[(1 << 24) - 3 :][: 1 << 20])
