"""Statements over other semirings, and of one to five factors, against set laws and execution."""

import numpy as np
import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Statement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.killing import best_fillings
from tests.mapping.running import all_placements, roomy, runs_right
from tests.mapping.small import access, fold, instruction, root, statement

SEMIRINGS = {
    "sum of products": ("+=", "*", "s64", 72),
    "max-plus": ("max=", "+", "f64", 72),
    "min-plus": ("min=", "+", "f64", 72),
    "min-max": ("min=", "max", "s64", 72),
    "max-min": ("max=", "min", "s64", 72),
    "or-and": ("or=", "&", "s64", 72),
    "and-or": ("and=", "|", "s64", 72),
    "xor-and": ("xor=", "&", "s64", 72),
}


def agree(kernel: Statement, inner: Statement) -> int:
    """Compare what is listed with all subsets, by sets and by running; return how many."""
    needle, operands = root(kernel, instruction("x", inner))
    found, complete, reason = enumerate_matchings(kernel, needle, operands, 10**6, listed="every")
    assert complete, reason
    listed = {frozenset(m.placements) for m in found}
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    rng = np.random.default_rng(11)
    by_sets = set()
    for matching in all_placements(kernel, needle, operands):
        on_axes = roomy(matching, tile)
        if legal_on_tile(on_axes, tile):
            by_sets.add(frozenset(matching.placements))
            assert runs_right(on_axes, tile, rng)
    assert listed == by_sets
    return len(listed)


@pytest.mark.parametrize("name", SEMIRINGS)
def test_matrix_products(name: str) -> None:
    reduction, op, dtype, expected = SEMIRINGS[name]
    kernel = statement(f"C[m,n] {reduction} A[m,k] {op} B[k,n]", DTYPES[dtype], m=2, n=2, k=2)
    inner = statement(f"c[i,j] {reduction} a[i,k] {op} b[k,j]", DTYPES[dtype], i=9, j=9, k=9)
    assert agree(kernel, inner) == expected


@pytest.mark.parametrize("name", SEMIRINGS)
def test_convolutions_on_dot_products(name: str) -> None:
    reduction, op, dtype, _ = SEMIRINGS[name]
    kernel = statement(f"Y[w] {reduction} X[w+s] {op} W[s]", DTYPES[dtype], w=3, s=3)
    inner = statement(f"c[i] {reduction} a[i,k] {op} b[k]", DTYPES[dtype], i=9, k=9)
    agree(kernel, inner)


FACTORS = {
    1: ("C[m] += A[m,k]", "c[i] += a[i,j]"),
    2: ("C[m] += A[m,k] * B[k]", "c[i] += a[i,j] * b[j]"),
    3: ("C[m] += A[m,k] * B[k] * D[m]", "c[i] += a[i,j] * b[j] * d[i]"),
    4: ("C[m] += A[m,k] * B[k] * D[m] * E[]", "c[i] += a[i,j] * b[j] * d[i] * e[]"),
    5: ("C[m] += A[m] * B[k] * D[k] * E[m,k] * F[k]", "c[i] += a[i] * b[j] * d[j] * e[i,j] * f[j]"),
}


@pytest.mark.parametrize("count", FACTORS)
def test_one_to_five_factors(count: int) -> None:
    kernel, inner = FACTORS[count]
    assert agree(statement(kernel, m=3, k=3), statement(inner, i=9, j=9)) > 1


@pytest.mark.parametrize("dtype", ["f32", "s8"])
def test_every_factor_of_five_kills_a_product(dtype: str) -> None:
    body = fold("*", [access(f"{name}[k]", DTYPES[dtype]) for name in "abcde"])
    (filling,) = best_fillings(body, "+=", tuple("abcde"), (), True)
    assert filling.sets == tuple(frozenset(name) for name in "abcde")
    assert {literal.text for _, literal in filling.constants} <= {"0", "0.0"}


def test_all_of_five_terms_kill_a_sum() -> None:
    body = fold("+", [access(f"{name}[k]") for name in "abcde"])
    (filling,) = best_fillings(body, "+=", tuple("abcde"), (), True)
    assert filling.sets == (frozenset("abcde"),)
