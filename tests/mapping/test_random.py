"""Random statements on random instructions: what is listed runs right, what is not breaks a law."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Instruction, Permissions, Statement
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.problem import problem
from isamap.mapping.needles.needles import needles, roots
from isamap.mapping.tiles.tile import tiles
from tests.mapping.running import all_placements, roomy, runs_right
from tests.mapping.small import instruction, machine, statement

BODIES = (("+=", "*", "s64"), ("max=", "+", "f64"), ("+=", "-", "s64"), ("=", "*", "s64"))
COMPOSITES = ("u+v", "2*u+v", "u-v+3", "u+v+w", "3*v+w")


@st.composite
def index_lists(draw: st.DrawFn, names: str, *, composite: bool, least: int = 0) -> list[str]:
    single = st.sampled_from([*names])
    usable = [c for c in COMPOSITES if all(n in names for n in c if n.isalpha())]
    index = st.one_of(single, st.sampled_from(usable)) if composite and usable else single
    return draw(st.lists(index, min_size=least, max_size=3, unique=True))


@st.composite
def kernels(draw: st.DrawFn, *, composite: bool) -> tuple[Statement, str]:
    reduction, op, dtype = draw(st.sampled_from(BODIES))
    names = draw(st.sampled_from(["u", "uv", "uvw"]))
    target = draw(index_lists(names, composite=composite))
    if reduction == "=":
        target = [*names]
    left = draw(index_lists(names, composite=composite))
    right = draw(index_lists(names, composite=composite))
    extents = {n: draw(st.sampled_from([2, 3]) if composite else st.just(2)) for n in names}
    text = f"Y[{','.join(target)}] {reduction} A[{','.join(left)}] {op} B[{','.join(right)}]"
    made = statement(text, DTYPES[dtype], **extents)
    return made, f"{reduction} {op} {dtype}"


@st.composite
def inner_instructions(draw: st.DrawFn, body: str) -> Instruction:
    reduction, op, dtype = body.split()
    names = draw(st.sampled_from(["i", "ij", "ijk"]))
    subset = st.lists(st.sampled_from([*names]), unique=True, max_size=3)
    target = [*names] if reduction == "=" else draw(subset)
    left, right = draw(subset), draw(subset)
    assume(set(names) == {*target, *left, *right})
    text = f"c[{','.join(target)}] {reduction} a[{','.join(left)}] {op} b[{','.join(right)}]"
    return instruction("x", statement(text, DTYPES[dtype], **dict.fromkeys(names, 6)))


@st.composite
def pairs(draw: st.DrawFn, *, composite: bool) -> tuple[Statement, Instruction]:
    kernel, body = draw(kernels(composite=composite))
    return kernel, draw(inner_instructions(body))


@given(pairs(composite=True), st.integers(0, 1000), st.booleans())
def test_listed_matchings_run_right(
    pair: tuple[Statement, Instruction], seed: int, finite: bool
) -> None:
    kernel, inner = pair
    rng = np.random.default_rng(seed)
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    permissions = Permissions(finite=finite)
    for needle, operands in roots(kernel, needles(machine(inner)))[:2]:
        whole = problem(kernel, needle, operands)
        assume(len(whole.forms) * len(whole.axes) <= 12)
        found, _, _ = enumerate_matchings(
            kernel, needle, operands, 200, listed="every", permissions=permissions
        )
        for n in rng.permutation(len(found))[:12].tolist():
            matching = found[n]
            assert violations(matching, permissions) == ()
            on_axes = roomy(matching, tile, spare=seed % 2)
            assert legal_on_tile(on_axes, tile, permissions)
            assert runs_right(on_axes, tile, rng)


@given(pairs(composite=False))
def test_only_illegal_placements_are_left_out(pair: tuple[Statement, Instruction]) -> None:
    kernel, inner = pair
    needle, operands = roots(kernel, needles(machine(inner)))[0]
    whole = problem(kernel, needle, operands)
    assume(len(whole.forms) * len(whole.axes) <= 6)
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    found, complete, _ = enumerate_matchings(kernel, needle, operands, 10**6, listed="every")
    assert complete
    listed = {frozenset(m.placements) for m in found}
    for matching in all_placements(kernel, needle, operands):
        legal = frozenset(matching.placements) in listed
        assert legal == (violations(matching) == ())
        assert legal == legal_on_tile(roomy(matching, tile), tile)


@given(pairs(composite=True))
def test_tiles_fit_and_keep_the_laws(pair: tuple[Statement, Instruction]) -> None:
    kernel, inner = pair
    for needle, operands in roots(kernel, needles(machine(inner)))[:1]:
        for matching in enumerate_matchings(kernel, needle, operands, 20)[0]:
            mappings = tiles(matching)
            assert mappings
            for mapping in mappings:
                assert set(mapping.tile) == set(matching.inner)
                assert 0 < mapping.utilisation <= 1
                assert legal_on_tile(matching, mapping.tile)
