"""What goes over rows of a matrix: soft-max, layer norm, and attention, with a soft-max in it."""

from math import sqrt

import data  # the inputs of the benchmark
import numpy as np

from peer_cases.problem import Array, Case, Problem, kernel_text, readable

RECIPROCAL = "permit approximate(1.2e-7)"
"""What other libraries do without a word: they multiply by the reciprocal of a sum."""


def softmax(case: Case, _: str) -> list[Problem]:
    """Over the last axis, kept in range by each row's maximum."""
    r, c = case["rows"], case["cols"]
    text = kernel_text(
        f"softmax {RECIPROCAL}",
        f"in X : f32[{r}, {c}]",
        f"local M : f32[{r}]",
        f"local E : f32[{r}, {c}]",
        f"local S : f32[{r}]",
        f"out Y : f32[{r}, {c}]",
        "M[r] max= X[r, c]",
        "E[r, c] = exp(X[r, c] - M[r])",
        "S[r] += E[r, c]",
        "Y[r, c] = E[r, c] / S[r]",
    )
    return [Problem("rows", text, {"X": _rows(case)}, readable)]


def layer_norm(case: Case, _: str) -> list[Problem]:
    """Over the last axis, with a constant scale of ones and offset of zeros."""
    r, c = case["rows"], case["cols"]
    apart = f"(X[r, c] - S[r] * {1 / c!r})"  # cheaper to compute twice than to store
    text = kernel_text(
        "layernorm",
        f"in X : f32[{r}, {c}]",
        f"const G : f32[{c}]",
        f"const B : f32[{c}]",
        f"local S : f32[{r}]",
        f"local V : f32[{r}]",
        f"out Y : f32[{r}, {c}]",
        "S[r] += X[r, c]",
        f"V[r] += {apart} * {apart}",
        f"Y[r, c] = {apart} * rsqrt(V[r] * {1 / c!r} + 0.00001) * G[c] + B[c]",
    )
    inputs = {"X": _rows(case), "G": np.ones(c, np.float32), "B": np.zeros(c, np.float32)}
    return [Problem("rows", text, inputs, readable)]


def attention(case: Case, _: str) -> list[Problem]:
    """Scaled dot products of queries and keys, their soft-max, and its products with values."""
    q, k, v = data.attention(case)
    n, s, d = case["b"] * case["heads"], case["s"], case["d"]
    text = kernel_text(
        f"attention {RECIPROCAL}",
        *(f"in {name} : f32[{n}, {s}, {d}]" for name in "QKV"),
        *(f"local {name} : f32[{n}, {s}, {s}]" for name in "PE"),
        *(f"local {name} : f32[{n}, {s}]" for name in "MZ"),
        f"local O : f32[{n}, {s}, {d}]",
        f"out Y : f32[{n}, {s}, {d}]",
        "P[h, i, j] += Q[h, i, d] * K[h, j, d]",
        "M[h, i] max= P[h, i, j]",
        f"E[h, i, j] = exp((P[h, i, j] - M[h, i]) * {1 / sqrt(d)!r})",
        "Z[h, i] += E[h, i, j]",
        "O[h, i, d] += E[h, i, j] * V[h, j, d]",
        "Y[h, i, d] = O[h, i, d] / Z[h, i]",
    )
    inputs = {name: array.reshape(n, s, d) for name, array in (("Q", q), ("K", k), ("V", v))}
    shape = (case["b"], case["heads"], s, d)
    return [Problem("rows", text, inputs, lambda y: y.reshape(shape))]


def _rows(case: Case) -> Array:
    rows: Array = data.rows(case)
    return rows.astype(np.float32)
