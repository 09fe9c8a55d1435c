"""Instructions that read one operand at several places: one register, one content."""

import random
from dataclasses import replace
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Permissions, Statement
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.lemmas import prove_placement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.composite import arrangements
from isamap.mapping.laws.enumerate import Listing, components, list_matchings
from isamap.mapping.laws.family import Family
from isamap.mapping.laws.laws import is_legal
from isamap.mapping.laws.positions import digits
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.needles import Bindings, needles, roots
from isamap.mapping.tiles.shared import brought, gathered, wholly_shared
from tests.mapping.executing import Places, Point, computes, places_of
from tests.mapping.small import instruction, machine, statement
from tests.mapping.test_functional import resized
from tests.profiles import examples

CASES = {
    # the square of a vector: all of it, and none of it where it is too long
    "gram": ("C[m,n] += A[m] * A[n]", {"m": 3, "n": 3}, "c[i,j] += a[i] * a[j]"),
    "gram of two lengths": ("C[m,n] += A[m] * A[n]", {"m": 3, "n": 2}, "c[i,j] += a[i] * a[j]"),
    "squares": ("C[b,m] += A[b,m] * A[b,m]", {"b": 2, "m": 3}, "c[i,j] += a[i] * a[j]"),
    "all pairs": ("Y[] += A[m] * A[n]", {"m": 3, "n": 3}, "c[] += a[i] * a[j]"),
    "some pairs": ("Y[] += A[m] * A[n]", {"m": 3, "n": 2}, "c[] += a[i] * a[j]"),
    "reversed": ("C[m,n] += A[m] * A[2-n]", {"m": 3, "n": 3}, "c[i,j] += a[i] * a[j]"),
    "every other": ("C[m,n] += A[m] * A[2*n]", {"m": 3, "n": 2}, "c[i,j] += a[i] * a[j]"),
    # neighbours
    "lag": ("Y[] += A[w] * A[w+1]", {"w": 3}, "c[] += a[i] * a[i+1]"),
    "lag in rows": ("Y[] += A[h,w] * A[h,w+1]", {"h": 2, "w": 3}, "c[] += a[i] * a[i+1]"),
    "lag across rows": ("Y[] += A[h,w] * A[h+1,w]", {"h": 2, "w": 3}, "c[] += a[i] * a[i+1]"),
    "a longer lag": ("Y[] += A[w] * A[w+2]", {"w": 3}, "c[] += a[i] * a[i+1]"),
    "lag of lanes": ("Y[w,c] += A[w] * A[w+1]", {"w": 3, "c": 2}, "c[i,j] += a[i] * a[i+1]"),
    "strided": ("Y[w] += A[2*w] * A[2*w+1]", {"w": 4}, "c[i] += a[i] * a[i+1]"),
    "pairs": ("Y[w] += A[2*w] * A[2*w+1]", {"w": 4}, "c[i] += a[2*i] * a[2*i+1]"),
    "two buffers": ("Y[w] += A[w] * B[w]", {"w": 3}, "c[i] += a[i] * a[i+1]"),
    "two buffers, even and odd": ("Y[w] += A[w] * B[w]", {"w": 3}, "c[i] += a[2*i] * a[2*i+1]"),
    "mirrored": ("Y[w] += A[w] * A[3-w]", {"w": 4}, "c[i] += a[i] * a[3-i]"),
    "transposed": ("Y[h,w] += A[h,w] * A[w,h]", {"h": 3, "w": 3}, "c[i,j] += a[i,j] * a[j,i]"),
    "syrk": (
        "C[m,n] += A[m,k] * A[n,k]",
        {"m": 2, "n": 2, "k": 2},
        "c[i,j] += a[i,k] * a[j,k]",
    ),
    "square of a matrix": (
        "C[m,n] += A[m,k] * A[k,n]",
        {"m": 2, "n": 2, "k": 2},
        "c[i,j] += a[i,k] * a[k,j]",
    ),
}  # fmt: skip

Placed: TypeAlias = tuple[tuple[str, str], ...]
"""Variables on axes."""

ACCIDENTS: dict[str, set[Placed]] = {
    # The places happen to reach different elements at these extents, not at others.
    "syrk": {(("m", "i"), ("m", "j"), ("m", "k")), (("n", "i"), ("n", "j"), ("n", "k"))},
    "square of a matrix": {
        (("m", "i"), ("m", "j"), ("m", "k")),
        (("n", "i"), ("n", "j"), ("n", "k")),
    },
    "transposed": {(("h", "i"), ("h", "j")), (("w", "i"), ("w", "j"))},
}


