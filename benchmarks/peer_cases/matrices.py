"""Products of matrices: of two that are given, and of one with constant weights."""

import data  # the inputs of the benchmark

from peer_cases.problem import (
    TYPES,
    Array,
    Case,
    Problem,
    held,
    kernel_text,
    product,
    readable,
    summed,
    typed,
)


def gemm(case: Case, kind: str) -> list[Problem]:
    """C[m, n] = A[m, k] B[k, n]."""
    a, b = data.gemm(case)
    return [_matmul("gemm", kind, a, b, "in", "B[k, n]")]


def linear(case: Case, kind: str) -> list[Problem]:
    """Y[n, m] = X[n, k] W[m, k], W constant."""
    x, w = data.linear(case)
    return [_matmul("linear", kind, x, w, "const", "B[n, k]")]


def _matmul(name: str, kind: str, a: Array, b: Array, role: str, access: str) -> Problem:
    left, right, _ = TYPES[kind]
    (m, k), n = a.shape, b.size // a.shape[1]
    shape = ", ".join(map(str, b.shape))
    text = kernel_text(
        name,
        f"in A : {left}[{m}, {k}]{held(a)}",
        f"{role} B : {right}[{shape}]{held(b)}",
        *summed(kind, f"{m}, {n}", "m, n", product(kind, "A[m, k]", access), False),
    )
    return Problem("rows", text, {"A": typed(a, left), "B": typed(b, right)}, readable)
