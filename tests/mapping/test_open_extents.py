"""Axes of which a description says only the least extent: what holds, holds for all extents."""

import pytest

from isamap.diagnostics import Source
from isamap.ir.nodes import Instruction, Statement
from isamap.mapping.checks.lemmas import prove_placement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import list_matchings
from isamap.mapping.laws.placements import Listed
from isamap.mapping.needles.needles import needles, roots
from isamap.mapping.needles.readings import read_entry
from isamap.mapping.tiles.tile import tiles
from isamap.text.load import parse_instructions
from tests.mapping.small import STORAGES, machine, statement

KINDS: dict[str, str] = {storage.name: storage.kind for storage in STORAGES}
ROWS = """instruction rows(V >= 4 pow2) {
  in a : s64[V, 4] @ reg    in b : s64[4] @ reg    inout c : s64[V] @ reg
  c[i] += a[i, k] * b[k]
}"""
SQUARE = """instruction square(V >= 4 pow2) {
  in a : s64[V, 4] @ reg    in b : s64[4, V] @ reg    inout c : s64[V, V] @ reg
  c[i, j] += a[i, k] * b[k, j]
}"""


def read(text: str) -> Instruction:
    (found,) = parse_instructions(Source("test.yaml", text), frozenset(KINDS))
    return found


def listed(kernel: Statement, inner: Instruction, how: Listed) -> set[frozenset[object]]:
    ((needle, operands), *_) = roots(kernel, needles(machine(inner)))
    listing = list_matchings(kernel, needle, operands, listed=how)
    assert listing.complete
    for local, found in listing.solved:
        assert all(prove_placement(local, placed).verdict == "proved" for placed in found)
    return {frozenset(matching.placements) for matching in listing}


@pytest.mark.parametrize("how", ["every", "tight"])
@pytest.mark.parametrize("text", [ROWS, SQUARE])
def test_matchings_are_those_of_every_length(text: str, how: Listed) -> None:
    kernel = statement("Y[n,w] += X[n,w+s] * W[s]", n=9, w=9, s=3)
    open_ = listed(kernel, read(text), how)
    for length in (4, 8, 32):
        assert open_ == listed(kernel, read(text.replace("V >= 4 pow2", f"V = {length}")), how)


def test_tiles_fit_the_least_length() -> None:
    kernel = statement("Y[w] += X[w+s] * W[s]", w=30, s=3)
    ((needle, operands), *_) = roots(kernel, needles(machine(read(ROWS))))
    for matching in list_matchings(kernel, needle, operands):
        for mapping in tiles(matching):
            assert mapping.tile.get("w", 1) <= 4
            assert legal_on_tile(mapping.matching, mapping.tile)


@pytest.mark.parametrize(
    ("index", "shape", "reads"),
    [
        ("4*i + k", "4*V", True),  # k is less than 4 whatever V is
        ("V*k + i", "4*V", False),  # an unknown pitch
    ],
)
def test_indices_are_split_only_where_that_holds_for_all(
    index: str, shape: str, reads: bool
) -> None:
    text = ROWS.replace("a[i, k]", f"a[{index}]").replace("s64[V, 4]", f"s64[{shape}]")
    (entry,) = machine(read(text)).entries
    assert bool(read_entry(entry, KINDS).needles) == reads


def test_a_range_that_may_reach_the_next_digit_is_not_split() -> None:
    """At V = 4 the sum tells i and k apart; at V = 8 it does not."""
    text = """instruction mixed(V >= 4) {
      in a : s64[V + 8] @ reg    inout c : s64[] @ reg
      for i in 0..2    for k in 0..V
      c[] += a[4*i + k]
    }"""
    kernel = statement("Y[] += X[v]", v=9)
    open_ = listed(kernel, read(text), "every")
    assert open_ == listed(kernel, read(text.replace("V >= 4", "V = 8")), "every")
    assert open_ != listed(kernel, read(text.replace("V >= 4", "V = 4")), "every")
