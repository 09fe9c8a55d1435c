"""Every family and listing, as sets, against all subsets of (form, axis) judged on a tile."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Instruction, Permissions, Statement
from isamap.ir.statements import read_indices
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import list_matchings
from isamap.mapping.laws.family import FAMILIES, Family
from isamap.mapping.matching import Matching, Placement
from isamap.mapping.needles.needles import operand_accesses
from tests.mapping.running import all_placements, extent, roomy, runs_right
from tests.mapping.small import DOT, GEMM, KERNELS, LANES, OUTER, instruction, root, statement

Placed = frozenset[Placement]

NAMES = ("gemm", "conv1d", "scatter", "gemv", "outer")
AXPY = instruction("axpy", statement("c[i] += a[i] * b[]", i=16))
INSTRUCTIONS = {i.name: i for i in (GEMM, OUTER, DOT, LANES, AXPY)}
NESTED: tuple[Family, ...] = ("exact", "broadcast", "diagonal", "embedded")


def belongs(matching: Matching, family: Family) -> bool:
    """Return whether placements are of a family, the laws apart: its definition, word for word."""
    forms = [p.form for p in matching.placements]
    if family == "embedded":
        return True
    if any(len(form.names) > 1 for form in forms):
        return False
    if family in ("diagonal", "split"):
        return True
    if len(set(forms)) < len(forms):
        return False
    return family == "broadcast" or all(_is_exact(matching, p) for p in matching.placements)


def _is_exact(matching: Matching, placement: Placement) -> bool:
    read = operand_accesses(matching.needle)
    pairs = [(matching.needle.target.indices, matching.statement.target.indices)]
    pairs += [(read[name].indices, read_indices(expr)) for name, expr in matching.operands]
    return all(
        any(placement.axis in index.names for index in mine)
        == any(placement.form.names <= index.names for index in theirs)
        for mine, theirs in pairs
    )


@cache
def judged(name: str, instruction_name: str, split: bool) -> dict[Placed, Matching]:
    """Return the placements that obey the laws on a tile; each was run, too."""
    kernel = KERNELS[name]
    needle, operands = root(kernel, INSTRUCTIONS[instruction_name])
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    rng = np.random.default_rng(5)
    found = {}
    for matching in all_placements(kernel, needle, operands):
        on_axes = roomy(matching, tile)
        if legal_on_tile(on_axes, tile, split=split):
            assert not split or not belongs(matching, "split") or runs(on_axes, tile, rng)
            found[frozenset(matching.placements)] = matching
    return found


def runs(matching: Matching, tile: dict[str, int], rng: np.random.Generator) -> bool:
    return runs_right(matching, tile, rng, split=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("inner", INSTRUCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_listing_of_every_family(name: str, inner: str, family: Family) -> None:
    found = judged(name, inner, family == "split")
    legal = {p for p, matching in found.items() if belongs(matching, family)}
    kernel = KERNELS[name]
    needle, operands = root(kernel, INSTRUCTIONS[inner])
    axes = {axis.name for axis in needle.axes}

    def listed(how: str, *, nonempty: bool = False) -> set[Placed]:
        listing = list_matchings(
            kernel,
            needle,
            operands,
            family=family,
            listed=how,  # type: ignore[arg-type]
            nonempty=nonempty,
        )
        assert listing.complete
        all_ = [frozenset(m.placements) for m in listing]
        assert len(set(all_)) == len(all_) == listing.count
        return set(all_)

    assert listed("every") == legal
    assert listed("every", nonempty=True) == {p for p in legal if {x.axis for x in p} == axes}
    maximal = {p for p in legal if _is_irredundant(p, legal) and _is_maximal(p, legal)}
    assert listed("maximal") == maximal
    _check_tight(listed("tight"), maximal)


def _inner(placed: Placed) -> frozenset[str]:
    return frozenset(n for p in placed for n in p.form.names)


def _is_irredundant(placed: Placed, legal: set[Placed]) -> bool:
    return not any(other < placed and _inner(other) == _inner(placed) for other in legal)


def _is_maximal(placed: Placed, legal: set[Placed]) -> bool:
    inner = _inner(placed)
    return not any(
        placed < other and not any(p.form.names & inner for p in other - placed) for other in legal
    )


def _check_tight(tight: set[Placed], maximal: set[Placed]) -> None:
    """Each maximal one needs as much room as a tight one everywhere; no tight one as another."""
    assert tight <= maximal
    for placed in maximal:
        rivals = [other for other in tight if _inner(other) == _inner(placed)]
        if placed in tight:
            assert not any(_fits_in(other, placed) for other in rivals if other != placed)
        else:
            assert any(_fits_in(other, placed) for other in rivals)


def _fits_in(one: Placed, other: Placed) -> bool:
    """Return whether one needs no more room than another on any axis, at many tiles."""
    names = sorted(_inner(one))
    axes = {p.axis for p in one | other}
    for extents in product((2, 3, 5, 9), repeat=len(names)):
        tile = dict(zip(names, extents, strict=True))
        if any(_room(one, axis, tile) > _room(other, axis, tile) for axis in axes):
            return False
    return True


def _room(placed: Placed, axis: str, tile: dict[str, int]) -> int:
    taken = 1
    for p in placed:
        taken *= extent(p.form, tile) if p.axis == axis else 1
    return taken


@pytest.mark.parametrize("inner", INSTRUCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_first_four_are_nested(name: str, inner: str) -> None:
    kernel = KERNELS[name]
    needle, operands = root(kernel, INSTRUCTIONS[inner])
    smaller: set[Placed] = set()
    for family in NESTED:
        listing = list_matchings(kernel, needle, operands, family=family, listed="every")
        larger = {frozenset(m.placements) for m in listing}
        assert smaller <= larger
        smaller = larger


def _counts(kernel: Statement, inner: Instruction, permissions: Permissions) -> tuple[int, ...]:
    needle, operands = root(kernel, inner)
    families: tuple[Family, ...] = ("split", "diagonal")
    return tuple(
        list_matchings(
            kernel, needle, operands, family=family, listed="every", permissions=permissions
        ).count
        for family in families
    )


def test_what_cannot_be_split_is_diagonal() -> None:
    f32 = DTYPES["f32"]
    lanes = instruction("lanes", statement("c[i] += a[i] * b[i]", f32, i=16))
    dot = statement("C[] += A[k] * B[k]", f32, k=9)
    assert _counts(dot, lanes, Permissions()) == (2, 1)  # k on the lanes, summed afterwards
    assert _counts(dot, lanes, Permissions(reassociate=False)) == (1, 1)
    copies = instruction("mul", statement("c[i] = a[i] * b[i]", i=16))
    assert _counts(statement("C[k] = A[k] * B[k]", k=9), copies, Permissions()) == (2, 2)
