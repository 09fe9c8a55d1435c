"""How many matchings there are: the numbers that other people, and other programs, have found."""

from math import prod

import pytest

from isamap.ir.nodes import Permissions, Statement
from isamap.ir.statements import read_indices
from isamap.mapping.enumerate import components, enumerate_matchings, local_placements
from isamap.mapping.matching import Matching
from isamap.mapping.needles import operand_accesses
from isamap.mapping.problem import problem
from tests.mapping.small import GEMM, root, statement

OPERATORS = {
    "GEMM": statement("C[i,j] += A[i,k] * B[k,j]", i=64, j=64, k=64),
    "C1D": statement("O[b,k,l] += P[b,c,l+r] * W[k,c,r]", b=8, k=64, c=64, l=50, r=3),
    "C2D": statement(
        "O[n,k,p,q] += P[n,c,p+r,q+x] * W[k,c,r,x]", n=8, k=64, c=64, p=50, q=50, r=3, x=3
    ),
    "DEP": statement(
        "O[n,c,m,p,q] += P[n,c,p+r,q+x] * W[c,m,r,x]", n=8, c=64, m=4, p=50, q=50, r=3, x=3
    ),
}

KNOWN = {  # all exact, those that use every axis, tight maximal, those that use every axis
    "GEMM": (8, 1, 4, 2),
    "C1D": (32, 9, 8, 6),
    "C2D": (128, 49, 16, 14),
    "DEP": (64, 21, 48, 46),
}

MAXIMAL = {"GEMM": (4, 2), "C1D": (16, 12), "C2D": (64, 56), "DEP": (192, 184)}


def matchings(kernel: Statement, *, every: bool) -> tuple[Matching, ...]:
    needle, operands = root(kernel, GEMM)
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 10**6, every=every)
    assert complete, reason
    return found


def uses_every_axis(matching: Matching) -> bool:
    return all(matching.on_axis(axis.name) for axis in matching.needle.axes)


def is_exact(matching: Matching) -> bool:
    """Single variables, each on one axis, which operands see exactly if they depend on it."""
    forms = [p.form for p in matching.placements]
    if any(len(f.names) > 1 for f in forms) or len(set(forms)) < len(forms):
        return False
    read = operand_accesses(matching.needle)
    pairs = [(matching.needle.target.indices, matching.statement.target.indices)]
    pairs += [(read[name].indices, read_indices(expr)) for name, expr in matching.operands]
    for placement in matching.placements:
        for mine, theirs in pairs:
            sees = any(placement.axis in index.names for index in mine)
            depends = any(placement.form.names <= index.names for index in theirs)
            if sees != depends:
                return False
    return True


@pytest.mark.parametrize("name", ["GEMM", "C1D"])
def test_exact_family(name: str) -> None:
    exact = [m for m in matchings(OPERATORS[name], every=True) if is_exact(m)]
    assert (len(exact), sum(map(uses_every_axis, exact))) == KNOWN[name][:2]


@pytest.mark.parametrize("name", ["C2D", "DEP"])
def test_exact_family_of_large_operators(name: str) -> None:
    """The product of all legal placements is large, so exact ones are picked in each component."""
    kernel = OPERATORS[name]
    needle, operands = root(kernel, GEMM)
    whole = problem(kernel, needle, operands)
    (filling,) = whole.fillings
    sizes, reach = [], []
    for component in components(whole.local(filling)):
        found = local_placements(component.local, True).found
        kept = []
        for placed in found:
            absolute = frozenset((component.forms[f], a) for f, a in placed)
            matching = Matching(kernel, needle, operands, whole.placements(absolute))
            if is_exact(matching):
                kept.append(frozenset(a for _, a in placed))
        sizes.append(len(kept))
        reach.append(kept)
    assert prod(sizes) == KNOWN[name][0]
    axes = len(whole.axes)
    covering = {frozenset[int](): 1}
    for kept in reach:
        longer: dict[frozenset[int], int] = {}
        for sofar, count in covering.items():
            for added in kept:
                longer[sofar | added] = longer.get(sofar | added, 0) + count
        covering = longer
    assert covering[frozenset(range(axes))] == KNOWN[name][1]


@pytest.mark.parametrize("name", OPERATORS)
def test_tight_maximal(name: str) -> None:
    found = matchings(OPERATORS[name], every=False)
    assert (len(found), sum(map(uses_every_axis, found))) == KNOWN[name][2:]


@pytest.mark.parametrize("name", OPERATORS)
def test_irredundant_maximal(name: str) -> None:
    kernel = OPERATORS[name]
    needle, operands = root(kernel, GEMM)
    found, complete, reason = enumerate_matchings(
        kernel, needle, operands, 10**6, every=False, tight=False
    )
    assert complete, reason
    assert (len(found), sum(map(uses_every_axis, found))) == MAXIMAL[name]


@pytest.mark.parametrize(
    ("text", "every", "maximal"),
    [
        ("C[v] += A[v] * B[]", 6, 2),
        ("C[] += A[v] * B[v]", 2, 1),
        ("C[v] += A[v] * B[v]", 5, 3),
        ("C[p] += A[p+r] * B[r]", 23, 4),
        ("C[p] += A[2*p+r] * B[r]", 23, 4),
    ],
)
def test_local_factors(text: str, every: int, maximal: int) -> None:
    kernel = statement(text, v=9, p=9, r=9)
    needle, operands = root(kernel, GEMM)
    assert len(matchings(kernel, every=True)) == every
    found, _, _ = enumerate_matchings(kernel, needle, operands, tight=False)
    assert len(found) == maximal


def test_limit_is_reported() -> None:
    kernel = OPERATORS["C2D"]
    needle, operands = root(kernel, GEMM)
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 5)
    assert len(found) == 5
    assert not complete
    assert "5 matchings" in reason
    assert enumerate_matchings(kernel, needle, operands, 16)[1]


def test_order_is_canonical() -> None:
    kernel = OPERATORS["C1D"]
    first = matchings(kernel, every=False)
    local_placements.cache_clear()
    assert matchings(kernel, every=False) == first


def test_every_contains_the_default() -> None:
    for name in ("GEMM", "C1D"):
        wide = {frozenset(m.placements) for m in matchings(OPERATORS[name], every=True)}
        assert {frozenset(m.placements) for m in matchings(OPERATORS[name], every=False)} <= wide
        assert frozenset() in wide


def test_without_reassociation() -> None:
    kernel = OPERATORS["GEMM"]
    needle, operands = root(kernel, GEMM)
    strict = Permissions(reassociate=False)
    # Integers may be reordered all the same.
    assert len(enumerate_matchings(kernel, needle, operands, permissions=strict)[0]) == 4
