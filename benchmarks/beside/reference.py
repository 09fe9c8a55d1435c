"""Right answers in f64, and how far from them an answer in the types of a case may lie.

A sum of n terms that is taken in f32 in any order is off by at most gamma(n) times the sum of
their absolute values, gamma(n) = n u / (1 - n u), u = 2^-24 (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, section 4.2).  Sums of bytes are exact.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from beside import inputs
from beside.cases import Case, element_kind, side
from beside.inputs import Array

UNIT = 2.0**-24
"""Half a unit in the last place of 1 in f32."""

UNIT_DOT = 2.0**-23
"""The same for dot products of bf16, which some units add up rounding to odd or down."""

UNIT_BF16 = 2.0**-8

EXP_UNITS = 8
"""How far an exponential of f32 may be off, in UNIT relative to its value."""


@dataclass(frozen=True)
class Expected:
    """The answer of a case, and the most that each element may differ from it."""

    values: Array
    bound: Array | float

    def fault(self, answer: Array) -> str | None:
        """Return what is wrong with an answer; None if it is within the bound everywhere."""
        if answer.shape != self.values.shape:
            return f"shape {answer.shape}, not {self.values.shape}"
        error = np.abs(answer.astype(np.float64) - self.values)
        bad = ~(error <= self.bound)  # a NaN is not within any bound
        if not bad.any():
            return None
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        allowed = np.broadcast_to(self.bound, error.shape)[place]
        return (
            f"{np.count_nonzero(bad)} of {bad.size} elements; {answer[place]} for "
            f"{self.values[place]:.9g} at {place}, where {allowed:.3g} more or less is allowed"
        )


def gamma(terms: int, unit: float = UNIT) -> float:
    """Return the most that a sum of so many terms is off, relative to their absolute values."""
    return terms * unit / (1 - terms * unit)


def expected(case: Case) -> Expected:
    """Return the answer of a case in f64, with its bound."""
    match str(case["family"]).partition("_")[0]:
        case "gemm":
            a, b = _exact(case, *inputs.gemm(case))
            return _summed(case, a @ b, np.abs(a) @ np.abs(b), int(case["k"]))
        case "linear":
            x, w = _exact(case, *inputs.linear(case))
            return _summed(case, x @ w.T, np.abs(x) @ np.abs(w).T, int(case["k"]))
        case "conv" | "pw" | "dw":
            x, w = _exact(case, *inputs.conv(case))
            terms = int(case["ci"] // case["g"] * case["r"] ** 2)
            size = convolved(case, np.abs(x), np.abs(w))
            return _summed(case, convolved(case, x, w), size, terms)
        case "conv3x3":
            x, w = _exact(case, *inputs.conv(case))
            return Expected(convolved(case, x, w), _of_tiles(case, x, w))
        case "dsblock":
            return _block(case)
        case "softmax":
            return _softmax(case)
        case "layernorm":
            return _layer_norm(case)
        case "silu":
            return _silu(case)
        case "residual":
            x, z = (a.astype(np.float64) for a in inputs.two(case))
            return Expected(np.maximum((x + z) / 2, 0), UNIT * np.abs(x + z))
        case "chain":
            return _chain(case)
    raise KeyError(case["family"])


def _of_tiles(case: Case, x: Array, w: Array) -> float:
    """Return how far a sum may be off that Winograd's method computes, in tiles of 4x4 outputs.

    gamma(k) A ci max|x| max|w|, with A = 48² for the transforms of 4 outputs of 3 taps along both
    axes, and k = ci + 24 roundings on the way to a result; docs/rewrites.md derives it.  The bound
    of a plain sum is less.
    """
    terms = int(case["ci"])
    return gamma(terms + 24) * 48**2 * terms * float(np.abs(x).max() * np.abs(w).max())


def convolved(case: Case, x: Array, w: Array) -> Array:
    """Return the convolution of x[1, ci, h, h] with w[co, ci / g, r, r], tap by tap."""
    step, pad, size, out = case["s"], case.get("p", 1), w.shape[-1], side(case)
    padded = np.pad(x[0], ((0, 0), (pad, pad), (pad, pad)))
    y = np.zeros((w.shape[0], out, out))
    for i in range(size):
        for j in range(size):
            part = padded[
                :, i : i + step * (out - 1) + 1 : step, j : j + step * (out - 1) + 1 : step
            ]
            tap = w[:, :, i, j]
            depthwise = w.shape[1] == 1 and x.shape[1] > 1
            y += tap[:, 0, None, None] * part if depthwise else np.tensordot(tap, part, 1)
    return y[None]


def _exact(case: Case, *arrays: Array) -> list[Array]:
    """Return inputs in f64, rounded to the type of their elements before."""
    dtype = ml_dtypes.bfloat16 if element_kind(case) == "bf16" else None
    return [a.astype(dtype or a.dtype).astype(np.float64) for a in arrays]


def _summed(case: Case, values: Array, size: Array, terms: int) -> Expected:
    """Return sums of so many products, whose absolute values add up to ``size``, as a case ends."""
    kind = element_kind(case)
    if kind == "f32":
        return Expected(values, gamma(terms) * size)
    if kind == "bf16":
        inner = gamma(terms, UNIT_DOT) * size
        return Expected(values, inner + UNIT_BF16 * (np.abs(values) + inner))
    if case["family"].startswith(("gemm", "linear")):
        return Expected(values, 0.0)
    return Expected(np.clip(np.rint(values / 256), 0, 255), 0.0)


def _block(case: Case) -> Expected:
    x, wd, bd, wp, bp = (a.astype(np.float64) for a in inputs.dsblock(case))
    place = {**case, "p": 1}
    inner = np.maximum(convolved(place, x, wd) + bd[:, None, None], 0)[0]
    size = convolved(place, np.abs(x), np.abs(wd))[0] + np.abs(bd)[:, None, None]
    off = gamma(10) * size
    w, ci = wp[:, :, 0, 0], int(case["ci"])
    values = np.maximum(np.tensordot(w, inner, 1) + bp[:, None, None], 0)
    outer = np.tensordot(np.abs(w), inner + off, 1) + np.abs(bp)[:, None, None]
    bound = np.tensordot(np.abs(w), off, 1) + gamma(ci + 1) * outer
    return Expected(values[None], bound[None])


def _softmax(case: Case) -> Expected:
    x = inputs.rows(case).astype(np.float64)
    below = x - x.max(-1, keepdims=True)
    e = np.exp(below)
    y = e / e.sum(-1, keepdims=True)
    # Of an element, and of the sum that it is divided by: the difference, its exponential.
    units = 2 * (int(np.ceil(np.abs(below).max())) + EXP_UNITS) + int(case["cols"]) + 1
    return Expected(y, gamma(units) * y)


def _silu(case: Case) -> Expected:
    x, b = (a.astype(np.float64) for a in inputs.biased(case))
    t = x + b
    y = t / (1 + np.exp(-t))
    # The sum, through a slope of at most 1.1; the exponential of it, which some compute of another
    # form that is off by as much beside 1; and what is left, twice rounded.
    units = EXP_UNITS + int(np.ceil(np.abs(t).max())) + 2
    return Expected(y, 1.1 * UNIT * np.abs(t) + units * UNIT * np.abs(t))


def _chain(case: Case) -> Expected:
    x, b = (a.astype(np.float64) for a in inputs.biased(case))
    off = gamma(2) * (np.abs(x * 1.5) + np.abs(b))
    v = np.maximum(x * 1.5 + b, 0)
    return Expected(v * v, (2 * v + off) * off + UNIT * (v + off) ** 2)


def _layer_norm(case: Case) -> Expected:
    x, terms = inputs.rows(case).astype(np.float64), int(case["cols"]) + 4
    mean = x.mean(-1, keepdims=True)
    d = x - mean
    variance = (d * d).mean(-1, keepdims=True) + 1e-5
    y = d / np.sqrt(variance)
    off = gamma(terms) * np.abs(x).mean(-1, keepdims=True) + 2 * UNIT * np.abs(d)
    # Whether the variance is summed from differences or from squares.
    off_variance = 2 * gamma(terms) * ((x * x).mean(-1, keepdims=True) + mean * mean)
    bound = off / np.sqrt(variance) + np.abs(y) * (off_variance / variance + EXP_UNITS * UNIT)
    return Expected(y, bound)
