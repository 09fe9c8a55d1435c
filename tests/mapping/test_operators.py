"""The fifteen operators, as sets, against an enumerator that asks no solver."""

from functools import cache
from math import prod

import pytest

from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.laws.enumerate import list_matchings
from isamap.mapping.laws.family import FAMILIES, Family
from isamap.mapping.needles.needles import needles, roots
from isamap.mapping.needles.orders import ORDERS
from isamap.pipeline.count import Query, count_matchings, load_suite
from isamap.pipeline.mapped import only_instruction
from isamap.pipeline.source import load_hardware
from tests.mapping.direct import Choice, Form, local_choices, maximal
from tests.mapping.small import DOT, GEMM, OUTER, instruction, machine, root, statement

OPERATORS = [
    *("GMV", "GMM", "C1D", "C2D", "C3D", "T2D", "GRP", "DIL"),
    *("DEP", "CAP", "BCV", "GFC", "MEN", "VAR", "SCN"),
]
GEMM16 = only_instruction(load_hardware("gemm16"), "gemm_f32")
EXACT = {  # all, and those that use every axis
    "GMM": (8, 1),
    "C1D": (32, 9),
    "C2D": (128, 49),
    "DEP": (64, 21),
}


@cache
def suite() -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in load_suite("operators")}


def test_the_suite_has_fifteen_operators() -> None:
    assert list(suite()) == OPERATORS


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", OPERATORS)
def test_sets_of_each_component(name: str, family: Family) -> None:
    kernel = zero_based(bind_extents(suite()[name]).statements[0])
    for needle, operands in roots(kernel, needles(GEMM16), "all"):
        direct = local_choices(kernel, needle, operands, family)
        found = list_matchings(kernel, needle, operands, family=family, listed="every")
        (parts,) = found.products
        sets = [
            {
                frozenset(
                    (
                        tuple(
                            (n, p.form.coefficient(n).constant or 0) for n in sorted(p.form.names)
                        ),
                        p.axis,
                    )
                    for p in found.whole.placements(placed)
                )
                for placed in part
            }
            for part in parts
        ]
        assert _sorted(sets) == _sorted(direct)
        assert found.count == prod(map(len, direct))
        axes = [axis.name for axis in needle.axes]
        covering = list_matchings(
            kernel, needle, operands, family=family, listed="every", nonempty=True
        )
        assert covering.count == _covering(direct, axes)
        most = list_matchings(kernel, needle, operands, family=family, listed="maximal")
        assert most.count == prod(len(maximal(legal)) for legal in direct)


def _sorted(sets: list[set[Choice]]) -> list[list[list[tuple[Form, str]]]]:
    return sorted(sorted(sorted(choice) for choice in part) for part in sets)


def _covering(direct: list[set[Choice]], axes: list[str]) -> int:
    """Count the choices that use every axis, by inclusion and exclusion over the empty ones."""
    total = 0
    for mask in range(1 << len(axes)):
        left = {axis for n, axis in enumerate(axes) if mask >> n & 1}
        sign = (-1) ** (len(axes) - len(left))
        total += sign * prod(
            sum({axis for _, axis in choice} <= left for choice in legal) for legal in direct
        )
    return total


@pytest.mark.parametrize("name", EXACT)
def test_known_numbers(name: str) -> None:
    for nonempty in (False, True):
        query = Query("exact", "every", nonempty, "given")
        (row,) = count_matchings([suite()[name]], GEMM16, query)
        assert (row.count, row.complete, row.proved) == (EXACT[name][nonempty], True, True)


def test_orders_of_operands_on_the_matrix_unit() -> None:
    """Rows and columns may be exchanged with the factors, so both orders are alike."""
    for kernel in suite().values():
        rows = {
            orders: count_matchings([kernel], GEMM16, Query(orders=orders))[0] for orders in ORDERS
        }
        assert rows["given"].count == rows["distinct"].count
        assert rows["all"].count == 2 * rows["given"].count
        assert len(rows["all"].listings) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c[i,j] += a[i,k] * b[k,j]", (1, 1, 2)),
        ("c[i,j] += a[i] * b[j]", (1, 1, 2)),
        ("c[i] += a[i] * b[i]", (1, 1, 2)),
        ("c[] += a[k] * b[k]", (1, 1, 2)),
        ("c[i] += a[i,k] * b[k]", (1, 2, 2)),
        ("c[i] += a[i] * b[]", (1, 2, 2)),
        ("c[i,j] += a[i,k] * b[j,k]", (1, 1, 2)),
        ("c[i] += a[i,k] * b[i,k]", (1, 1, 2)),
        ("c[i] += a[i,j] * b[i,k]", (1, 1, 2)),
        ("c[] += a[i] * b[j]", (1, 1, 2)),
    ],
)
def test_symmetries(text: str, expected: tuple[int, int, int]) -> None:
    inner = instruction("x", statement(text, i=16, j=16, k=16))
    kernel = statement("C[m] += A[m,k] * B[k]", m=9, k=9)
    index = needles(machine(inner))
    found = tuple(len(roots(kernel, index, orders)) for orders in ORDERS)
    assert found == expected


def test_extents_and_storages_break_symmetries() -> None:
    kernel = statement("C[m] += A[m,k] * B[k]", m=9, k=9)
    product = "c[i,j] += a[i,k] * b[k,j]"
    for inner in (
        instruction("x", statement(product, i=16, j=8, k=16)),
        instruction("x", statement(product, i=16, j=16, k=16), {"a": "mem"}),
        # In memory the places of dimensions say where elements are.
        instruction("x", statement(product, i=16, j=16, k=16), {"a": "mem", "b": "mem"}),
    ):
        assert len(roots(kernel, needles(machine(inner)), "distinct")) == 2


def test_symmetric_orders_have_equal_matchings() -> None:
    """What ``distinct`` leaves out is the image of what it keeps: a and b, i and j exchanged."""
    kernel = statement("Y[c,w] += X[c,w+s] * W[c,s]", c=2, w=3, s=3)
    image = {"i": "j", "j": "i", "k": "k"}
    first, second = (
        {
            frozenset((str(p.form), p.axis) for p in matching.placements)
            for matching in list_matchings(kernel, needle, operands, listed="every")
        }
        for needle, operands in roots(kernel, needles(machine(GEMM)), "all")
    )
    assert {frozenset((f, image[a]) for f, a in placed) for placed in first} == second


def test_direct_enumerator_on_other_shapes() -> None:
    kernel = statement("Y[w] += X[2*w+s] * W[s]", w=30, s=3)
    for inner in (OUTER, DOT):
        needle, operands = root(kernel, inner)
        (legal,) = local_choices(kernel, needle, operands, "embedded")
        assert list_matchings(kernel, needle, operands, listed="every").count == len(legal)
