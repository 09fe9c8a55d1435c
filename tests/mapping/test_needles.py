"""What an instruction is read as, and which ones compute a statement."""

from dataclasses import replace
from fractions import Fraction

import pytest

from isamap.hw.accelerator import Entry
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Access, Buffer, Extent, Instruction, Literal, Op, Statement, Variable
from isamap.ir.printer import print_expr
from isamap.mapping.needles.needles import covered, needles, roots
from isamap.mapping.needles.readings import read_entry
from tests.mapping.small import GEMM, S64, access, instruction, machine, statement

F32, BF16 = DTYPES["f32"], DTYPES["bf16"]
KINDS = {"reg": "registers", "mem": "memory", "imm": "immediate"}


def entry(inner: Instruction) -> Entry:
    return Entry(inner, Fraction(1), Fraction(1))


def readings(text: str, places: dict[str, str] | None = None, **axes: int) -> list[tuple[str, ...]]:
    found = read_entry(entry(instruction("x", statement(text, **axes), places)), KINDS)
    return [(n.reduction, str(n.tied), *sorted(_names(n.value))) for n in found.needles]


def reason(text: str, **axes: int) -> str:
    return read_entry(entry(instruction("x", statement(text, **axes))), KINDS).reason


def _names(value: object) -> set[str]:
    match value:
        case Access(name, _, _):
            return {name}
        case Op(_, args, _):
            return set().union(*map(_names, args))
    return set()


def test_accumulation_is_also_an_assignment() -> None:
    assert readings("c[i] += a[i] * b[i]", i=4) == [
        ("+=", "c", "a", "b"),
        ("=", "c", "a", "b", "c"),
    ]


def test_assignment_does_not_reduce_an_axis() -> None:
    assert readings("c[i] += a[i,k] * b[i,k]", i=4, k=4) == [("+=", "c", "a", "b")]


def test_operation_is_also_a_reduction() -> None:
    # Exchanging a and b gives the same program, so one of the two is enough.
    assert readings("r[i] = a[i] max b[i]".replace(" max ", " max "), i=4) == [
        ("=", "None", "a", "b"),
        ("max=", "a", "b"),
    ]


def test_operands_in_different_places_are_not_alike() -> None:
    assert readings("r[i] = a[i] + b[i]", {"a": "mem"}, i=4) == [
        ("=", "None", "a", "b"),
        ("+=", "b", "a"),
    ]


def test_operand_of_another_shape_is_not_tied() -> None:
    assert readings("r[i] = a[i] + b[]", i=4) == [("=", "None", "a", "b"), ("+=", "a", "b")]


def test_subtraction_is_no_reduction() -> None:
    assert readings("r[i] = a[i] - b[i]", i=4) == [("=", "None", "a", "b")]


def test_movements_are_no_needles_but_stores_are() -> None:
    assert readings("r[i] = m[i]", {"m": "mem"}, i=4) == []
    assert readings("m[i] = r[i]", {"m": "mem"}, i=4) == [("=", "None", "r")]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("c[i+k] = a[i] * b[k]", "assigns an element more than once"),
        ("c[i] += a[i] * c[k]", "its result c at another place"),
        ("c[i] = c[i] + a[i] * b[r]".replace(" * b[r]", ""), ""),
        ("r[i] = a[k] + b[i]", "assigns an element more than once"),
    ],
)
def test_what_is_not_considered(text: str, part: str) -> None:
    found = reason(text, i=4, j=4, k=4, r=3)
    assert part in found
    assert bool(part) == bool(found)


def test_each_place_of_an_operand_has_a_name() -> None:
    found = readings("c[i,j] += a[i] * a[j]", i=4, j=4)
    assert ("+=", "c", "a", "a'") in found
    inner = instruction("x", statement("c[i,j] += a[i] * a[j] * a[i]", i=4, j=4))
    needle = read_entry(entry(inner), KINDS).needles[0]
    assert needle.places == (("a'", "a"),)
    assert [needle.shown(name) for name in ("a", "a'", "c")] == ["a[i]", "a[j]", "c"]


