"""Instructions whose operands see sums of axes: what is listed is legal, and nothing better is."""

from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
import pytest

from isamap.ir.nodes import Instruction, Permissions
from isamap.mapping import find
from isamap.mapping.axes.padded import SumRoom
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.lemmas import prove_placement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.find import describe, enumerate_mappings
from isamap.mapping.laws.composite import arrangements
from isamap.mapping.laws.enumerate import enumerate_matchings, list_matchings
from isamap.mapping.laws.family import Family
from isamap.mapping.laws.positions import digits, extent, sum_room
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Matching, Placement
from tests.mapping.executing import Places, Point, computes, places_of
from tests.mapping.small import KERNELS, instruction, machine, root, statement

TAP = instruction("tap", statement("c[i] += a[i+r] * b[r]", i=16, r=16))
STRIDED = instruction("strided", statement("c[i] += a[2*i+r] * b[r]", i=16, r=16))
SCATTER = instruction("scatter", statement("c[i+r] += a[i] * b[r]", i=16, r=16))
POOL = instruction("pool", statement("c[i] += a[i+r] * b[i]", i=16, r=16))
STENCIL = instruction("stencil", statement("c[i,j] += a[i+r,j+s] * b[r,s]", i=6, j=6, r=6, s=6))
UNITS = (TAP, STRIDED, SCATTER, POOL)
PAIRS = ("conv1d", "strided", "flipped", "gemv", "outer", "scatter")


def resized(matching: Matching, spare: int, tile: dict[str, int]) -> Matching:
    """Return a matching on axes that just hold the tile, and ``spare`` places more."""
    on_axes = digits(matching, tile)
    axes = tuple(
        replace(axis, extent=max(2, extent(on_axes[axis.name]) + spare))
        for axis in matching.needle.axes
    )
    return replace(matching, needle=replace(matching.needle, axes=axes))


def full(kernel_name: str) -> dict[str, int]:
    return {v.name: v.extent.constant or 0 for v in KERNELS[kernel_name].variables}


@pytest.mark.parametrize("inner", UNITS, ids=lambda i: i.name)
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_listed_runs_right(name: str, inner: Instruction) -> None:
    needle, operands = root(KERNELS[name], inner)
    rng = np.random.default_rng(5)
    found, complete, reason = enumerate_matchings(
        KERNELS[name], needle, operands, 10**6, listed="every"
    )
    assert complete, reason
    assert len({frozenset((p.form, p.axis) for p in m.placements) for m in found}) == len(found)
    for matching in found:
        assert violations(matching) == ()
        for laid in arrangements(matching, Permissions()):
            assert violations(laid) == ()
            for cut in product((1, 2, 3), repeat=len(full(name))):
                tile = {
                    v: min(e, c)
                    for (v, e), c in zip(full(name).items(), cut, strict=True)
                    if v in laid.inner
                }
                on_axes = resized(laid, 1, tile)
                assert legal_on_tile(on_axes, tile)
                zero = dict.fromkeys([n for n, _ in operands], 0)
                assert computes(on_axes, tile, places_of(on_axes, tile), rng, zero)


@pytest.mark.parametrize("inner", UNITS, ids=lambda i: i.name)
@pytest.mark.parametrize("name", ["conv1d", "strided", "flipped", "scatter"])
def test_what_is_listed_is_proved(name: str, inner: Instruction) -> None:
    needle, operands = root(KERNELS[name], inner)
    listing = list_matchings(KERNELS[name], needle, operands, listed="every")
    for local, found in listing.solved:
        assert {prove_placement(local, placed).verdict for placed in found} <= {"proved"}