def both(name: str) -> tuple[Statement, Needle, Bindings]:
    text, extents, inner = CASES[name]
    return rooted(statement(text, **extents), inner)


def rooted(kernel: Statement, inner: str) -> tuple[Statement, Needle, Bindings]:
    lanes = {n: 8 for n in "ijk" if n in inner}
    made = instruction("x", statement(inner, kernel.value.dtype, **lanes))
    for needle, operands in roots(kernel, needles(machine(made)), "given"):
        if needle.reduction == kernel.reduction:
            return kernel, needle, operands
    raise AssertionError("the bodies are alike")


def listing(name: str, family: Family = "embedded") -> Listing:
    kernel, needle, operands = both(name)
    return list_matchings(kernel, needle, operands, family=family, listed="every")


def tiles_of(matching: Matching) -> list[dict[str, int]]:
    """Return tiles of few iterations; of some variables they must have all."""
    known = {v.name: v.extent.constant or 0 for v in matching.statement.variables}
    whole = wholly_shared(matching)
    few = {v: range(1, min(3, known[v]) + 1) for v in matching.inner}
    choices = [(known[v],) if v in whole else few[v] for v in matching.inner]
    return [dict(zip(matching.inner, tile, strict=True)) for tile in product(*choices)]


@pytest.mark.parametrize("name", CASES)
def test_what_is_listed_runs_right(name: str) -> None:
    rng = np.random.default_rng(5)
    for matching in listing(name):
        assert violations(matching) == ()
        for laid in arrangements(matching, Permissions()):
            assert violations(laid) == ()
            for tile in tiles_of(laid):
                on_axes = resized(laid, 1, tile)
                assert legal_on_tile(on_axes, tile)
                zero = dict.fromkeys([n for n, _ in laid.operands], 0)
                assert computes(on_axes, tile, places_of(on_axes, tile), rng, zero)


@pytest.mark.parametrize("name", CASES)
def test_proved_is_legal_by_ranks(name: str) -> None:
    """Of each component all placements of up to three forms, and those that are listed.

    Ranks do not see that places may meet in no tile of these extents; here they do.
    """
    found = listing(name)
    for local, placements in found.solved:
        assert {prove_placement(local, placed).verdict for placed in placements} <= {"proved"}
    for problem in found.problems:
        for component in components(problem):
            local = component.local
            pairs = list(product(range(len(local.forms)), range(local.axes)))
            for count in range(4):
                for placed in map(frozenset, combinations(pairs, count)):
                    verdict = prove_placement(local, placed).verdict
                    assert (verdict == "proved") == is_legal(local, placed)
                    assert verdict != "unknown"


@pytest.mark.parametrize("name", CASES)
def test_every_linear_way_that_runs_right_is_listed(name: str) -> None:
    """Each set of up to three (variable, axis) pairs, at all factors that have room."""
    kernel, needle, operands = both(name)
    extents = {v.name: v.extent.constant or 0 for v in kernel.variables}
    room, most = {1: (26, 9), 2: (12, 5), 3: (8, 3)}[len(needle.axes)]
    axes = tuple(replace(axis, extent=room) for axis in needle.axes)
    matching = Matching(kernel, replace(needle, axes=axes), operands, ())
    listed = {
        frozenset((next(iter(p.form.names)), p.axis) for p in m.placements)
        for m in listing(name, "diagonal")
    }
    rng = np.random.default_rng(1)
    zero = dict.fromkeys([n for n, _ in operands], 0)
    factors = range(1, most + 1) if len(axes) == 3 else [-2, -1, *range(1, most + 1)]
    pairs = list(product(extents, [axis.name for axis in axes]))
    for count in range(4):
        for placed in combinations(pairs, count):
            tile = {v: extents[v] for v, _ in placed}
            ways = (linear(placed, chosen, extents) for chosen in product(factors, repeat=count))
            right = any(computes(matching, tile, places, rng, zero) for places in ways)
            if placed not in ACCIDENTS.get(name, set()):
                assert right == (frozenset(placed) in listed), placed


def linear(placed: Placed, factors: tuple[int, ...], extents: dict[str, int]) -> Places:
    def places(x: Point) -> Point:
        found = dict.fromkeys("ijk", 0)
        for (v, axis), factor in zip(placed, factors, strict=True):
            found[axis] += factor * x[v] + max(0, -factor) * (extents[v] - 1)
        return found

    return places


