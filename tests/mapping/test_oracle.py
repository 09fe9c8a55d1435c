"""Every subset of (form, axis), judged by running it and by the laws' meaning, is what Z3 lists."""

import numpy as np
import pytest

from isamap.ir.nodes import Instruction
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import enumerate_matchings
from tests.mapping.running import all_placements, roomy, runs_right
from tests.mapping.small import DOT, GEMM, KERNELS, LANES, OUTER, root


@pytest.mark.parametrize("inner", [GEMM, OUTER, DOT, LANES], ids=lambda i: i.name)
@pytest.mark.parametrize("name", KERNELS)
def test_all_subsets(name: str, inner: Instruction) -> None:
    kernel = KERNELS[name]
    needle, operands = root(kernel, inner)
    rng = np.random.default_rng(7)
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 10**6, listed="every")
    assert complete, reason
    listed = {frozenset(m.placements) for m in found}
    assert len(listed) == len(found)
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    by_laws, by_sets, by_running = set(), set(), set()
    for matching in all_placements(kernel, needle, operands):
        key = frozenset(matching.placements)
        on_axes = roomy(matching, tile)
        if not violations(matching):
            by_laws.add(key)
        if legal_on_tile(on_axes, tile):
            by_sets.add(key)
        if runs_right(on_axes, tile, rng):
            by_running.add(key)
    assert listed == by_laws == by_sets
    if (name, inner.name) == ("scatter", "gemm"):
        # Two more give the right numbers: every copy of an output computes the whole sum again.
        assert listed < by_running
        assert len(by_running) == len(listed) + 2
    else:
        assert listed == by_running