@pytest.mark.parametrize("inner", UNITS, ids=lambda i: i.name)
@pytest.mark.parametrize("name", ["conv1d", "strided", "flipped", "scatter"])
def test_a_breach_shows_on_a_tile(name: str, inner: Instruction) -> None:
    """Layouts that the checker refuses fail by the sets, at this tile or a larger one."""
    needle, operands = root(KERNELS[name], inner)
    whole = problem(KERNELS[name], needle, operands)
    singles = [form for form in whole.indices if len(form.names) == 1]
    forms = [form * c for form in singles for c in (1, -1, 2)]
    pairs = [(form, axis) for form in forms for axis in whole.axes]
    for chosen in chain.from_iterable(combinations(pairs, n) for n in (1, 2)):
        if len({form.names for form, _ in chosen}) < len(chosen):
            continue
        for levels in product((0, 1), repeat=len(chosen)):
            if len({(a, at) for (_, a), at in zip(chosen, levels, strict=True)}) < len(chosen):
                continue
            matching = Matching(
                KERNELS[name],
                needle,
                operands,
                tuple(Placement(f, a, at) for (f, a), at in zip(chosen, levels, strict=True)),
            )
            tiles = [dict.fromkeys(full(name), n) for n in (3, 6)]
            holds = all(legal_on_tile(resized(matching, 4, tile), tile) for tile in tiles)
            assert holds == (violations(matching) == ()), chosen


@pytest.mark.parametrize(
    ("name", "inner"),
    [*product(["conv1d", "strided", "flipped"], [TAP, STRIDED, SCATTER]), ("gemv", TAP)],
    ids=lambda x: getattr(x, "name", x),
)
def test_no_linear_layout_needs_less_room(name: str, inner: Instruction) -> None:
    """Every linear way to put two variables on two axes that runs right has a listed rival.

    A rival has the same tile and needs no more room on either axis.
    """
    kernel = KERNELS[name]
    needle, operands = root(kernel, inner)
    variables = [v.name for v in kernel.variables]
    tile = dict.fromkeys(variables, 3)
    rivals = set()
    for matching in enumerate_matchings(kernel, needle, operands, 10**6, listed="every")[0]:
        if len(matching.inner) == 2:
            for laid in arrangements(matching, Permissions()):
                room = sum_room(laid)
                free = [extent(digits(laid, tile)[axis.name]) for axis in needle.axes]
                for own in room.extents([3, 3]):
                    rivals.add(tuple(own.get(n, e) for n, e in enumerate(free)))
    rng = np.random.default_rng(0)
    zero = dict.fromkeys([n for n, _ in operands], 0)
    seen = 0
    for factors in product(range(-2, 4), repeat=4):
        by_axis = {"i": factors[:2], "r": factors[2:]}
        extents = {a: 1 + sum(2 * abs(c) for c in own) for a, own in by_axis.items()}
        axes = tuple(replace(axis, extent=extents[axis.name] + 3) for axis in needle.axes)
        matching = Matching(kernel, replace(needle, axes=axes), operands, ())
        places = _linear(variables, by_axis)
        if not computes(matching, tile, places, rng, zero):
            continue
        seen += 1
        wanted = [extents[axis.name] for axis in needle.axes]
        assert any(all(x <= y for x, y in zip(r, wanted, strict=True)) for r in rivals), by_axis
    assert seen or not rivals


def _linear(variables: list[str], by_axis: dict[str, tuple[int, ...]]) -> Places:
    def places(x: Point) -> Point:
        return {
            axis: sum(c * x[v] + max(0, -2 * c) for v, c in zip(variables, own, strict=True))
            for axis, own in by_axis.items()
        }

    return places


# --- known truths -------------------------------------------------------------------------------
def best(text: str, inner: Instruction, **extents: int) -> str:
    kernel = statement(text, **extents)
    found = enumerate_mappings(kernel, machine(inner), Permissions())
    return describe(found.mappings[0]).split(") ", 1)[1]


TAPS = instruction("taps", statement("c[i] += a[i+r] * b[r]", i=16, r=3))


@pytest.mark.parametrize(
    ("text", "extents", "wanted"),
    [
        ("Y[w] += X[w+s] * W[s]", {"w": 64, "s": 3}, "i <- w; r <- s [w 16, s 3]"),
        ("Y[w] += X[w-s+2] * W[s]", {"w": 64, "s": 3}, "i <- w; r <- -s [w 16, s 3]"),
        ("Y[w] += X[w+s] * W[2-s]", {"w": 64, "s": 3}, "i <- w; r <- s [w 16, s 3]"),
        ("Y[w] += X[w+2*s] * W[s]", {"w": 64, "s": 2}, "i <- w; r <- 2*s [w 16, s 2]"),
        ("Y[w] += X[2*w+s] * W[s]", {"w": 64, "s": 3}, "i <- 2*w; r <- s [w 8, s 3]"),
        (
            "Y[h,w] += X[h,w+s] * W[s]",
            {"h": 2, "w": 6, "s": 3},
            "i <- 8*h + w; r <- s [h 2, w 6, s 3]",
        ),
    ],
)  # fmt: skip
def test_convolutions_on_three_taps(text: str, extents: dict[str, int], wanted: str) -> None:
    assert best(text, TAPS, **extents) == wanted


