"""The inputs of a case, from a fixed seed: what ``peer_cases`` imports as ``data``.

Activations in bytes are below 128, so that no library's pairwise sums in 16 bits saturate.
bf16 cases begin with f32, rounded once.
"""

from typing import Any, TypeAlias

import numpy as np

from beside.cases import Case

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    random = np.random.default_rng([seed, *shape])
    if dtype == "u8":
        return random.integers(0, 128, shape, np.uint8)
    if dtype == "s8":
        return random.integers(-64, 64, shape, np.int8)
    return random.random(shape, np.float32) - np.float32(0.5)


def _pair(case: Case, one: tuple[int, ...], two: tuple[int, ...]) -> tuple[Array, Array]:
    left, right = ("u8", "s8") if case["family"].endswith("u8s8") else ("f32", "f32")
    return _drawn(one, left, 0), _drawn(two, right, 1)


def gemm(case: Case) -> tuple[Array, Array]:
    """A[m, k] and B[k, n]."""
    return _pair(case, (case["m"], case["k"]), (case["k"], case["n"]))


def linear(case: Case) -> tuple[Array, Array]:
    """X[n, k] and W[m, k]."""
    return _pair(case, (case["n"], case["k"]), (case["m"], case["k"]))


def conv(case: Case) -> tuple[Array, Array]:
    """x[1, ci, h, h] and w[co, ci / g, r, r]."""
    weights = (case["co"], case["ci"] // case["g"], case["r"], case["r"])
    return _pair(case, (1, case["ci"], case["h"], case["h"]), weights)


def dsblock(case: Case) -> tuple[Array, ...]:
    """x, the depthwise weights and bias, the pointwise weights and bias."""
    ci, co, h = case["ci"], case["co"], case["h"]
    shapes = ((1, ci, h, h), (ci, 1, 3, 3), (ci,), (co, ci, 1, 1), (co,))
    return tuple(_drawn(shape, "f32", seed) for seed, shape in enumerate(shapes))


def two(case: Case) -> tuple[Array, Array]:
    """Two matrices of f32 between -2 and 2."""
    shape = (case["rows"], case["cols"])
    return rows(case), _drawn(shape, "f32", 1) * np.float32(4)


def biased(case: Case) -> tuple[Array, Array]:
    """A matrix of f32 between -2 and 2, and a row between -0.5 and 0.5."""
    return rows(case), _drawn((case["cols"],), "f32", 1)


def rows(case: Case) -> Array:
    """A matrix of f32 between -2 and 2."""
    return _drawn((case["rows"], case["cols"]), "f32", 0) * np.float32(4)