def test_axes_along_an_operand_of_two_places_are_not_joined() -> None:
    (needle, _) = read_entry(
        entry(instruction("x", statement("c[i,j] += a[i,j] * a[j,i]", i=4, j=4))), KINDS
    ).needles
    assert [axis.name for axis in needle.axes] == ["i", "j"]


def test_mixed_radix_index_is_plain() -> None:
    assert readings("c[i] += a[4*i+k] * b[4*i+k]", i=4, k=4) == [("+=", "c", "a", "b")]
    assert readings("c[i] += a[3*i+k] * b[3*i+k]", i=4, k=4) == [("+=", "c", "a", "b")]


def test_plain_output_of_one_step_is_an_assignment() -> None:
    inner = instruction("x", statement("c[i] += a[i] * b[i]", i=4))
    a, b, c = inner.operands
    fresh = Instruction(
        "x", (), (a, b, Buffer("c", "out", S64, c.shape, "reg")), (), (), inner.statements
    )
    needle, *_ = read_entry(entry(fresh), KINDS).needles
    assert (needle.reduction, needle.tied) == ("=", None)
    assert print_expr(needle.value) == "a[i] * b[i]"


def test_plain_output_of_a_sum_holds_the_whole_sum() -> None:
    inner = instruction("x", statement("c[i] += a[i,k] * b[k]", i=4, k=4))
    a, b, c = inner.operands
    fresh = replace(inner, operands=(a, b, replace(c, role="out")))
    (needle,) = read_entry(entry(fresh), KINDS).needles
    assert (needle.reduction, needle.tied) == ("=", None)
    assert needle.repeated == ("+=", inner.statements[0].value)


def test_extents_with_a_range_use_the_largest() -> None:
    store = Instruction(
        "store",
        (Extent("n", range=(1, 9)),),
        (Buffer("r", "in", S64, (const(8),), "reg"), Buffer("m", "out", S64, (var("n"),), "mem")),
        (),
        (),
        (Statement(access("m[i]"), "=", access("r[i]"), (Variable("i", const(0), var("n")),)),),
    )
    (needle,) = read_entry(entry(store), KINDS).needles
    assert [(a.name, a.extent) for a in needle.axes] == [("i", 8)]


def test_full_form_hides_the_masked_one() -> None:
    full = instruction("full", statement("m[i] = r[i]", i=8), {"m": "mem"})
    ranged = Instruction(
        "masked",
        (Extent("n", range=(1, 9)),),
        (Buffer("q", "in", S64, (const(8),), "reg"), Buffer("p", "out", S64, (var("n"),), "mem")),
        (),
        (),
        (Statement(access("p[k]"), "=", access("q[k]"), (Variable("k", const(0), var("n")),)),),
    )
    copy = statement("Y[w] = X[w]", w=9)
    both = roots(copy, needles(machine(ranged, full)))
    assert [needle.name for needle, _ in both] == ["full"]
    assert [needle.name for needle, _ in roots(copy, needles(machine(ranged)))] == ["masked"]


# --- roots --------------------------------------------------------------------------------------
def test_both_operand_orders() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=2, n=2, k=2)
    found = roots(kernel, needles(machine(GEMM)))
    assert [[(n, getattr(e, "buffer", "")) for n, e in bound] for _, bound in found] == [
        [("a", "A"), ("b", "B")],
        [("a", "B"), ("b", "A")],
    ]


def test_like_operands_are_not_exchanged() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=2, n=2, k=2)
    lanes = statement("c[i] += a[i] * b[i]", i=8)
    alike = instruction("lanes", lanes)
    assert len(roots(kernel, needles(machine(alike)))) == 1
    # With one operand in memory the two orders are different programs, as with a broadcast one.
    assert len(roots(kernel, needles(machine(instruction("x", lanes, {"b": "mem"}))))) == 2
    scaled = instruction("y", statement("c[i] += a[i] * b[]", i=8))
    assert len(roots(kernel, needles(machine(scaled)))) == 2


def test_types_must_agree() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", F32, m=2, n=2, k=2)
    assert roots(kernel, needles(machine(GEMM))) == ()


