"""Single instructions on arrays."""

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from isamap.interp.call import CallFault, execute
from isamap.ir.nodes import Instruction
from isamap.text.load import parse_module


def instruction(text: str) -> Instruction:
    found, *_ = parse_module(f"instruction {text}").instructions
    return found


DOT = instruction(
    "dot { in a : u8[16, 4] @ z  in b : s8[16, 4] @ z  inout c : s32[16] @ z\n"
    "c[i] += s32(a[i, k]) * s32(b[i, k]) }"
)
MASKED = instruction(
    "load(n in 1..17) { in m : f32[n] @ memory pad 0  out r : f32[16] @ z\n"
    "for i in 0..16\n r[i] = m[i] }"
)


def test_a_dot_product_accumulates() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(0, 256, (16, 4)).astype(np.uint8)
    b = generator.integers(-128, 128, (16, 4)).astype(np.int8)
    c = np.arange(16, dtype=np.int32)
    want = c + (a.astype(int) * b.astype(int)).sum(axis=1)
    execute(DOT, {"a": a, "b": b, "c": c}, {})
    assert c.tolist() == want.tolist()


@pytest.mark.parametrize("n", [1, 5, 16])
def test_a_masked_load_fills_with_the_padding_value(n: int) -> None:
    m, r = np.arange(1, n + 1, dtype=np.float32), np.full(16, 9, np.float32)
    execute(MASKED, {"m": m, "r": r}, {"n": n})
    assert r.tolist() == [*range(1, n + 1), *[0] * (16 - n)]


def test_a_masked_store_leaves_the_rest() -> None:
    store = instruction(
        "store(n in 1..17) { in r : f32[16] @ z  out m : f32[n] @ memory\n"
        "for i in 0..n\n m[i] = r[i] }"
    )
    memory = np.zeros(8, np.float32)
    execute(store, {"r": np.arange(16, dtype=np.float32), "m": memory[2:7]}, {"n": 5})
    assert memory.tolist() == [0, 0, 0, 1, 2, 3, 4, 0]


def test_memory_operands_are_views_with_any_strides() -> None:
    block = instruction(
        "block(h in 1..9, w in 1..9, P) {\n"
        "in m : s8[h, w] @ memory strides [P, 1] pad 0  out r : s8[4, 4] @ spm\n"
        "for i in 0..4\n for j in 0..4\n r[i, j] = m[i, j] }"
    )
    image = np.arange(42, dtype=np.int8).reshape(6, 7)
    r = np.full((4, 4), 99, np.int8)
    execute(block, {"m": image[1:4, 2:4], "r": r}, {"h": 3, "w": 2, "P": 7})
    assert r.tolist() == [[9, 10, 0, 0], [16, 17, 0, 0], [23, 24, 0, 0], [0, 0, 0, 0]]


def test_an_output_that_is_reduced_starts_from_the_identity() -> None:
    total = instruction("sum { in a : f32[8] @ z  out r : f32[] @ z\n r[] += a[i] }")
    r = np.array(5, np.float32)
    execute(total, {"a": np.ones(8, np.float32), "r": r}, {})
    assert r == 8


def test_pairs_that_meet_in_one_element_are_taken_in_order() -> None:
    pairs = instruction(
        "pairs { in a : s16[8] @ z  inout r : s16[4] @ z\n for i in 0..8\n r[i // 2] += a[i] }"
    )
    r = np.zeros(4, np.int16)
    execute(pairs, {"a": np.arange(8, dtype=np.int16), "r": r}, {})
    assert r.tolist() == [1, 5, 9, 13]


def test_narrow_floats_round_at_every_step() -> None:
    add = instruction("add { in a : bf16[2] @ z  inout r : bf16[2] @ z\n r[i] = r[i] + a[i] }")
    r = np.array([256, 1], ml_dtypes.bfloat16)
    execute(add, {"a": np.array([1, 1], ml_dtypes.bfloat16), "r": r}, {})
    assert r.astype(float).tolist() == [256, 2]


def test_a_gather_checks_its_indices() -> None:
    gather = instruction(
        "gather { in x : s32[4] @ z  in m : f32[5] @ memory  out r : f32[4] @ z\nr[i] = m[x[i]] }"
    )
    m, r = np.arange(5, dtype=np.float32), np.zeros(4, np.float32)
    execute(gather, {"x": np.array([4, 0, 2, 2], np.int32), "m": m, "r": r}, {})
    assert r.tolist() == [4, 0, 2, 2]
    with pytest.raises(CallFault, match="outside m"):
        execute(gather, {"x": np.array([4, 5, 2, 2], np.int32), "m": m, "r": r}, {})


def test_several_statements_follow_each_other() -> None:
    two = instruction(
        "two { in a : s32[4] @ z  out r : s32[4] @ z  out t : s32[] @ z\n"
        "r[i] = a[i] * 2\n t[] += r[i] }"
    )
    r, t = np.zeros(4, np.int32), np.zeros((), np.int32)
    execute(two, {"a": np.arange(4, dtype=np.int32), "r": r, "t": t}, {})
    assert (r.tolist(), t.item()) == ([0, 2, 4, 6], 12)


@pytest.mark.parametrize(
    "operands",
    [
        {"m": np.zeros(4, np.float32), "r": np.zeros(16, np.float32)},
        {"m": np.zeros(5, np.float64), "r": np.zeros(16, np.float32)},
        {"m": np.zeros(5, np.float32)},
    ],
)
def test_operands_that_do_not_fit_are_refused(operands: dict[str, Any]) -> None:
    with pytest.raises(CallFault, match="given is"):
        execute(MASKED, operands, {"n": 5})


def test_a_call_on_a_small_fragment_is_quick() -> None:
    a, b = np.ones((16, 4), np.uint8), np.ones((16, 4), np.int8)
    c = np.zeros(16, np.int32)
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(100):
            execute(DOT, {"a": a, "b": b, "c": c}, {})
        seconds.append((time.perf_counter() - begin) / 100)
    assert c.tolist() == [2000] * 16
    assert min(seconds) < 100e-6
