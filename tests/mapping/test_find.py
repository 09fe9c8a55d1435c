"""All mappings of a statement: complete, in order, and those that people know are among them."""

import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, read, var
from isamap.ir.nodes import Access, Op, Permissions, Statement, Variable
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.find import describe, enumerate_mappings
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.matching import Matching, Placement
from isamap.mapping.needles.needles import needles
from tests.mapping.small import GEMM, LANES, S64, access, instruction, machine, root, statement

ANY = Permissions()
F32 = DTYPES["f32"]

DEPTHWISE = statement("Y[p,q,c] += X[p+r,q+s,c] * D[r,s,c]", p=14, q=14, c=32, r=3, s=3)


def forms(matching: Matching) -> dict[str, set[str]]:
    return {
        axis.name: {str(f) for f in matching.on_axis(axis.name)} for axis in matching.needle.axes
    }


def test_depthwise_convolution_on_a_matrix_unit() -> None:
    """The diagonal embedding: channels on a row axis and again on the reduced one."""
    found = [forms(m.matching) for m in enumerate_mappings(DEPTHWISE, machine(GEMM), ANY).mappings]
    assert any(m["k"] == {"c", "r", "s"} and m["j"] == {"c"} for m in found)
    best = max(
        (
            m
            for m in enumerate_mappings(DEPTHWISE, machine(GEMM), ANY).mappings
            if {"c", "r", "s"} == forms(m.matching)["k"]
        ),
        key=lambda m: m.utilisation,
    )
    assert legal_on_tile(best.matching, best.tile)


def test_order_is_best_first() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=64, n=64, k=64)
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=16))
    scalar = instruction("mac", statement("c[] += a[] * b[]"))
    found = enumerate_mappings(kernel, machine(add, scalar, LANES, GEMM), ANY)
    assert found.complete
    names = [m.matching.needle.name for m in found.mappings]
    assert names[0] == "gemm"
    assert list(dict.fromkeys(names)) == ["gemm", "lanes", "mac", "add"]
    assert describe(found.mappings[0]) == (
        "gemm(a = A[m, k], b = B[k, n]) i <- m; j <- n; k <- k [m 16, n 16, k 16]"
    )


def test_result_is_the_same_every_time() -> None:
    machine_ = machine(LANES, GEMM)
    first = enumerate_mappings(DEPTHWISE, machine_, ANY)
    again = enumerate_mappings(DEPTHWISE, needles(machine_), ANY)
    assert list(map(describe, first.mappings)) == list(map(describe, again.mappings))
    assert len(set(map(describe, first.mappings))) == len(first.mappings)


def test_limit_is_reported() -> None:
    found = enumerate_mappings(DEPTHWISE, machine(GEMM), ANY, limit=7)
    assert len(found.mappings) == 7
    assert not found.complete
    assert "limit of 7" in found.reason


def test_ranges_that_do_not_start_at_0() -> None:
    kernel = statement("Y[w] += X[w-3] * W[]", w=20)
    shifted = Statement(kernel.target, "+=", kernel.value, (Variable("w", const(3), const(17)),))
    found = enumerate_mappings(shifted, machine(LANES), ANY)
    assert found.statement.value == Op("*", (access("X[w]"), access("W[]")), S64)
    assert found.mappings[0].tile == {"w": 16}


def test_variables_with_one_iteration_stay_outside() -> None:
    kernel = statement("Y[n,w] += X[n,w] * W[]", n=1, w=20)
    for mapping in enumerate_mappings(kernel, machine(LANES), ANY).mappings:
        assert mapping.matching.inner == ("w",)


@pytest.mark.parametrize(
    "index",
    [var("w") // 2, var("w") % 4, var("w") * var("S"), read("P", (var("w"),)), var("w") * var("v")],
    ids=["floor", "modulo", "symbolic", "read", "product"],
)
def test_variables_that_are_not_linear_stay_outside(index: object) -> None:
    value = Op("*", (Access("X", (index, var("v")), S64), access("W[v]")), S64)  # type: ignore[arg-type]
    variables = tuple(Variable(n, const(0), const(32)) for n in "wv")
    kernel = Statement(access("Y[w,v]"), "+=", value, variables)
    for mapping in enumerate_mappings(kernel, machine(LANES), ANY).mappings:
        assert "w" not in mapping.matching.inner


def test_symbols_in_an_index_are_no_obstacle() -> None:
    kernel = statement("Y[w] += X[w] * W[]", w=32)
    value = Op("*", (Access("X", (var("w") + var("N") - 1,), S64), access("W[]")), S64)
    shifted = Statement(kernel.target, "+=", value, kernel.variables)
    assert enumerate_mappings(shifted, machine(LANES), ANY).mappings[0].utilisation == 1.0


def test_index_in_mixed_radix_is_split() -> None:
    kernel = statement("Y[g,c] += X[16*g+c] * W[c]", g=8, c=16)
    inner = instruction("rows", statement("c[i,j] += a[i,j] * b[j]", i=8, j=16))
    found = enumerate_mappings(kernel, machine(inner), ANY).mappings[0]
    assert forms(found.matching) == {"i": {"g"}, "j": {"c"}}
    assert found.utilisation == 1.0
    # Overlapping windows are not.
    overlapping = statement("Y[g,c] += X[15*g+c] * W[c]", g=8, c=16)
    best = enumerate_mappings(overlapping, machine(inner), ANY).mappings[0]
    assert best.utilisation <= 1.0
    assert legal_on_tile(best.matching, best.tile)


def test_statement_that_reads_what_it_writes() -> None:
    running = statement("Y[w] = Y[w-1] + X[w]", w=32)
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=16))
    for mapping in enumerate_mappings(running, machine(add), ANY).mappings:
        assert mapping.matching.placements == ()
    in_place = statement("Y[w] = Y[w] + X[w]", w=32)
    assert enumerate_mappings(in_place, machine(add), ANY).mappings[0].tile == {"w": 16}


