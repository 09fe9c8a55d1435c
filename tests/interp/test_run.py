"""What kernels mean: against einsum in float64, and against plain loops, a point at a time."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from isamap.diagnostics import ArgumentsError, VerifyError
from isamap.interp import run
from isamap.interp.arithmetic import field, float64
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.index import const
from isamap.ir.nodes import Kernel
from isamap.text.load import parse_module
from tests.interp.naive import interpret_slowly
from tests.properties.kernels import Case, cases


def kernel(body: str, header: str = "k") -> Kernel:
    (found,) = parse_module(f"kernel {header} {{\n{body}\n}}").kernels
    return found


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def check_against_loops(found: Kernel, symbols: dict[str, int] | None = None) -> None:
    arrays = random_inputs(found, symbols)
    fast = interpret(found, arrays, symbols)
    with np.errstate(all="ignore"):
        slow = interpret_slowly(found, arrays, symbols or {})
    assert fast.keys() == slow.keys()
    for name, array in fast.items():
        assert array.dtype == found.buffer(name).dtype.numpy
        assert array.tobytes() == slow[name].tobytes(), name


CONV = """
  in X : f32[H, W, C] pad 0
  const D : f32[3, 3, C, K]
  out Y : f32[H, W, K]
  Y[h, w, k] += X[h + r - 1, w + s - 1, c] * D[r, s, c, k]