def test_rows_of_an_image_are_padded_by_the_taps() -> None:
    """A row of T positions needs T + taps - 1, or windows would run into the next row."""
    kernel = statement("Y[h,w] += X[h,w+s] * W[s]", h=2, w=3, s=3)
    needle, operands = root(kernel, TAP)
    forms = {"h": 0, "w": 1, "s": 2}
    whole = problem(kernel, needle, operands)
    h, w, s = (whole.indices[forms[n]] for n in "hws")
    placements = (Placement(h, "i", 1), Placement(w, "i"), Placement(s, "r"))
    matching = Matching(kernel, needle, operands, placements)
    own = digits(matching, {"h": 2, "w": 3, "s": 3})["i"]
    assert [digit.weight for digit in own] == [5, 1]
    rng = np.random.default_rng(1)
    for weight in range(1, 8):
        right = computes(
            matching,
            {"h": 2, "w": 3, "s": 3},
            lambda x, weight=weight: {"i": weight * x["h"] + x["w"], "r": x["s"]},  # type: ignore[misc]
            rng,
            {"a": 0, "b": 0},
        )
        assert right == (weight >= 5), weight


@pytest.mark.parametrize(
    ("family", "count", "nonempty"),
    [("exact", 16, 9), ("broadcast", 16, 9), ("diagonal", 72, 65), ("embedded", 108, 101)],
)
def test_families(family: Family, count: int, nonempty: int) -> None:
    kernel = statement("O[b,k,l] += P[b,c,l+r] * W[k,c,r]", b=8, k=64, c=64, l=50, r=3)
    needle, operands = root(kernel, TAPS)
    for wanted, every_axis in ((count, False), (nonempty, True)):
        listing = list_matchings(
            kernel, needle, operands, family=family, listed="every", nonempty=every_axis
        )
        assert listing.count == wanted


def test_a_sum_alone_cannot_be_padded() -> None:
    """Where only the sum i + r sees r, padding r meets elements that other results use.

    One result at a time is safe: beyond its own elements there are only unused ones.
    """
    pool = instruction("pool", statement("c[i] += a[i+r]", i=8, r=3))
    kernel = statement("Y[w] += X[w+s]", w=9, s=3)
    needle, operands = root(kernel, pool)
    inner = {m.inner for m in enumerate_matchings(kernel, needle, operands, listed="every")[0]}
    assert inner == {(), ("s",)}


def test_levels_of_separate_sums_are_ordered_apart() -> None:
    room = SumRoom(
        ((1, 0, 1, 0), (0, 1, 0, 1)),
        ((0, 0, (1, 0)), (2, 0, (0, 1)), (1, 1, (1, 0)), (3, 1, (0, 1))),
        ((0, 4), (1, 4), (2, 3), (3, 3)),
    )
    assert [len(group.digits) for group in room.groups()] == [2, 2]
    assert room.fits(np.array([[4, 3], [5, 3], [4, 4]])).tolist() == [True, False, False]


def test_of_very_many_matchings_tiles_are_sought_of_those_that_promise_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = statement("Y[h,w] += X[h+r,w+s] * W[r,s]", h=12, w=9, r=3, s=3)
    found = enumerate_mappings(kernel, machine(STENCIL), Permissions())
    monkeypatch.setattr(find, "MOST_LEVELLED", 8)
    fewer = enumerate_mappings(kernel, machine(STENCIL), Permissions())
    assert fewer.mappings[0].utilisation == found.mappings[0].utilisation
    assert len(fewer.mappings) < len(found.mappings)
    assert (found.complete, fewer.complete) == (True, False)
    assert fewer.reason == "stencil: tiles of 8 of its matchings were sought"
