"""A thousand random pairs of statement and instruction, on which all judges agree.

The solver's list is compared with the checker's verdict on every subset of placements; of the legal
and of the illegal ones a few are put to the laws' meaning on a tile, to the lemmas that Z3 proves
for all tiles, and to an execution of the instruction.
"""

import random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from isamap.ir.nodes import Instruction, Statement
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.lemmas import prove_placement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.needles import Bindings, needles, roots
from tests.mapping.running import all_placements, roomy, runs_right
from tests.mapping.small import machine
from tests.mapping.test_random import pairs
from tests.profiles import examples

FEW = 3


@examples(5)
@given(st.booleans().flatmap(lambda c: pairs(composite=c)), st.integers(0, 1 << 30))
def test_all_judges_agree(pair: tuple[Statement, Instruction], seed: int) -> None:
    kernel, inner = pair
    needle, operands = roots(kernel, needles(machine(inner)))[0]
    whole = problem(kernel, needle, operands)
    assume(len(whole.forms) * len(whole.axes) <= 8)
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 10**6, listed="every")
    assert complete, reason
    listed = {frozenset(m.placements) for m in found}
    assert len(listed) == len(found)
    legal: list[Matching] = []
    illegal: list[Matching] = []
    for matching in all_placements(kernel, needle, operands):
        (illegal if violations(matching) else legal).append(matching)
    assert listed == {frozenset(m.placements) for m in legal}
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    for matching in choose.sample(legal, min(FEW, len(legal))):
        on_axes = roomy(matching, tile, spare=seed % 2)
        assert legal_on_tile(on_axes, tile)
        assert runs_right(on_axes, tile, rng)
        assert proved(kernel, needle, operands, matching)
    for matching in choose.sample(illegal, min(FEW, len(illegal))):
        assert not proved(kernel, needle, operands, matching)
        # On a tile as large as this no composite index is a mixed-radix number by chance.
        large = dict.fromkeys(tile, 4)
        assert not legal_on_tile(roomy(matching, large), large)


def proved(kernel: Statement, needle: Needle, operands: Bindings, matching: Matching) -> bool:
    """Return whether Z3 proves the laws, under some filling of unused elements."""
    whole = problem(kernel, needle, operands)
    placed = whole.placed(matching.placements)
    assert placed is not None
    verdicts = [
        prove_placement(whole.local(filling), placed).verdict
        for filling in whole.fillings
        if whole.is_open(filling)
    ]
    assert "unknown" not in verdicts
    return "proved" in verdicts
