"""The adapter of the side-by-side benchmark gives right answers, whatever the layout."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

Case = dict[str, Any]


def _given(*shape: int, dtype: str = "f32", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng([seed, *shape])
    if dtype != "f32":
        low, high = (0, 128) if dtype == "u8" else (-64, 64)
        return random.integers(low, high, shape).astype(np.uint8 if dtype == "u8" else np.int8)
    return random.random(shape, np.float32) - np.float32(0.5)


def _pair(case: Case, one: tuple[int, ...], two: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    bytes_ = case["family"].endswith("u8s8")
    return (
        _given(*one, dtype="u8" if bytes_ else "f32"),
        _given(*two, dtype="s8" if bytes_ else "f32", seed=1),
    )


class Data(ModuleType):
    """The inputs that the benchmark gives."""

    @staticmethod
    def gemm(c: Case) -> tuple[np.ndarray, np.ndarray]:
        return _pair(c, (c["m"], c["k"]), (c["k"], c["n"]))

    @staticmethod
    def linear(c: Case) -> tuple[np.ndarray, np.ndarray]:
        return _pair(c, (c["n"], c["k"]), (c["m"], c["k"]))

    @staticmethod
    def conv(c: Case) -> tuple[np.ndarray, np.ndarray]:
        weights = (c["co"], c["ci"] // c["g"], c["r"], c["r"])
        return _pair(c, (1, c["ci"], c["h"], c["h"]), weights)

    @staticmethod
    def dsblock(c: Case) -> tuple[np.ndarray, ...]:
        ci, co, h = c["ci"], c["co"], c["h"]
        shapes = ((1, ci, h, h), (ci, 1, 3, 3), (ci,), (co, ci, 1, 1), (co,))
        return tuple(_given(*shape, seed=n) for n, shape in enumerate(shapes))

    @staticmethod
    def rows(c: Case) -> np.ndarray:
        return _given(c["rows"], c["cols"]) * 4

    @staticmethod
    def two(c: Case) -> tuple[np.ndarray, ...]:
        return tuple(_given(c["rows"], c["cols"], seed=n) for n in range(2))

    @staticmethod
    def biased(c: Case) -> tuple[np.ndarray, ...]:
        return _given(c["rows"], c["cols"]), _given(c["cols"], seed=1)

    @staticmethod
    def attention(c: Case) -> tuple[np.ndarray, ...]:
        shape = (c["b"], c["heads"], c["s"], c["d"])
        return tuple(_given(*shape, seed=n) for n in range(3))


@pytest.fixture(scope="module")
def peer() -> Any:
    """Return the adapter as the benchmark imports it: with a module ``data``."""
    sys.modules["data"] = Data("data")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield import_module("peer")
    finally:
        sys.path.remove(str(BENCHMARKS))
        del sys.modules["data"]


def convolved(x: np.ndarray, w: np.ndarray, c: Case) -> np.ndarray:
    step, pad, size = c["s"], c["p"], w.shape[-1]
    out = (x.shape[2] + 2 * pad - size) // step + 1
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (pad, pad), (pad, pad)))
    y = np.zeros((w.shape[0], out, out))
    for i in range(size):
        for j in range(size):
            part = padded[:, i : i + step * out : step, j : j + step * out : step][:, :out, :out]
            own = w[:, :, i, j].astype(np.float64)
            y += own[:, 0, None, None] * part if w.shape[1] == 1 else np.tensordot(own, part, 1)
    return y[None]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def expected(case: Case) -> np.ndarray:
    family, _, kind = case["family"].partition("_")

    def rounded(*arrays: np.ndarray) -> list[np.ndarray]:
        types = [ml_dtypes.bfloat16 if kind == "bf16" else a.dtype for a in arrays]
        return [a.astype(t).astype(np.float64) for a, t in zip(arrays, types, strict=True)]

    match family:
        case "gemm":
            a, b = rounded(*Data.gemm(case))
            return np.asarray(a @ b)
        case "linear":
            x, w = rounded(*Data.linear(case))
            return np.asarray(x @ w.T)
        case "conv" | "conv3x3" | "dw" | "pw":
            x, w = rounded(*Data.conv(case))
            y = convolved(x, w, case)
            return np.asarray(np.clip(np.rint(y / 256), 0, 255) if kind == "u8s8" else y)
        case "dsblock":
            x, wd, bd, wp, bp = Data.dsblock(case)
            inner = np.maximum(convolved(x, wd, {**case, "p": 1}) + bd[:, None, None], 0)
            outer = convolved(inner, wp, {"s": 1, "p": 0}) + bp[:, None, None]
            return np.asarray(np.maximum(outer, 0))
        case "softmax":
            return _softmax(Data.rows(case).astype(np.float64))
        case "layernorm":
            x = Data.rows(case).astype(np.float64)
            d = x - x.mean(1, keepdims=True)
            return np.asarray(d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5))
        case "silu":
            x, b = (a.astype(np.float64) for a in Data.biased(case))
            return np.asarray((x + b) / (1 + np.exp(-(x + b))))
        case "residual":
            x, z = (a.astype(np.float64) for a in Data.two(case))
            return np.asarray(np.maximum((x + z) / 2, 0))
        case "chain":
            x, b = (a.astype(np.float64) for a in Data.biased(case))
            return np.asarray(np.maximum(x * 1.5 + b, 0) ** 2)
        case _:
            q, k, v = (a.astype(np.float64) for a in Data.attention(case))
            return np.asarray(_softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(case["d"])) @ v)


def conv(family: str, ci: int, co: int, r: int, s: int, p: int, g: int = 1) -> Case:
    return {"family": family, "ci": ci, "h": 9, "co": co, "r": r, "s": s, "p": p, "g": g}


CASES: list[Case] = [
    {"family": "gemm_f32", "m": 13, "n": 20, "k": 30},
    {"family": "gemm_bf16", "m": 13, "n": 20, "k": 30},
    {"family": "linear_f32", "m": 13, "n": 20, "k": 30},
    {"family": "linear_u8s8", "m": 13, "n": 20, "k": 30},
    conv("conv_f32", 3, 32, 7, 2, 3),
    conv("conv_u8s8", 16, 32, 3, 1, 1),
    conv("conv3x3_f32", 16, 16, 3, 1, 1),
    conv("dw_f32", 32, 32, 3, 1, 1, 32),
    conv("dw_u8s8", 32, 32, 3, 2, 1, 32),
    conv("pw_bf16", 32, 48, 1, 1, 0),
    {"family": "dsblock_f32", "ci": 16, "h": 8, "co": 32, "s": 2},
    {"family": "softmax_f32", "rows": 3, "cols": 37},
    {"family": "layernorm_f32", "rows": 3, "cols": 37},
    {"family": "silu_f32", "rows": 3, "cols": 37},
    {"family": "residual_f32", "rows": 3, "cols": 37},
    {"family": "chain_f32", "rows": 3, "cols": 37},
    {"family": "attention_f32", "b": 1, "heads": 2, "s": 9, "d": 16},
]


@pytest.mark.parametrize("layout", ["nhwc", "planes"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["family"])
def test_the_adapter_computes_every_family(
    peer: Any, case: Case, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = import_module("peer_cases").problems
    if layout not in {p.layout for p in problems(case)} | {"nhwc"}:
        pytest.skip("the family has one layout")
    monkeypatch.setenv("ISAMAP_PEER_HW", "native")
    monkeypatch.setenv("ISAMAP_PEER_LAYOUT", layout)
    call, answer = peer.make(case, 1)
    for _ in range(2):
        assert call() == 0
    want = expected(case)
    got = np.asarray(answer(), np.float64)
    assert got.shape == want.shape
    bound = 0.01 if case["family"].endswith("bf16") else 1e-5
    assert np.abs(got - want).max() <= bound * np.abs(want).max()


def test_a_family_without_a_kernel_is_told(peer: Any) -> None:
    assert peer.make({"family": "gru_f32", "h": 8, "b": 1, "t": 2}, 1) is None


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("kernel conv", "kernel conv permit distribute"),
        ("kernel softmax permit no finite", "kernel softmax permit no finite, distribute"),
    ],
)
def test_kernels_permit_what_the_environment_says(peer: Any, head: str, expected: str) -> None:
    assert peer._permitting(f"{head} {{\n}}", "distribute") == f"{expected} {{\n}}"
    assert peer._permitting(f"{head} {{\n}}", None) == f"{head} {{\n}}"


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([[0, 127], [3, 4]], np.uint8), " values 0 .. 127"),
        (np.array([-64, 63], np.int8), " values -64 .. 63"),
        (np.array([0.5], np.float32), ""),
    ],
)
def test_declarations_say_which_integers_an_input_holds(array: np.ndarray, said: str) -> None:
    held = import_module("peer_cases.problem").held
    assert held(array) == said
