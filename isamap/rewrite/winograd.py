"""A convolution as transforms of tiles and a batched product, with fewer multiplications.

Along each slide, tiles of m outputs are computed from m + taps - 1 inputs by as many products
(:mod:`isamap.rewrite.toom_cook`); along two slides the transforms are applied one after the other,
which is their tensor product.  Tiles at the end may reach beyond the outputs: what they read there
is the padding value or a 0, and only outputs that exist are written.
"""

from collections.abc import Iterator
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.index import ceil_div
from isamap.ir.nodes import Kernel, Permissions
from isamap.ir.statements import accesses
from isamap.rewrite.build import extents, is_sole_writer, replaced
from isamap.rewrite.combine import is_exact
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.tiles import Plan, Tiled, statements
from isamap.rewrite.toom_cook import MOST, Transforms, transforms
from isamap.rewrite.windows import Convolution, convolutions
from isamap.rewrite.winograd_error import Bound, error_bound
from isamap.rewrite.winograd_lemmas import same_convolution, tiles_partition

_OUTPUTS = (2, 4)
"""Outputs of a tile along each slide; larger tiles amplify errors too much for f32."""

_SLIDES = 2


def winograd(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a convolution as transforms and a batched product, for each size of tiles.

    The statement is a float ``+=`` of two accesses, one of them read at ``p + r`` for target
    variables p and window variables r of few taps, at any pitch.  The kernel permits distribution,
    reassociation and finite values.  Where the bound of the error is no less than the greatest
    result, nothing is offered.
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
                tiled = tiled_by(convolution, outputs)
                bound = error_bound(kernel, number, convolution, tiled)
                if bound.is_useful:
                    yield _rewritten(kernel, number, convolution, tiled, bound)


def _permitted(permissions: Permissions) -> bool:
    return permissions.distribute and permissions.reassociate and permissions.finite


def _has_tiles(convolution: Convolution, outputs: int) -> bool:
    """Return whether there are matrices, and at least a tile along every slide."""
    return all(
        outputs + slide.taps - 1 <= MOST
        and (slide.size.constant is None or slide.size.constant >= outputs)
        for slide in convolution.slides
    )


def tiled_by(convolution: Convolution, outputs: int) -> tuple[Tiled, ...]:
    """Return the slides in tiles of a number of outputs."""
    return tuple(
        Tiled(slide, transforms(outputs, slide.taps), ceil_div(slide.size, outputs))
        for slide in convolution.slides
    )


def _rewritten(
    kernel: Kernel,
    number: int,
    convolution: Convolution,
    tiled: tuple[Tiled, ...],
    bound: Bound,
) -> Rewriting:
    statement = kernel.statements[number]
    dtype = statement.target.dtype
    whole = _writes_all_once(kernel, number)
    made = statements(Plan(kernel, statement, convolution.data, convolution.window, tiled, whole))
    changed = replaced(kernel, number, made.drafts, made.locals)
    exact = all(_is_exact(tile.transforms, dtype) for tile in tiled)
    error = None if exact else dtype.epsilon
    lemmas = dict.fromkeys(
        lemma
        for tile in tiled
        for lemma in (
            same_convolution(tile.transforms, len(tiled)),
            tiles_partition(tile.transforms.outputs, tile.slide.size),
        )
    )
    taps = "x".join(str(slide.taps) for slide in convolution.slides)
    outputs = "x".join(str(tile.transforms.outputs) for tile in tiled)
    products = prod(tile.transforms.products for tile in tiled)
    plain = prod(tile.transforms.outputs * tile.slide.taps for tile in tiled)
    data, window = (accesses(part)[0].buffer for part in (convolution.data, convolution.window))
    note = (
        f"Winograd F({outputs}, {taps}) over {', '.join(s.tap for s in convolution.slides)}: "
        f"{products} products for {plain}; {bound.text(statement.target.buffer, data, window)}"
    )
    return Rewriting("winograd", number, changed, tuple(lemmas), note, error)


def _writes_all_once(kernel: Kernel, number: int) -> bool:
    """Return whether every element of the target is one sum, to which nothing else is added."""
    statement = kernel.statements[number]
    indices, sizes = statement.target.indices, extents(statement)
    names = [index.name for index in indices]
    shape = kernel.buffer(statement.target.buffer).shape
    return (
        is_sole_writer(kernel, number)
        and len(set(names)) == len(names)
        and all(
            name is not None and sizes.get(name) == size
            for name, size in zip(names, shape, strict=True)
        )
    )


def _is_exact(found: Transforms, dtype: DType) -> bool:
    rows = (*zip(*found.output, strict=True), *found.output, *found.window, *found.data)
    return all(is_exact(row, dtype) for row in rows if any(row))