# --- random pairs ---------------------------------------------------------------------------------
@st.composite
def shared_pairs(draw: st.DrawFn) -> tuple[Statement, Needle, Bindings]:
    """A statement and an instruction which read one buffer, and one operand, at two places."""
    axes = draw(st.sampled_from(["i", "ij"]))
    rank = draw(st.integers(1, len(axes)))
    along = st.sampled_from([*axes, *(f"{a}+1" for a in axes), *(f"2*{a}" for a in axes)])
    place = st.lists(along, min_size=rank, max_size=rank)
    first, second = draw(place), draw(place)
    assume(first != second)
    target = draw(st.lists(st.sampled_from([*axes]), unique=True))
    used = "".join([*first, *second, *target])
    assume(all(a in used for a in axes))
    reduction, op, dtype = draw(
        st.sampled_from([("+=", "*", "s64"), ("max=", "+", "f64"), ("+=", "-", "s64")])
    )
    inner = f"c[{','.join(target)}] {reduction} a[{','.join(first)}] {op} a[{','.join(second)}]"
    names = draw(st.sampled_from(["u", "uv"]))
    forms = [*names, *(f"{n}+1" for n in names), *(f"2*{n}" for n in names)]
    index = st.sampled_from([*forms, "u+v"] if names == "uv" else forms)
    own = st.lists(index, min_size=1, max_size=2)
    left = draw(own)
    right = draw(st.lists(index, min_size=len(left), max_size=len(left)))
    out = draw(st.lists(st.sampled_from([*names]), unique=True))
    assume(all(n in "".join([*left, *right, *out]) for n in names))
    other = draw(st.sampled_from("AAAB"))
    text = f"Y[{','.join(out)}] {reduction} A[{','.join(left)}] {op} {other}[{','.join(right)}]"
    extents = {n: draw(st.integers(2, 3)) for n in names}
    return rooted(statement(text, DTYPES[dtype], **extents), inner)


@examples(1)
@given(shared_pairs(), st.integers(0, 1 << 30))
def test_all_judges_agree(pair: tuple[Statement, Needle, Bindings], seed: int) -> None:
    kernel, needle, operands = pair
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    found = list_matchings(kernel, needle, operands, listed="every")
    assert found.complete, found.reason
    listed = list(found)
    zero = dict.fromkeys([n for n, _ in operands], 0)
    for matching in choose.sample(listed, min(4, len(listed))):
        assert violations(matching) == ()
        laid = choose.choice(arrangements(matching, Permissions()))
        tile = choose.choice(tiles_of(laid))
        on_axes = resized(laid, choose.randint(0, 2), tile)
        assert legal_on_tile(on_axes, tile)
        if needle.value.op == "*":  # type: ignore[union-attr]
            assert computes(on_axes, tile, places_of(on_axes, tile), rng, zero)
    for problem in found.problems:
        for component in components(problem):
            local = component.local
            pairs = list(product(range(len(local.forms)), range(local.axes)))
            for _ in range(4):
                placed = frozenset(choose.sample(pairs, min(len(pairs), choose.randint(0, 4))))
                verdict = prove_placement(local, placed).verdict
                assert verdict == "proved" or not is_legal(local, placed)


# --- known truths ---------------------------------------------------------------------------------
def told(name: str) -> list[str]:
    """Return the listed placements as text."""
    return sorted(
        "; ".join(f"{axis.name} <- {', '.join(map(str, own))}" for axis in m.needle.axes
                  if (own := m.on_axis(axis.name)))
        for m in listing(name)
    )  # fmt: skip


def test_a_vector_is_squared_whole() -> None:
    """Both factors are one register: with only one of them on an axis it would be two vectors."""
    assert told("gram") == [
        "i <- m; j <- m, n",
        "i <- m; j <- n",
        "i <- n, m; j <- m, n",
        "i <- n, m; j <- n",
    ]


def test_a_row_is_padded_by_the_shift() -> None:
    found = [m for m in listing("lag in rows") if len(m.inner) == 2]
    for matching in found:
        tile = {"h": 2, "w": 3}
        (own,) = [digits(matching, tile)[axis.name] for axis in matching.needle.axes]
        # Two more than the three of the row: the next row's padding must meet unused elements.
        assert [digit.weight for digit in own] == [5, 1]
    assert found


def test_an_operand_that_one_place_uses_whole_is_brought_as_that_wants_it() -> None:
    (plain,) = [m for m in listing("syrk") if len(m.inner) == len(m.placements) == 3]
    assert [name for name, _ in brought(plain)] == ["a"]
    assert gathered(plain, "a") == ()
    shifted = [m for m in listing("lag") if m.inner]
    assert all(len(gathered(m, "a")) == 2 for m in shifted)
