"""Lowered kernels are executed, and what they must not do is found."""

from typing import Any

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.interp.arithmetic import field
from isamap.interp.inputs import random_inputs
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, read, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node, Register, Scope, Window
from isamap.sim.lowered import LoweredFault, run_lowered
from tests.emit import samples
from tests.emit.machines import machine as emit_machine
from tests.sim.bench import F32, array, lowered, machine, private, reg

MACHINE = machine()
X = np.arange(16, dtype=np.float32)


def load(target: str, offset: Index | int, name: str = "load", **symbols: int) -> Call:
    place = Window("X", offset if isinstance(offset, Index) else const(offset))
    return Call(
        name,
        (("m", place), ("r", reg(target))),
        tuple((n, const(v)) for n, v in symbols.items()),
    )


def store(source: str, offset: Index | int) -> Call:
    place = Window("Y", offset if isinstance(offset, Index) else const(offset))
    return Call("store", (("r", reg(source)), ("m", place)))


def kernel(*body: Node, size: int = 16) -> LoweredKernel:
    return lowered([array("X", "in", 16), array("Y", "out", size)], body)


def scope(*body: Node, registers: tuple[str, ...] = ("a", "b", "c")) -> Scope:
    return Scope(tuple(map(reg, registers)), body)


def run(found: LoweredKernel, **arrays: Any) -> dict[str, Any]:
    return run_lowered(found, MACHINE, {"X": X, **arrays})


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 16, 5), (5, 37, 9)])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_product_with_packing_and_tails(m: int, n: int, k: int, parallel: bool) -> None:
    sample = samples.gemm(parallel)
    symbols = {"M": m, "N": n, "K": k}
    arrays = random_inputs(sample.kernel, symbols)
    got = run_lowered(sample.lowered, emit_machine(), arrays, symbols, kernel=sample.kernel)
    assert got["C"].tolist() == (arrays["A"].astype(float) @ arrays["B"].astype(float)).tolist()


def test_copies_fill_where_a_condition_fails() -> None:
    sample = samples.padded()
    arrays = random_inputs(sample.kernel)
    want = np.full((7, 9), 0.5)
    want[1:6, 2:7] = arrays["X"].astype(float)
    got = run_lowered(sample.lowered, emit_machine(), arrays, kernel=sample.kernel)
    assert got["Y"].astype(float).tolist() == want.tolist()


def test_private_arrays_hold_what_the_iteration_wrote() -> None:
    sample = samples.reversal()
    arrays = random_inputs(sample.kernel, {"N": 5})
    got = run_lowered(sample.lowered, emit_machine(), arrays, {"N": 5}, kernel=sample.kernel)
    assert np.array_equal(got["Y"], arrays["X"][:, ::-1])


