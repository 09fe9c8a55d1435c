"""What goes over elements one by one: chains of statements, with buffers between them."""

import data  # the inputs of the benchmark
import numpy as np

from peer_cases.problem import Case, Problem, kernel_text, readable


def silu(case: Case, _: str) -> list[Problem]:
    """A bias for each column, and what it is times its own logistic function."""
    x, b = data.biased(case)
    text = _chain(
        case,
        "silu",
        ("in X : f32[{}]", "const B : f32[{c}]"),
        ("T[r, c] = X[r, c] + B[c]", "Y[r, c] = T[r, c] / (1 + exp(-T[r, c]))"),
    )
    return [Problem("rows", text, {"X": x, "B": b}, readable)]


def residual(case: Case, _: str) -> list[Problem]:
    """The sum of two matrices, half of it, and nothing below 0."""
    x, z = data.two(case)
    text = _chain(
        case,
        "residual",
        ("in X : f32[{}]", "in Z : f32[{}]"),
        ("T[r, c] = X[r, c] + Z[r, c]", "U[r, c] = T[r, c] * 0.5", "Y[r, c] = max(U[r, c], 0)"),
    )
    return [Problem("rows", text, {"X": x, "Z": z}, readable)]


def chain(case: Case, _: str) -> list[Problem]:
    """Scaled and moved by columns, cut off at 0, squared."""
    x, b = data.biased(case)
    text = _chain(
        case,
        "chain",
        ("in X : f32[{}]", "const A : f32[{c}]", "const B : f32[{c}]"),
        (
            "T[r, c] = X[r, c] * A[c]",
            "U[r, c] = T[r, c] + B[c]",
            "V[r, c] = max(U[r, c], 0)",
            "Y[r, c] = V[r, c] * V[r, c]",
        ),
    )
    inputs = {"X": x, "A": np.full_like(b, 1.5), "B": b}
    return [Problem("rows", text, inputs, readable)]


def _chain(case: Case, name: str, given: tuple[str, ...], statements: tuple[str, ...]) -> str:
    shape = f"{case['rows']}, {case['cols']}"
    between = [f"local {line[0]} : f32[{shape}]" for line in statements[:-1]]
    declared = [line.format(shape, c=case["cols"]) for line in given]
    return kernel_text(name, *declared, *between, f"out Y : f32[{shape}]", *statements)