def test_statement_that_looks_up_what_it_writes() -> None:
    looked_up = Access("X", (read("Y", (var("w"),)), var("v")), S64)
    value = Op("+", (looked_up, access("Z[v]")), S64)
    variables = tuple(Variable(n, const(0), const(32)) for n in "wv")
    kernel = Statement(access("Y[v]"), "=", value, variables)
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=16))
    for mapping in enumerate_mappings(kernel, machine(add), ANY).mappings:
        assert mapping.matching.placements == ()


def test_assignment_does_not_spread_over_a_loop() -> None:
    """The last value wins, so a variable that the target lacks stays in the loops around."""
    kernel = statement("Y[w] = X[w,k] + Z[k]", w=32, k=32)
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=16))
    for mapping in enumerate_mappings(kernel, machine(add), ANY).mappings:
        assert mapping.matching.inner in ((), ("w",))


def test_no_reassociation_keeps_reductions_outside() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", F32, m=64, n=64, k=64)
    inner = instruction("gemm", statement("c[i,j] += a[i,k] * b[k,j]", F32, i=16, j=16, k=16))
    strict = Permissions(reassociate=False)
    found = enumerate_mappings(kernel, machine(inner), strict).mappings
    assert found
    for mapping in found:
        assert "k" not in mapping.matching.inner
    largest = statement("C[m] max= A[m,k]", F32, m=64, k=64)
    unit = instruction("max", statement("c[i] max= a[i,k]", F32, i=16, k=16))
    # The order of a maximum does not show.
    assert any(
        "k" in m.matching.inner for m in enumerate_mappings(largest, machine(unit), strict).mappings
    )


def test_pooling_on_a_vector_maximum() -> None:
    kernel = statement("Y[h,c] max= X[2*h+r,c]", F32, h=28, c=64, r=3)
    unit = instruction("vmax", statement("r[i] = a[i] max b[i]", F32, i=16))
    best = enumerate_mappings(kernel, machine(unit), ANY).mappings[0]
    assert best.matching.needle.reduction == "max="
    assert best.matching.needle.tied == "a"
    assert [(n, getattr(e, "buffer", "")) for n, e in best.matching.operands] == [("b", "X")]
    assert best.utilisation == 1.0


# --- the checker --------------------------------------------------------------------------------
def test_violations_in_the_kernels_names() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=4, n=4, k=4)
    needle, operands = root(kernel, GEMM)

    def told(*pairs: tuple[str, str]) -> list[tuple[int, str]]:
        placed = tuple(Placement(var(form), axis) for form, axis in pairs)
        found = violations(Matching(kernel, needle, operands, placed))
        return [(v.law, v.message) for v in found]

    assert told(("m", "i"), ("n", "j"), ("k", "k")) == []
    # m on the reduced axis: the output does not see it.
    assert told(("m", "k"))[0] == (1, "operand c would need different elements for each m")
    # k on an output axis: partial sums.
    assert (2, "elements of C would be spread over places of c") in told(("k", "i"), ("k", "k"))
    # n on j only is right; on i only, B cannot tell.
    assert (1, "operand b would need different elements for each n") in told(("n", "i"))
    assert told(("q", "i"))[0][0] == 0


def test_forms_outside_the_statement_are_no_placement() -> None:
    kernel = statement("Y[w] += X[w+s] * W[s]", w=4, s=3)
    needle, operands = root(kernel, GEMM)
    odd = Matching(kernel, needle, operands, (Placement(var("w") * 2 + var("s"), "k"),))
    assert violations(odd)[0].law == 0


def test_tile_that_does_not_fit_is_not_legal() -> None:
    kernel = statement("Y[w] += X[w] * W[]", w=40)
    needle, operands = root(kernel, LANES)
    (found,) = enumerate_matchings(kernel, needle, operands)[0]
    assert legal_on_tile(found, {"w": 16})
    assert not legal_on_tile(found, {"w": 17})


def test_axes_of_one_place_take_nothing() -> None:
    thin = instruction("thin", statement("c[i,j] += a[i,k] * b[k,j]", i=16, j=1, k=4))
    kernel = statement("C[m,n] += A[m,q] * B[q,n]", m=64, n=64, q=64)
    found = enumerate_mappings(kernel, machine(thin), ANY)
    assert found.mappings[0].utilisation == 1.0
    for mapping in found.mappings:
        assert mapping.matching.on_axis("j") == ()
        assert legal_on_tile(mapping.matching, mapping.tile)