"""


def test_convolution_is_einsum() -> None:
    found = kernel(CONV, "k(H = 7, W = 5, C = 6, K = 4)")
    arrays = random_inputs(found)
    padded = np.pad(arrays["X"].astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    want = sum(
        np.einsum("hwc,ck->hwk", padded[r : r + 7, s : s + 5], arrays["D"][r, s].astype(float))
        for r in range(3)
        for s in range(3)
    )
    assert np.array_equal(interpret(found, arrays)["Y"], want)


def test_float64_arithmetic_is_einsum() -> None:
    found = kernel(
        "in A : bf16[5, 9]  in B : bf16[9, 3]  out C : bf16[5, 3]\n C[i, j] += A[i, k] * B[k, j]"
    )
    a, b = floats(5, 9), floats(9, 3, seed=1)
    got = interpret(found, {"A": a, "B": b}, arithmetic=float64())["C"]
    assert got.dtype == np.float64
    assert np.allclose(got, a @ b, rtol=1e-14)


def test_a_large_convolution_takes_less_than_a_second() -> None:
    found = kernel(CONV, "k(H = 56, W = 56, C = 64, K = 64)")
    arrays = random_inputs(found)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        interpret(found, arrays)
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 1.0


def test_sums_are_taken_in_order_and_rounded_at_every_step() -> None:
    for dtype in ("f32", "f16", "bf16"):
        found = kernel(f"in X : {dtype}[2000]  out Y : {dtype}[]\n Y[] += X[i]")
        number = found.buffer("X").dtype.numpy
        x = floats(2000).astype(number)
        total = number.type(0)
        for value in x:
            total = number.type(total + value)
        assert interpret(found, {"X": x})["Y"] == total


def test_the_order_of_reduction_variables_is_lexicographic() -> None:
    found = kernel("in X : f32[40, 30]  out Y : f32[]\n Y[] += X[i, j]")
    x = floats(40, 30).astype(np.float32)
    total = np.float32(0)
    for value in x.reshape(-1):
        total += value
    assert interpret(found, {"X": x})["Y"] == total


@pytest.mark.parametrize("room", [1, 7, 1 << 17])
def test_the_size_of_array_operations_does_not_matter(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "ROOM", room)
    found = kernel(CONV, "k(H = 3, W = 4, C = 2, K = 3)")
    arrays = {"X": floats(3, 4, 2).astype("f4"), "D": floats(3, 3, 2, 3).astype("f4")}
    want = interpret_slowly(found, arrays, {})["Y"]
    assert np.array_equal(interpret(found, arrays)["Y"], want)


KERNELS = {
    "symbols": "in X : f32[N, M]  out Y : f32[M]\n Y[m] += X[n, m]",
    "transposed convolution": (
        "in X : f16[5, 2]  in W : f16[3, 2]  out Y : f16[11]\n Y[2*p + r] += X[p, c] * W[r, c]"
    ),
    "pooling": "in X : f32[11]  out Y : f32[5]\n for r in 0..3\n Y[p] max= X[2*p + r]",
    "reversed": "in X : s32[9]  in W : s32[3]  out Y : s32[7]\n Y[i] += X[i + r] * W[3 - 1 - r]",
    "strided target": "in X : s8[2, 4]  out Y : s8[8]\n Y[2*i + j] = X[j, i]\n",
    "division and remainder": "in X : s16[4, 4]  out Y : s16[16]\n Y[i] = X[i // 4, i % 4]",
    "blocked target": "in X : s16[16]  out Y : s16[4, 4]\n Y[i // 4, i % 4] = X[i]",
    "sum of groups": "in X : f32[16]  out Y : f32[4]\n for i in 0..16\n Y[i // 4] += X[i]",
    "gather": "in I : s32[7]  in X : f32[5, 3]  out Y : f32[7, 3]\n Y[i, j] = X[I[i], j]",
    "scatter": "in I : s32[9]  in X : f32[9]  inout Y : f32[4]\n Y[I[i]] += X[i]",
    "diagonal": "in X : f32[4]  inout Y : f32[4, 4]\n Y[i, i] = X[i]",
    "lower bounds": "in X : s32[9]  inout Y : s32[12]\n for i in 2..7\n Y[i + 3] = X[i] + X[i - 2]",
    "own content": "inout Z : s32[6]  in X : s32[6, 3]\n Z[i] = Z[i] * X[i, 1]",
    "coordinates": "out Y : f32[5, 4]\n Y[i, j] = select(i < j, f32(i), -1.5)",
    "chain": (
        "in X : f32[6, 4] pad 0  in D : f32[3, 4]  in P : f32[4, 5]\n"
        "local T : f32[6, 4]  out Y : f32[6, 5]\n"
        "T[h, c] += X[h + r - 1, c] * D[r, c]\n Y[h, k] += max(T[h, c], 0) * P[c, k]"
    ),
    "padded local": (
        "in X : s32[5]  local T : s32[5] pad 7  out Y : s32[5]\n"
        "T[i] = X[i] * 2\n Y[i] = T[i - 1] + T[i + 1]"
    ),
    "concatenation": (
        "in A : u8[3]  in B : u8[4]  out Y : u8[7]\n for i in 0..3\n for j in 0..4\n"
        "Y[i] = A[i]\n Y[j + 3] = B[j]"
    ),
    "two reductions": (
        "in A : f32[3, 4]  in B : f32[3, 2]  out Y : f32[3]\n Y[i] += A[i, j]\n Y[i] *= B[i, j]"
    ),
    "logic": (
        "in X : bool[4, 5]  out Y : bool[4]  out Z : bool[4]\nY[i] and= X[i, j]\n Z[i] xor= X[i, j]"
    ),
    "narrow integers": "in X : s4[20]  in Y : s4[20]  out Z : s4[]\n Z[] += X[i] * Y[i]",
    "saturation": "in X : s16[20]  out Y : s8[20]\n Y[i] = sat[s8](X[i])",
    "scalar": "in X : f32[]  out Y : f32[]\n Y[] = X[] * 2",
    "far padding": "in X : f32[3] pad 5  out Y : f32[4]\n Y[i] = X[1000000*i - 1000000]",
    "wide dot": "in A : u8[3, 9]  in B : s8[9]  out Y : s32[3]\n Y[i] += s32(A[i, k]) * s32(B[k])",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_mean_what_plain_loops_compute(name: str) -> None:
    symbols = {"N": 4, "M": 3} if name == "symbols" else None
    header = "k(N, M)" if name == "symbols" else "k"
    check_against_loops(kernel(KERNELS[name], header), symbols)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_random_kernels_mean_what_plain_loops_compute(case: Case) -> None:
    check_against_loops(case.load(), dict(case.symbols))


def test_symbols_are_taken_from_the_shapes() -> None:
    found = kernel("in X : f32[N, M]  out Y : f32[M]\n Y[m] += X[n, m]", "k(N, M)")
    assert interpret(found, {"X": np.ones((3, 2), np.float32)})["Y"].tolist() == [3, 3]


def test_inputs_are_not_changed() -> None:
    found = kernel("inout Z : s32[4]\n Z[i] += 1")
    z = np.zeros(4, np.int32)
    assert interpret(found, {"Z": z})["Z"].tolist() == [1] * 4
    assert z.tolist() == [0] * 4


def test_a_field_gives_equal_polynomials_in_any_order() -> None:
    found = kernel("in A : f32[4, 9]  in B : f32[9]  out C : f32[4]\n C[i] += A[i, k] * B[k]")
    generator = np.random.default_rng(0)
    a, b = (generator.integers(0, 2**61 - 1, s, np.uint64) for s in ((4, 9), (9,)))
    got = interpret(found, {"A": a, "B": b}, arithmetic=field())["C"].tolist()
    want = [sum(int(x) * int(y) for x, y in zip(row, b, strict=True)) % (2**61 - 1) for row in a]
    assert got == want


def test_an_observer_sees_every_access() -> None:
    found = kernel("in X : f32[5] pad 0  out Y : f32[5]\n for r in 0..3\n Y[i] += X[i + r - 1]")
    seen: dict[tuple[str, bool], list[int]] = {}

    def observe(statement: Any, access: Any, indices: Any, write: bool) -> None:
        seen.setdefault((access.buffer, write), []).extend(np.ravel(indices[0]).tolist())

    interpret(found, {"X": np.ones(5, np.float32)}, observer=observe)
    assert sorted(seen["X", False]) == sorted(i + r - 1 for i in range(5) for r in range(3))
    assert sorted(set(seen["Y", True])) == [0, 1, 2, 3, 4]


def test_reading_outside_names_the_offending_values() -> None:
    found = kernel("in X : f32[4]  in W : f32[2]  out Y : f32[3]\n Y[i] += X[i + r] * W[r]")
    x = replace(found.buffer("X"), shape=(const(3),))  # what the checks of the text would refuse
    wrong = replace(found, buffers=(x, *found.buffers[1:]))
    with pytest.raises(VerifyError) as raised:
        interpret(wrong, {"X": np.ones(3, np.float32), "W": np.ones(2, np.float32)})
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "E201"
    assert diagnostic.message == "X[3] is outside its shape [3] at i = 2, r = 1"


def test_outputs_must_be_written_and_reads_follow_writes() -> None:
    found = kernel("in X : f32[3]  local T : f32[3]  out Y : f32[3]\n T[i] = X[i]\n Y[i] = T[i]")
    arrays = {"X": np.ones(3, np.float32)}
    short = replace(found.statements[1].variables[0], extent=const(2))
    missing = replace(found.statements[1], variables=(short,))
    with pytest.raises(VerifyError, match=r"E203.*Y\[2\] is never written"):
        interpret(replace(found, statements=(found.statements[0], missing)), arrays)
    missing = replace(found.statements[0], variables=(short,))
    with pytest.raises(VerifyError, match=r"E202.*T\[2\] is read before it is written"):
        interpret(replace(found, statements=(missing, found.statements[1])), arrays)


def test_a_wrong_index_in_a_buffer_is_found() -> None:
    found = kernel("in I : s32[3]  in X : f32[5]  out Y : f32[3]\n Y[i] = X[I[i]]")
    arrays = {"I": np.array([0, 9, 1], np.int32), "X": np.ones(5, np.float32)}
    with pytest.raises(VerifyError, match=r"X\[9\] is outside its shape \[5\] at i = 1"):
        interpret(found, arrays)


def test_arrays_that_do_not_fit_are_refused_together() -> None:
    found = kernel(
        "in A : f32[3]  in B : f32[3]  in C : f32[3]  in D : u8[3] values 0 .. 4\n"
        "out Y : f32[3]\n Y[i] = A[i] + B[i] + C[i] + f32(D[i])"
    )
    arrays: dict[str, Any] = {
        "A": np.ones(4, np.float32),
        "B": np.ones(3),
        "D": np.array([0, 5, 1], np.uint8),
    }
    with pytest.raises(ArgumentsError) as raised:
        interpret(found, arrays)
    assert [d.code for d in raised.value.diagnostics] == ["E212", "E213", "E211", "E214"]


def test_a_missing_symbol_is_named() -> None:
    found = kernel("out Y : f32[N]\n Y[i] = 1", "k(N)")
    with pytest.raises(ArgumentsError, match="no value for N"):
        interpret(found, {})
