"""Tiles: they fit, the best one is the best there is, and simple ones are among them."""

from itertools import product
from math import prod

import pytest

from isamap.ir.nodes import Statement
from isamap.mapping.axes.room import axis_extent, form_extent, never_larger
from isamap.mapping.axes.rows import row
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.matching import Mapping, Matching
from isamap.mapping.tiles.tile import tiles
from tests.mapping.small import GEMM, LANES, root, statement


def matching(kernel: Statement, **placed: str) -> Matching:
    """Return the tight matching on GEMM (or lanes) with exactly these forms on the axes."""
    inner = GEMM if "k" in placed else LANES
    needle, operands = root(kernel, inner)
    for found in enumerate_matchings(kernel, needle, operands)[0]:
        texts = {a.name: " ".join(map(str, found.on_axis(a.name))) for a in needle.axes}
        if texts == placed:
            return found
    raise AssertionError("no such matching")


def best_by_hand(found: Matching) -> float:
    """Return the utilisation of the best tile of all."""
    inner = found.inner
    known = {v.name: v.extent.constant or 0 for v in found.statement.variables}
    forms = {a.name: [row(f, inner) for f in found.on_axis(a.name)] for a in found.needle.axes}
    best = 0.0
    for tile in product(*(range(1, min(known[n], 16) + 1) for n in inner)):
        if all(axis_extent(forms[a.name], tile) <= a.extent for a in found.needle.axes):
            done = prod(known[n] / -(-known[n] // t) for n, t in zip(inner, tile, strict=True))
            best = max(best, done / prod(a.extent for a in found.needle.axes))
    return best


@pytest.mark.parametrize("extents", [(16, 16), (7, 7), (56, 56), (14, 30), (5, 3), (17, 17)])
def test_best_tile_of_two_fused_variables(extents: tuple[int, int]) -> None:
    kernel = statement("Y[h,w] += X[h,w] * W[]", h=extents[0], w=extents[1])
    found = matching(kernel, i="h w")
    assert tiles(found)[0].utilisation == pytest.approx(best_by_hand(found))


@pytest.mark.parametrize("extents", [(50, 3), (9, 9), (14, 5), (100, 2)])
def test_best_tile_of_a_banded_placement(extents: tuple[int, int]) -> None:
    kernel = statement("Y[p] += X[p+r] * W[r]", p=extents[0], r=extents[1])
    found = matching(kernel, i="", j="p", k="p + r")
    assert tiles(found)[0].utilisation == pytest.approx(best_by_hand(found))


def test_full_lanes_and_a_short_last_tile() -> None:
    kernel = statement("Y[w] += X[w] * W[]", w=20)
    (mapping,) = [m for m in tiles(matching(kernel, i="w")) if m.tile["w"] > 10]
    assert mapping.tile == {"w": 16}
    assert mapping.utilisation == pytest.approx(20 / 32)


def test_simple_tiles_are_kept() -> None:
    kernel = statement("Y[h,w,c] += X[h,w,c] * W[]", h=56, w=56, c=24)
    found = tiles(matching(kernel, i="h w c"))
    shapes = [tuple(m.tile.values()) for m in found]
    assert (1, 1, 16) in shapes  # 24 of 32 lanes, yet one contiguous piece
    assert found[0].utilisation == 1.0
    assert len(shapes) == len(set(shapes)) <= 8


def test_symbolic_extents_are_large() -> None:
    kernel = statement("Y[m,n] += A[m,q] * B[q,n]", m="M", n="N", q="Q")
    mapping = tiles(matching(kernel, i="m", j="n", k="q"))[0]
    assert mapping.tile == {"m": 16, "n": 16, "q": 16}
    assert mapping.utilisation == 1.0


def test_tiles_of_nothing() -> None:
    kernel = statement("Y[] += A[] * B[]")
    needle, operands = root(kernel, GEMM)
    (found,) = enumerate_matchings(kernel, needle, operands)[0]
    assert tiles(found) == (Mapping(found, {}, 1 / 4096),)


def test_limit() -> None:
    kernel = statement("Y[h,w,c] += X[h,w,c] * W[]", h=56, w=56, c=24)
    assert len(tiles(matching(kernel, i="h w c"), 3)) == 3


# --- room ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("form", "tile", "extent"),
    [
        ((1, 1), (4, 3), 6),
        ((2, 1), (4, 3), 9),
        ((2, 1), (4, 1), 4),  # the other variable is outer: steps of 2 are steps of 1
        ((1, -1), (4, 3), 6),
        ((4, 6), (3, 2), 8),
        ((1, 1), (1, 1), 1),
    ],
)
def test_form_extent(form: tuple[int, ...], tile: tuple[int, ...], extent: int) -> None:
    assert form_extent(form, tile) == extent


def test_never_larger_agrees_with_all_small_tiles() -> None:
    lists = [((1, 1),), ((1, 0), (0, 1)), ((2, 1),), ((3, 1),), ((1, 0), (1, 1)), ((1, 0),)]
    for one, other in product(lists, repeat=2):
        seen = all(
            axis_extent(one, tile) <= axis_extent(other, tile)
            for tile in product(range(2, 9), repeat=2)
        )
        assert never_larger(one, other) == seen
