"""Whether a variable may lie on an axis, against all placements judged by the laws' meaning."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from isamap.explain.barriers import barriers
from isamap.ir.nodes import Permissions
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Matching, Needle, Placement
from tests.mapping.small import DOT, GEMM, KERNELS, LANES, OUTER, root, with_extents

INSTRUCTIONS = {"gemm": GEMM, "dot": DOT, "lanes": LANES, "outer": OUTER}
SMALL = ("gemm", "conv1d", "gemv", "outer", "scatter", "depthwise")
TILE = 3
LONG = {1: 81, 2: 45, 3: 15}
"""Extents of axes that fit what is looked at, by the number of axes."""


def all_matchings(matching: Matching, needle: Needle) -> Iterator[Matching]:
    """Yield placements of forms on axes: all on up to two axes, up to four forms on three."""
    whole = problem(matching.statement, needle, matching.operands)
    pairs = [Placement(form, axis) for form in whole.indices for axis in whole.axes]
    for count in range(1, 5 if len(whole.axes) > 2 else len(pairs) + 1):
        for placed in combinations(pairs, count):
            yield Matching(matching.statement, needle, matching.operands, placed)


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
@pytest.mark.parametrize("kernel", SMALL)
def test_forbidden_is_what_no_placement_does(kernel: str, instruction: str) -> None:
    statement = KERNELS[kernel]
    needle, operands = root(statement, INSTRUCTIONS[instruction])
    matchings, complete, _ = enumerate_matchings(statement, needle, operands)
    assert complete
    # Small axes for the brute force; the laws that are asked know of no extents.
    roomy = with_extents(needle, {axis.name: LONG[len(needle.axes)] for axis in needle.axes})
    smallest = min(matchings, key=lambda m: len(m.inner))
    asked = barriers(smallest, Permissions())
    tile = {v.name: TILE for v in statement.variables}
    possible = {
        (v, p.axis)
        for matching in all_matchings(smallest, roomy)
        if legal_on_tile(matching, tile)
        for p in matching.placements
        for v in p.form.names
        if set(smallest.inner) <= set(matching.inner)
    }
    for v in asked.whole.variables:
        for axis in asked.whole.axes:
            barrier = asked.at(v, axis)
            assert barrier.verdict == ("legal" if (v, axis) in possible else "forbidden")
            assert bool(barrier.reasons) == (barrier.verdict == "forbidden")
