"""Convolutions of one image with constant weights: whole, depthwise, 1x1, and a separable block."""

from collections.abc import Callable
from dataclasses import replace

import data  # the inputs of the benchmark

from peer_cases.layout import Layout, layouts
from peer_cases.problem import (
    TYPES,
    Array,
    Arrays,
    Case,
    Problem,
    held,
    kernel_text,
    product,
    summed,
    typed,
)


def convolution(case: Case, kind: str) -> list[Problem]:
    """x[1, ci, h, h] with w[co, ci / g, r, r]; grouped ones only if they are depthwise."""
    if case["g"] == 1:
        plain = case["r"] == 1 and case["s"] == 1 and case["p"] == 0
        make = _pointwise if plain else _whole
    elif case["g"] == case["ci"] == case["co"]:
        make = _depthwise
    else:
        return []
    return [make(case, kind, layout) for layout in layouts(case["ci"], case["co"])]


def distributing(case: Case, kind: str) -> list[Problem]:
    """The same where products may be distributed over sums, as Winograd's method does."""
    return [
        replace(p, text=p.text.replace(" {", " permit distribute {", 1))
        for p in convolution(case, kind)
    ]


def _out(case: Case) -> int:
    return int((case["h"] + 2 * case["p"] - case["r"]) // case["s"] + 1)


def _window(case: Case) -> str:
    """Return the row and the column of the input that output (p, q) and tap (r, t) read."""

    def index(outer: str, tap: str) -> str:
        text = outer if case["s"] == 1 else f"{case['s']}*{outer}"
        text += f" + {tap}" if case["r"] > 1 else ""
        return f"{text} - {case['p']}" if case["p"] else text

    return f"{index('p', 'r')}, {index('q', 't')}"


def _whole(case: Case, kind: str, layout: Layout) -> Problem:
    x, w = data.conv(case)
    left, right, _ = TYPES[kind]
    h, r, ci, co, o = case["h"], case["r"], case["ci"], case["co"], _out(case)
    term = product(
        kind, f"X[{layout.at(_window(case), 'c')}]", f"F[r, t, {layout.channel('c', 'k')}]"
    )
    text = kernel_text(
        "conv",
        f"in X : {left}[{layout.shape((h, h), ci)}]" + (" pad 0" if case["p"] else "") + held(x),
        f"const F : {right}[{r}, {r}, {layout.channels(ci, co)}]{held(w)}",
        *summed(kind, layout.shape((o, o), co), layout.at("p, q", "k"), term, True),
    )
    inputs = {"X": typed(layout.put(x[0]), left), "F": typed(w.transpose(2, 3, 1, 0), right)}
    return Problem(layout.name, text, inputs, _image(layout, co, o))


def _pointwise(case: Case, kind: str, layout: Layout) -> Problem:
    """Positions are one dimension: without a window it is a product of matrices."""
    x, w = data.conv(case)
    left, right, _ = TYPES[kind]
    h, ci, co = case["h"], case["ci"], case["co"]
    term = product(kind, f"X[{layout.at('p', 'c')}]", f"F[{layout.channel('c', 'k')}]")
    text = kernel_text(
        "pointwise",
        f"in X : {left}[{layout.shape((h * h,), ci)}]{held(x)}",
        f"const F : {right}[{layout.channels(ci, co)}]{held(w)}",
        *summed(kind, layout.shape((h * h,), co), layout.at("p", "k"), term, True),
    )
    inputs = {"X": typed(layout.put(x[0]), left), "F": typed(w[:, :, 0, 0].T, right)}
    return Problem(layout.name, text, inputs, _image(layout, co, h))


def _depthwise(case: Case, kind: str, layout: Layout) -> Problem:
    x, w = data.conv(case)
    left, right, _ = TYPES[kind]
    h, r, c, o = case["h"], case["r"], case["ci"], _out(case)
    term = product(kind, f"X[{layout.at(_window(case), 'c')}]", f"D[r, t, {layout.channel('c')}]")
    text = kernel_text(
        "depthwise",
        f"in X : {left}[{layout.shape((h, h), c)}]" + (" pad 0" if case["p"] else "") + held(x),
        f"const D : {right}[{r}, {r}, {layout.channels(c)}]{held(w)}",
        *summed(kind, layout.shape((o, o), c), layout.at("p, q", "c"), term, True),
    )
    inputs = {"X": typed(layout.put(x[0]), left), "D": typed(w[:, 0].transpose(1, 2, 0), right)}
    return Problem(layout.name, text, inputs, _image(layout, c, o))


def block(case: Case, _: str) -> list[Problem]:
    """Depthwise 3x3 and 1x1 convolution, each with bias and clamp at 0."""
    return [_block(case, layout) for layout in layouts(case["ci"], case["co"])]


def _block(case: Case, layout: Layout) -> Problem:
    x, wd, bd, wp, bp = data.dsblock(case)
    h, ci, co = case["h"], case["ci"], case["co"]
    o = (h - 1) // case["s"] + 1
    c, k = layout.channel("c"), layout.channel("k")
    inner, outer = layout.at("p, q", "c"), layout.at("p, q", "k")
    window = layout.at(_window({**case, "r": 3, "p": 1}), "c")
    text = kernel_text(
        "separable",
        f"in X : f32[{layout.shape((h, h), ci)}] pad 0",
        f"const D : f32[3, 3, {layout.channels(ci)}]",
        f"const A : f32[{layout.channels(ci)}]",
        f"const F : f32[{layout.channels(ci, co)}]",
        f"const B : f32[{layout.channels(co)}]",
        *(f"local {name} : f32[{layout.shape((o, o), ci)}]" for name in ("S", "T")),
        f"local U : f32[{layout.shape((o, o), co)}]",
        f"out Y : f32[{layout.shape((o, o), co)}]",
        f"S[{inner}] += X[{window}] * D[r, t, {c}]",
        f"T[{inner}] = max(S[{inner}] + A[{c}], 0)",
        f"U[{outer}] += T[{inner}] * F[{layout.channel('c', 'k')}]",
        f"Y[{outer}] = max(U[{outer}] + B[{k}], 0)",
    )
    inputs: Arrays = {
        "X": layout.put(x[0]),
        "D": wd[:, 0].transpose(1, 2, 0),
        "A": bd,
        "F": wp[:, :, 0, 0].T,
        "B": bp,
    }
    return Problem(layout.name, text, inputs, _image(layout, co, o))


def _image(layout: Layout, channels: int, side: int) -> Callable[[Array], Array]:
    return lambda y: layout.get(y, channels, side, side)
