"""Arrays with values that their buffers are said not to have are no input of mapped code."""

from collections.abc import Callable

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.pipeline.compute import compute
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module

OPTIONS = Options(prove=False)
WRONG = r"E214.*{} holds values .* to {}, declared are"


def kernel() -> Kernel:
    text = (
        "kernel k { in A : u8[2, 8] values 0 .. 100  const B : s8[8, 3] values -5 .. 5 "
        "out C : s32[2, 3]  C[m, n] += s32(A[m, k]) * s32(B[k, n]) }"
    )
    return parse_module(text).kernels[0]


def arrays(a: int, b: int) -> dict[str, np.ndarray]:
    return {"A": np.full((2, 8), a, np.uint8), "B": np.full((8, 3), b, np.int8)}


def refused(name: str, value: int, call: Callable[[], object]) -> None:
    with pytest.raises(ArgumentsError, match=WRONG.format(name, value)):
        call()


def test_computing_looks_at_them() -> None:
    machine = load_hardware("portable_c")
    found = compute(kernel(), machine, arrays(100, 5), OPTIONS).outputs
    assert found is not None
    assert (found["C"] == 8 * 100 * 5).all()
    refused("A", 101, lambda: compute(kernel(), machine, arrays(101, 5), OPTIONS))
    refused("B", -6, lambda: compute(kernel(), machine, arrays(0, -6), OPTIONS))


def test_so_do_calls_and_what_prepares_them() -> None:
    call = map_kernel(kernel(), load_hardware("portable_c"), OPTIONS).compile()
    good, wide, other = arrays(100, 5), arrays(101, 5), arrays(100, 6)
    assert (call.call(good)["C"] == 8 * 100 * 5).all()
    refused("A", 101, lambda: call.call(wide))
    refused("B", 6, lambda: call.call(other))
    refused("B", 6, lambda: call.prepare(B=other["B"]))
    ready = call.prepare(B=good["B"])
    assert (ready(A=good["A"])["C"] == 8 * 100 * 5).all()
    refused("A", 101, lambda: ready(A=wide["A"]))
