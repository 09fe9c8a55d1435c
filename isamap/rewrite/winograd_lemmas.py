"""Lemmas that transformed tiles compute a convolution, and that tiles compute every output once."""

from collections.abc import Sequence
from fractions import Fraction

from isamap.ir.index import Index
from isamap.rewrite.term_lemmas import real
from isamap.rewrite.toom_cook import Transforms
from isamap.solver.lemma import Lemma


def same_convolution(found: Transforms, slides: int) -> Lemma:
    """Return the lemma that the transforms along one slide compute the convolution.

    For all real data and windows of a tile.  Along several slides the transforms are the tensor
    product of those along each, and the identity, which is bilinear, carries over slide by slide.
    """
    window = [f"w{j}" for j in range(found.taps)]
    data = [f"x{place}" for place in range(found.products)]
    lines = [f"(declare-const {name} Real)" for name in (*window, *data)]
    products = [
        f"(* {_dot(g, window)} {_dot(b, data)})"
        for g, b in zip(found.window, found.data, strict=True)
    ]
    wrong = []
    for i, row in enumerate(found.output):
        plain = " ".join(f"(* {w} {data[i + j]})" for j, w in enumerate(window))
        wrong.append(f"(not (= {_dot(row, products)} (+ 0.0 {plain})))")
    lines.append(f"(assert (or false {' '.join(wrong)}))")
    each = ", along each slide, so by the tensor product along both" if slides > 1 else ""
    claim = (
        f"F({found.outputs}, {found.taps}): the transform of {found.products} products is the sum "
        f"over {found.taps} taps for each of {found.outputs} outputs{each}"
    )
    return Lemma("transformed tile", claim, "\n".join(lines) + "\n")


def tiles_partition(outputs: int, size: Index) -> Lemma:
    """Return the lemma that every position is one output of one tile, for positions below a size.

    Output i of a tile is written for as many tiles as have a position ``outputs * t + i``.
    """
    lines = ["(declare-const p Int)", "(declare-const n Int)"]
    lines.append("(assert (and (<= 0 p) (< p n)))")
    if (number := size.constant) is not None:
        lines.append(f"(assert (= n {number}))")
    held = []
    for i in range(outputs):
        tile = f"(div p {outputs})"
        count = f"(div (+ (- n {i}) {outputs - 1}) {outputs})"
        held.append(f"(and (= (mod p {outputs}) {i}) (<= 0 {tile}) (< {tile} {count}))")
    lines.append(f"(assert (not (or {' '.join(held)})))")
    claim = f"each position below {size} is output p % {outputs} of tile p // {outputs} alone"
    return Lemma("tiles", claim, "\n".join(lines) + "\n")


def _dot(row: Sequence[Fraction], terms: Sequence[str]) -> str:
    parts = (f"(* {real(c)} {term})" for c, term in zip(row, terms, strict=True) if c)
    return f"(+ 0.0 {' '.join(parts)})"