def test_widening_product() -> None:
    def cast(a: Access) -> Op:
        return Op("cast", (a,), F32)

    def product(a: Access, b: Access) -> Op:
        return Op("*", (cast(a), cast(b)), F32)

    inner = Statement(
        access("c[i]", F32),
        "+=",
        product(access("a[i,k]", BF16), access("b[i,k]", BF16)),
        tuple(Variable(n, const(0), const(e)) for n, e in (("i", 16), ("k", 2))),
    )
    kernel = Statement(
        access("C[m]", F32),
        "+=",
        product(access("A[m,q]", BF16), access("B[q]", BF16)),
        tuple(Variable(n, const(0), const(32)) for n in "mq"),
    )
    plain = instruction("fma", statement("c[i] += a[i] * b[i]", F32, i=16))
    found = roots(kernel, needles(machine(plain, instruction("dot", inner))))
    # The one that does the casts itself first; for the other they are operands to be computed.
    assert [needle.name for needle, _ in found] == ["dot", "fma"]
    assert isinstance(dict(found[1][1])["a"], Op)


def test_literals_must_be_equal() -> None:
    def relu(buffer: str, index: str, zero: str) -> Op:
        return Op("max", (access(f"{buffer}[{index}]", F32), Literal(zero, F32)), F32)

    lanes = (Variable("i", const(0), const(16)),)
    inner = instruction("relu", Statement(access("r[i]", F32), "=", relu("a", "i", "0.0"), lanes))
    for text, count in (("0.0", 1), ("1.0", 0)):
        kernel = Statement(access("Y[i]", F32), "=", relu("X", "i", text), lanes)
        assert len(roots(kernel, needles(machine(inner)))) == count


def test_operand_used_twice_takes_one_expression() -> None:
    square = instruction("square", statement("c[i] += a[i] * a[i]", i=4))
    same = statement("Y[w] += X[w,r] * X[w,r]", w=9, r=9)
    other = statement("Y[w] += X[w,r] * Z[w,r]", w=9, r=9)
    assert len(roots(same, needles(machine(square)))) == 1
    assert roots(other, needles(machine(square))) == ()


def test_immediates_take_constants_only() -> None:
    scale = instruction("scale", statement("r[i] = a[i] * v[]", i=4), {"v": "imm"})
    kernel = statement("Y[w] = X[w] * Z[w]", w=9)
    assert roots(kernel, needles(machine(scale))) == ()
    constant = Statement(
        kernel.target, "=", Op("*", (access("X[w]"), Literal("3", S64)), S64), kernel.variables
    )
    ((_, bound),) = roots(constant, needles(machine(scale)))
    assert dict(bound)["v"] == Literal("3", S64)


def test_copies_end_in_a_store() -> None:
    store = instruction("store", statement("m[i] = r[i]", i=8), {"m": "mem"})
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=8))
    index = needles(machine(store, add))
    assert [n.name for n, _ in roots(statement("Y[w] = X[w]", w=9), index)] == ["store"]
    total = statement("Y[w] = X[w] + Z[w]", w=9)
    assert [n.name for n, _ in roots(total, index)] == ["add"]


def test_needles_that_do_more_come_first() -> None:
    fma = instruction("fma", statement("c[i] += a[i] * b[i]", i=8))
    add = instruction("add", statement("r[i] = a[i] + b[i]", i=8))
    kernel = statement("Y[w] += X[w,r] * Z[r]", w=9, r=9)
    found = roots(kernel, needles(machine(add, fma)))
    assert [n.name for n, _ in found] == ["fma", "add"]
    assert [covered(n) for n, _ in found] == [2, 1]
    assert isinstance(found[1][1][0][1], Op)


def test_index_of_a_thousand_entries_reads_few() -> None:
    many = [instruction(f"op{n}", statement("r[i] = a[i] - b[i]", i=8)) for n in range(1000)]
    index = needles(machine(*many, GEMM))
    roots(statement("C[m,n] += A[m,k] * B[k,n]", m=2, n=2, k=2), index)
    assert set(index._readings) == {"gemm"}
