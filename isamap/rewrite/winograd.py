"""A convolution as transforms of tiles and a batched product, with fewer multiplications.

Along each slide, tiles of m outputs are computed from m + taps - 1 inputs by as many products
(:mod:`isamap.rewrite.toom_cook`); along two slides the transforms are applied one after the other,
which is their tensor product.  Tiles at the end may reach beyond the outputs: what they read there
is the padding value or a 0, and only outputs that exist are written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.index import ceil_div
from isamap.ir.nodes import Kernel, Permissions
from isamap.ir.statements import accesses, reduction_variables
from isamap.rewrite.build import extents, replaced
from isamap.rewrite.combine import is_exact
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.tiles import Plan, Tiled, statements
from isamap.rewrite.toom_cook import MOST, Transforms, transforms
from isamap.rewrite.windows import Convolution, convolutions
from isamap.rewrite.winograd_lemmas import same_convolution, tiles_partition

_OUTPUTS = (2, 4)
"""Outputs of a tile along each slide; larger tiles amplify errors too much for f32."""

_SLIDES = 2


def winograd(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a convolution as transforms and a batched product, for each size of tiles.

    The statement is a float ``+=`` of two accesses, one of them read at ``p + r`` for target
    variables p and window variables r of few taps, at any pitch.  The kernel permits distribution,
    reassociation and finite values.
    """
    if not _permitted(kernel.permissions):
        return
    statement = kernel.statements[number]
    for convolution in convolutions(statement, _SLIDES):
        (data,) = accesses(convolution.data)
        pad = kernel.buffer(data.buffer).pad
        if pad is not None and pad.text in ("inf", "-inf", "nan"):
            continue
        for outputs in _OUTPUTS:
            if _has_tiles(convolution, outputs):
                yield _rewritten(kernel, number, convolution, outputs)


def _permitted(permissions: Permissions) -> bool:
    return permissions.distribute and permissions.reassociate and permissions.finite


def _has_tiles(convolution: Convolution, outputs: int) -> bool:
    """Return whether there are matrices, and at least a tile along every slide."""
    return all(
        outputs + slide.taps - 1 <= MOST
        and (slide.size.constant is None or slide.size.constant >= outputs)
        for slide in convolution.slides
    )


def _rewritten(kernel: Kernel, number: int, convolution: Convolution, outputs: int) -> Rewriting:
    statement = kernel.statements[number]
    dtype = statement.target.dtype
    tiled = tuple(
        Tiled(slide, transforms(outputs, slide.taps), ceil_div(slide.size, outputs))
        for slide in convolution.slides
    )
    made = statements(Plan(kernel, statement, convolution.data, convolution.window, tiled))
    changed = replaced(kernel, number, made.drafts, made.locals)
    exact = all(_is_exact(tile.transforms, dtype) for tile in tiled)
    error = None if exact else dtype.epsilon
    lemmas = dict.fromkeys(
        lemma
        for tile in tiled
        for lemma in (
            same_convolution(tile.transforms, len(tiled)),
            tiles_partition(outputs, tile.slide.size),
        )
    )
    taps = "x".join(str(slide.taps) for slide in convolution.slides)
    name = f"F({'x'.join([str(outputs)] * len(tiled))}, {taps})"
    products = prod(tile.transforms.products for tile in tiled)
    plain = prod(outputs * tile.slide.taps for tile in tiled)
    note = (
        f"Winograd {name} over {', '.join(s.tap for s in convolution.slides)}: {products} products "
        f"for {plain}; {_bound(kernel, number, convolution, tiled, dtype)}"
    )
    return Rewriting("winograd", number, changed, tuple(lemmas), note, error)


def _is_exact(found: Transforms, dtype: DType) -> bool:
    rows = (*zip(*found.output, strict=True), *found.output, *found.window, *found.data)
    return all(is_exact(row, dtype) for row in rows if any(row))


def _bound(
    kernel: Kernel,
    number: int,
    convolution: Convolution,
    tiled: tuple[Tiled, ...],
    dtype: DType,
) -> str:
    """Return the error bound as text."""
    bound = error_bound(kernel, number, convolution, tiled)
    a, b = (accesses(part)[0].buffer for part in (convolution.data, convolution.window))
    if bound is None:
        return "no bound of the error: the number of terms is a symbol"
    return (
        f"error at most {float(bound.relative):.2g} of {bound.terms} max|{a}| max|{b}|, "
        f"{bound.roundings} roundings amplified {float(bound.amplification):.4g} times"
    )


@dataclass(frozen=True, slots=True)
class Bound:
    """An absolute error of ``relative * terms * max|data| * max|window|`` at most.

    ``terms`` is how many products a sum has; ``roundings`` how many errors of at most the unit
    roundoff lie on a way from an element to a result; ``amplification`` the sum of magnitudes of
    the transformed products of one tile and one term, by the magnitudes of the elements.
    """

    relative: Fraction
    terms: int
    roundings: int
    amplification: Fraction


def error_bound(
    kernel: Kernel, number: int, convolution: Convolution, tiled: tuple[Tiled, ...]
) -> Bound | None:
    """Return how far a result may be from the exact one; None where a sum has symbolic extents.

    Every result is a sum of products of elements and coefficients, each with a factor
    ``(1 + d1)...(1 + dk)``, ``|d| <= u``; so its error is at most gamma(k) = k u / (1 - k u) times
    the sum of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), which
    over a tile is at most max_i sum_k |A[i][k]| (sum_j |G[k][j]|) (sum_l |B[k][l]|) for each slide.
    """
    statement = kernel.statements[number]
    sizes = extents(statement)
    taps = {slide.tap for slide in convolution.slides}
    inner = [sizes[v].constant for v in reduction_variables(statement) if v not in taps]
    numbers = [size for size in inner if size is not None]
    if len(numbers) < len(inner):
        return None
    count, unit = prod(numbers), statement.target.dtype.epsilon
    roundings = count + 2 + sum(_roundings(tile.transforms) for tile in tiled)
    amplification = Fraction(1)
    for tile in tiled:
        amplification *= tile.transforms.amplification
    gamma = roundings * unit / (1 - roundings * unit)
    terms = count * prod(tile.slide.taps for tile in tiled)
    return Bound(gamma * amplification * count / terms, terms, roundings, amplification)


def _roundings(found: Transforms) -> int:
    """Return the roundings on the longest way through the three transforms of a slide.

    A combination of n terms has n - 1 sums, and two products whose coefficients are rounded too.
    """
    return sum(
        max(sum(map(bool, row)) for row in rows) - 1 + 4
        for rows in (found.output, found.window, found.data)
    )
