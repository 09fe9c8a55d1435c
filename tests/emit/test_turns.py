"""Copies that transpose give what their points say, whatever is left of their blocks."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.emit.turns import turns
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, product, total, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Copy
from isamap.lower.turns import turn_of
from tests.conftest import Golden
from tests.emit.building import compiled, emitted
from tests.emit.machines import kernel
from tests.emit.samples import sample
from tests.emit.test_copies import TOGETHER, Case, reference, together
from tests.profiles import examples

TYPES = {1: "s8", 2: "s16", 4: "s32", 8: "s64"}


@st.composite
def turned(draw: st.DrawFn) -> Case:
    """Rows of units, in pieces or not, some of them outside of what is copied."""
    size = draw(st.sampled_from([1, 1, 2, 2, 4, 4, 8]))
    unit = draw(st.sampled_from([n for n in (1, 2, 4) if n * size <= 8]))
    block = 16 // (size * unit)
    piece = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n < block] or [1]))
    rows = draw(st.integers(block, 3 * block + 1))
    pieces = draw(st.integers(-(-block // piece), 3 * block // piece + 2))
    outer = draw(st.integers(1, 3))
    part = draw(st.sampled_from([n for n in (1, 2, 4) if piece % n == 0]))
    extents = {"o": outer, "p": pieces, "c": piece // part, "d": part, "r": rows, "u": unit}
    order = [*draw(st.permutations(["o", "p", "c", "d"])), "r", "u"]
    order = [name for name in order if extents[name] > 1 or name in "pr"]
    counters = tuple((name, const(extents[name])) for name in order)
    place, target = 1, const(0)
    for name in reversed(order):
        target, place = target + place * var(name), place * extents[name]
    pitch = unit * piece * pieces + draw(st.integers(0, 3))
    steps = {"o": rows * pitch, "p": unit * piece, "c": unit * part, "d": unit, "r": pitch, "u": 1}
    source = total(steps[name] * var(name) for name in order)
    conditions: list[Index] = []
    if draw(st.booleans()):
        last = draw(st.integers(0, piece * pieces)) * unit - 1
        inner = total(steps[name] * var(name) for name in order if name in "pcdu")
        if "o" in order and draw(st.booleans()):
            inner += draw(st.sampled_from([1, unit, unit * piece * pieces])) * var("o")
        conditions.append(const(last) - inner)
    if draw(st.booleans()):
        conditions.append(const(draw(st.integers(0, rows))) - var("r") - draw(st.integers(0, 1)))
    if draw(st.booleans()):
        conditions.append(var("r") - draw(st.integers(0, rows)))
    if draw(st.booleans()) and "o" in order:
        conditions.append(2 * var("r") - 3 * var("o") + draw(st.integers(-4, 4)))
    dtype = DTYPES[TYPES[size]]
    fill = draw(st.sampled_from([None, Literal("0", dtype), Literal("7", dtype)]))
    copy = Copy(counters, "Z", target, "X", source, tuple(conditions), fill)
    shape = tuple(extents[name] for name in order)
    length = outer * rows * pitch
    shapes = kernel(
        "turned",
        [("X", "in", dtype.name, [length]), ("Z", "inout", dtype.name, [product(shape)])],
    )
    return Case(sample(shapes, (copy,)), copy, shape)


@examples(0.25)
@given(st.lists(turned(), min_size=1, max_size=TOGETHER))
def test_a_turn_does_what_its_points_say(cases: list[Case]) -> None:
    given_arrays: list[np.ndarray] = []
    expected: list[np.ndarray] = []
    for case in cases:
        arrays = {a.name: a for a in case.sample.lowered.arrays}
        made = turn_of(case.copy, arrays["X"].dtype.bytes)
        assert ("isamap_turn" in emitted(case.sample).text) == (made is not None)
        known = {"X": 1, "Z": 1} | {n: int(a.size.evaluate({})) for n, a in arrays.items()}
        dtype = arrays["X"].dtype.numpy
        x = np.random.default_rng(0).integers(-100, 100, known["X"]).astype(dtype)
        z = np.random.default_rng(1).integers(-100, 100, known["Z"]).astype(dtype)
        given_arrays += [x, z]
        expected += [x.copy(), reference(case.copy, x, z)]
    compiled(together(cases))(*given_arrays)
    for array, wanted in zip(given_arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def turning(copy: Copy, size: int) -> tuple[int, int] | None:
    """Return the bytes of a unit and the columns of a piece, None if nothing is turned."""
    found = turn_of(copy, size)
    return None if found is None else (found.bytes, found.piece)


def columns(rows: int, **rest: int) -> Copy:
    """Return a copy of 64 columns of so many rows, in pieces and units of so many elements."""
    piece, unit = rest.get("piece", 1), rest.get("unit", 1)
    k, c, r, u = var("k"), var("c"), var("r"), var("u")
    loops = [("k", const(64 // piece // unit)), ("c", const(piece)), ("r", const(rows))]
    target = unit * (rows * (piece * k + c) + r) + u
    source = unit * (piece * k + c) + 64 * r + u
    return Copy((*loops, ("u", const(unit))), "Z", target, "X", source)


def test_panels_are_cut_where_their_last_piece_ends() -> None:
    """Columns are counted through all pieces of a panel, and panels through all columns."""
    o, p, c, r = (var(name) for name in "opcr")
    counters = (("o", const(3)), ("p", const(8)), ("c", const(2)), ("r", const(16)))
    inside = const(36) - 16 * o - 2 * p - c
    dtype = DTYPES["s32"]
    source = 16 * o + 2 * p + c + 48 * r
    copy = Copy(
        counters, "Z", 256 * o + 32 * p + 16 * c + r, "X", source, (inside,), Literal("7", dtype)
    )
    assert turning(copy, 4) == (4, 2)
    shapes = kernel("panels", [("X", "in", "s32", [768]), ("Z", "inout", "s32", [768])])
    x = np.arange(768, dtype=np.int32)
    z = -x
    expected = reference(copy, x, z)
    compiled(sample(shapes, (copy,)))(x, z)
    np.testing.assert_array_equal(z, expected)


def test_rows_of_a_block_or_more_are_turned() -> None:
    assert turning(columns(16), 1) == (1, 1)
    assert turning(columns(15), 1) is None
    assert turning(columns(29), 4) == (4, 1)
    assert turning(columns(16, piece=2), 4) == (4, 2)
    assert turning(columns(16, unit=2), 2) == (4, 1)
    assert turning(columns(16, unit=4, piece=2), 1) == (4, 2)
    assert turning(columns(16, unit=4), 4) is None


@pytest.mark.parametrize("order", ["ptcr", "ptrc", "tpcr", "cptr"])
def test_blocks_of_tiles_are_pieces_of_pieces(order: str) -> None:
    """Two tiles of four columns side by side, bytes: a block of vectors takes two of such pairs."""
    extents = {"p": 5, "t": 2, "c": 4, "r": 16}
    counters = tuple((name, const(extents[name])) for name in order)
    place, target = 1, const(0)
    for name in reversed(order):
        target, place = target + place * var(name), place * extents[name]
    p, t, c, r = (var(name) for name in "ptcr")
    column = 8 * p + 4 * t + c
    copy = Copy(counters, "Z", target, "X", column + 40 * r, (const(33) - column,))
    if order[-1] == "r":
        assert turning(copy, 1) == (1, 8)
    shapes = kernel("tiles", [("X", "in", "s8", [640]), ("Z", "inout", "s8", [640])])
    x = np.random.default_rng(2).integers(-100, 100, 640).astype(np.int8)
    z = np.zeros(640, np.int8)
    expected = reference(copy, x, z)
    compiled(sample(shapes, (copy,)))(x, z)
    np.testing.assert_array_equal(z, expected)


def test_few_rows_side_by_side_are_left_to_compilers() -> None:
    assert turning(columns(8), 4) is None
    assert turning(columns(8, piece=2), 4) == (4, 2)


def test_a_unit_that_is_copied_in_part_is_not_turned() -> None:
    copy = columns(16, unit=2)
    part = copy.counters, copy.target, copy.target_offset, copy.source, copy.source_offset
    inner = 2 * var("k") + var("u")
    assert turning(Copy(*part, (const(61) - inner,)), 2) == (4, 1)
    assert turning(Copy(*part, (const(60) - inner,)), 2) is None


def test_sizes_that_are_known_late_may_be_below_a_block() -> None:
    rows, columns = var("M"), var("N")
    copy = Copy(
        (("i", columns), ("j", rows)), "Y", var("i") * rows + var("j"), "X",
        var("j") * columns + var("i"),
    )  # fmt: skip
    shapes = kernel(
        "flip", [("X", "in", "u8", ["M", "N"]), ("Y", "out", "u8", ["N", "M"])], ["M", "N"]
    )
    made = sample(shapes, (copy,))
    assert "isamap_turn1(" in emitted(made).text
    flip = compiled(made)
    for shape in ((3, 40), (40, 3), (16, 16), (33, 50), (1, 1)):
        x = np.random.default_rng(1).integers(0, 255, shape, np.uint8)
        np.testing.assert_array_equal(flip(x)["Y"], x.T)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_only_what_is_used_is_defined(size: int) -> None:
    text = turns(f"isamap_turn{size}(a, b, c, d, e, f, g, h);")
    assert re.findall(r"isamap_turn(\d)\(char", text) == [str(size)]
    assert turns("memcpy(a, b, c);") == ""


def test_text(golden: Golden) -> None:
    golden(Path(__file__).with_name("golden") / "turn4.c", turns("isamap_turn4("))
