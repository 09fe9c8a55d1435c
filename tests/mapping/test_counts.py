"""How many matchings there are: the numbers that other people, and other programs, have found."""

from itertools import combinations, islice

import pytest

from isamap.ir.nodes import Permissions, Statement
from isamap.mapping.laws.enumerate import Listing, enumerate_matchings, list_matchings
from isamap.mapping.laws.family import Family
from isamap.mapping.laws.placements import Listed, local_placements
from isamap.mapping.matching import Matching
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

EXACT = {"GEMM": (8, 1), "C1D": (32, 9), "C2D": (128, 49), "DEP": (64, 21)}
TIGHT = {"GEMM": (4, 2), "C1D": (8, 6), "C2D": (16, 14), "DEP": (48, 46)}
MAXIMAL = {"GEMM": (4, 2), "C1D": (16, 12), "C2D": (64, 56), "DEP": (192, 184)}


def listing(
    kernel: Statement, family: Family, listed: Listed, *, nonempty: bool = False
) -> Listing:
    needle, operands = root(kernel, GEMM)
    found = list_matchings(
        kernel, needle, operands, family=family, listed=listed, nonempty=nonempty
    )
    assert found.complete, found.reason
    return found


def matchings(kernel: Statement, listed: Listed) -> tuple[Matching, ...]:
    needle, operands = root(kernel, GEMM)
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 10**6, listed=listed)
    assert complete, reason
    return found


@pytest.mark.parametrize(
    ("family", "listed", "known"),
    [
        ("exact", "every", EXACT),
        ("embedded", "maximal", MAXIMAL),
        ("embedded", "tight", TIGHT),
    ],
)
@pytest.mark.parametrize("name", OPERATORS)
def test_known_counts(
    name: str, family: Family, listed: Listed, known: dict[str, tuple[int, int]]
) -> None:
    counted = tuple(
        listing(OPERATORS[name], family, listed, nonempty=nonempty).count
        for nonempty in (False, True)
    )
    assert counted == known[name]


@pytest.mark.parametrize("family", ["exact", "embedded"])
@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_listed_is_what_is_counted(name: str, nonempty: bool, family: Family) -> None:
    found = listing(OPERATORS[name], family, "tight", nonempty=nonempty)
    listed = list(found)
    assert len({m.placements for m in listed}) == len(listed) == found.count
    if nonempty:
        assert all(m.on_axis(axis.name) for m in listed for axis in m.needle.axes)


def test_counting_does_not_list() -> None:
    """Twelve variables of one operand each have six placements: two thousand million matchings."""
    names = [f"v{n}" for n in range(12)]
    indices = ",".join(names)
    kernel = statement(f"C[{indices}] += A[{indices}] * B[]", **dict.fromkeys(names, 9))
    found = listing(kernel, "embedded", "every")
    assert found.count == 6**12
    assert len(list(islice(found, 10))) == 10
    # Every axis is used: by inclusion and exclusion over the axes that stay empty.
    used = [frozenset(p.axis for p in m.placements) for m in matchings(one_variable(), "every")]
    wanted = sum(
        (-1) ** size * sum(not used_axes & set(empty) for used_axes in used) ** 12
        for size in range(4)
        for empty in combinations("ijk", size)
    )
    assert listing(kernel, "embedded", "every", nonempty=True).count == wanted


def one_variable() -> Statement:
    return statement("C[v] += A[v] * B[]", v=9)


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
    assert len(matchings(kernel, "every")) == every
    found, _, _ = enumerate_matchings(kernel, needle, operands, listed="maximal")
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
    first = matchings(kernel, "tight")
    local_placements.cache_clear()
    assert matchings(kernel, "tight") == first


def test_every_contains_the_default() -> None:
    for name in ("GEMM", "C1D"):
        wide = {frozenset(m.placements) for m in matchings(OPERATORS[name], "every")}
        assert {frozenset(m.placements) for m in matchings(OPERATORS[name], "tight")} <= wide
        assert frozenset() in wide


def test_without_reassociation() -> None:
    kernel = OPERATORS["GEMM"]
    needle, operands = root(kernel, GEMM)
    strict = Permissions(reassociate=False)
    # Integers may be reordered all the same.
    assert len(enumerate_matchings(kernel, needle, operands, permissions=strict)[0]) == 4