def test_what_all_threads_wrote_before_a_parallel_loop_is_there_in_each_iteration() -> None:
    t = private(array("T", "local", 16))
    i = var("i")
    first = Copy((("j", const(16)),), "T", var("j"), "X", var("j"))
    use = Loop("i", const(4), (Copy((("j", const(4)),), "Y", 4 * i + var("j"), "T", i),), True)
    got = run(lowered([array("X", "in", 16), array("Y", "out", 16), t], [first, use]))
    assert got["Y"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_a_private_array_carries_nothing_from_one_parallel_iteration_to_another() -> None:
    t = private(array("T", "local", 16))
    i, j = var("i"), var("j")
    first = Copy((("j", const(16)),), "T", j, "X", j)
    read = Copy((("j", const(4)),), "Y", 4 * i + j, "T", j)
    write = Copy((("j", const(2)),), "T", j, "X", j + 5)
    loop = Loop("i", const(4), (read, write), True)
    after = Copy((("j", const(4)),), "Z", j, "T", j)
    arrays = [array("X", "in", 16), array("Y", "out", 16), array("Z", "out", 4), t]
    got = run(lowered(arrays, [first, loop, after]))
    assert got["Y"][:4].tolist() == [0, 1, 2, 3]
    for row in (*got["Y"].reshape(4, 4)[1:], got["Z"]):
        assert np.isnan(row[:2]).all()
        assert row[2:].tolist() == [2, 3]


def test_inouts_are_changed_in_a_copy() -> None:
    z = np.array([718], np.int64)
    got = run_lowered(samples.increment().lowered, emit_machine(), {"Z": z})
    assert (got["Z"].tolist(), z.tolist()) == ([719], [718])


def test_guards_choose() -> None:
    i = var("i")
    body = Loop(
        "i", const(4), (Guard((i - 2,), (load("a", 0),), (load("a", 8),)), store("a", 4 * i))
    )
    got = run(kernel(scope(body)))["Y"].reshape(4, 4)
    assert got[:, 0].tolist() == [8, 8, 0, 0]


def test_indices_are_read_from_arrays() -> None:
    where = read("I", (var("i"),))
    body = scope(Loop("i", const(2), (load("a", 4 * where), store("a", 4 * var("i")))))
    found = lowered(
        [array("X", "in", 16), array("I", "in", 2, "s32"), array("Y", "out", 8)], [body]
    )
    got = run(found, I=np.array([3, 1], np.int32))
    assert got["Y"].tolist() == [12, 13, 14, 15, 4, 5, 6, 7]


def test_immediates_may_be_index_values() -> None:
    i = var("i")
    value = (7 * i + var("N")) // 3 + i % 2
    call = Call("index", (("v", value), ("m", Window("Y", i))))
    found = lowered([array("Y", "out", 5, "s64")], [Loop("i", const(5), (call,))], ("N",))
    got = run_lowered(found, MACHINE, {}, {"N": 4})
    assert got["Y"].tolist() == [(7 * i + 4) // 3 + i % 2 for i in range(5)]


def test_a_partial_load_with_padding_gives_every_element_a_value() -> None:
    got = run(kernel(scope(load("a", 14, "part", n=2), store("a", 0)), size=4))
    assert got["Y"].tolist() == [14, 15, 0, 0]


def test_a_lowered_kernel_runs_over_a_field() -> None:
    sample = samples.gemm()
    symbols = {"M": 3, "N": 17, "K": 4}
    arrays = random_inputs(sample.kernel, symbols)
    numbers = {n: np.arange(a.size, dtype=np.uint64).reshape(a.shape) for n, a in arrays.items()}
    got = run_lowered(
        sample.lowered, emit_machine(), numbers, symbols, kernel=sample.kernel, arithmetic=field()
    )
    want = numbers["A"].astype(int) @ numbers["B"].astype(int)
    assert got["C"].tolist() == want.tolist()


def test_an_observer_sees_addresses() -> None:
    seen: list[tuple[str, list[int], bool]] = []

    def observe(array: str, addresses: Any, write: bool) -> None:
        seen.append((array, np.ravel(addresses).tolist(), write))

    found = kernel(scope(load("a", 5), store("a", 4)))
    run_lowered(found, MACHINE, {"X": X}, observer=observe)
    assert seen == [("X", [5, 6, 7, 8], False), ("Y", [4, 5, 6, 7], True)]


FAULTS: dict[str, tuple[Node, str]] = {
    "a load past the end": (
        scope(load("a", 13)),
        r"load: operand m touches X\[13..16\], which has 16 elements",
    ),
    "a load before the beginning": (
        scope(Loop("i", const(3), (load("a", 1 - var("i")),))),
        r"touches X\[-1..2\].*i = 2",
    ),
    "a partial load past the end": (
        scope(load("a", 14, "part", n=3)),
        r"touches X\[14..16\]",
    ),
    "a store past the end": (scope(load("a", 0), store("a", 16)), r"touches Y\[16..19\]"),
    "a misaligned store": (
        scope(load("a", 0), store("a", 2)),
        "begins at element 2, not at a multiple of 4",
    ),
    "a register without value": (
        scope(store("b", 0)),
        "store reads element 0 of register b, which has no value",
    ),
    "a register partly without value": (
        scope(load("a", 0, "some", n=3), store("a", 0)),
        "reads element 3 of register a",
    ),
    "an accumulator without value": (
        scope(load("a", 0), Call("mac", (("a", reg("a")), ("b", reg("a")), ("c", reg("c"))))),
        "mac reads element 0 of register c",
    ),
    "a value from another iteration": (
        Loop("i", const(2), (scope(Guard((-var("i"),), (load("a", 0),)), store("a", 0)),)),
        "register a, which has no value .i = 1.",
    ),
    "a register out of scope": (store("d", 0), "register d, which is not in scope"),
    "an unknown instruction": (Call("nop", ()), "there is no instruction nop"),
    "a missing operand": (Call("store", ()), "operand r is not given"),
    "an unknown operand": (
        scope(Call("load", (("m", Window("X", const(0))), ("r", reg("a")), ("q", reg("b"))))),
        "load has no operand q",
    ),
    "an unknown array": (
        scope(Call("load", (("m", Window("Z", const(0))), ("r", reg("a"))))),
        "there is no array Z",
    ),
    "a wrong storage": (
        Scope(
            (Register("t", "spm", F32, (4,)),),
            (
                Call(
                    "load",
                    (("m", Window("X", const(0))), ("r", Register("t", "spm", F32, (4,)))),
                ),
            ),
        ),
        "is f32 @ reg, register t f32 @ spm",
    ),
    "a window for a register": (
        Call("store", (("r", Window("X", const(0))), ("m", Window("Y", const(0))))),
        "lies in reg, not in memory",
    ),
    "a wrong shape": (
        Scope(
            (Register("t", "reg", F32, (3,)),),
            (
                Call(
                    "load",
                    (("m", Window("X", const(0))), ("r", Register("t", "reg", F32, (3,)))),
                ),
            ),
        ),
        r"has shape \[4\], register t \[3\]",
    ),
    "an extent out of range": (scope(load("a", 0, "part", n=5)), r"n = 5 is outside 1..5"),
    "a missing extent": (scope(load("a", 0, "part")), "no value for n"),
    "a literal of another type": (
        scope(Call("set", (("v", Literal("1", DTYPES["s32"])), ("r", reg("a"))))),
        "operand v is f32, the literal s32",
    ),
    "a literal for a register": (
        Call("store", (("r", Literal("1", F32)), ("m", Window("Y", const(0))))),
        "is given a value, but is no immediate scalar",
    ),
    "a copy past the end": (
        Copy((("j", const(17)),), "Y", const(0), "X", var("j")),
        r"copy reads X\[16\], which has 16 elements",
    ),
    "a copy before the beginning": (
        Copy((("j", const(3)),), "Y", var("j") - 1, "X", var("j")),
        r"copy writes Y\[-1\]",
    ),
    "a copy of nothing": (
        Copy((("j", const(3)),), "Y", var("j"), None, const(0)),
        "neither a source nor a fill",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found_and_told(name: str) -> None:
    body, message = FAULTS[name]
    with pytest.raises(LoweredFault, match=message):
        run(kernel(body))


def test_arguments_are_checked() -> None:
    found = lowered([array("X", "in", var("N"))], [], ("N",), (var("N") - 4,))
    with pytest.raises(ArgumentsError, match="no value for N"):
        run_lowered(found, MACHINE, {})
    with pytest.raises(ArgumentsError, match="requires N - 4 >= 0"):
        run_lowered(found, MACHINE, {"X": X[:3]}, {"N": 3})
    with pytest.raises(ArgumentsError, match="X has 8 elements, the array 16"):
        run_lowered(found, MACHINE, {"X": X}, {"N": 8})
    with pytest.raises(ArgumentsError, match="no array for X"):
        run_lowered(found, MACHINE, {}, {"N": 8})
