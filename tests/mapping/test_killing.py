"""Constants that silence an instruction's body, and what lowering must put into dead elements."""

import numpy as np
import pytest

from isamap.interp.arithmetic import declared
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.ir.nodes import Literal, Op, Permissions, Reduction, Statement, Variable
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.filler import filled_axes, fillers
from isamap.mapping.laws.killing import best_fillings
from isamap.mapping.matching import Matching
from isamap.mapping.needles.needles import needles, roots
from tests.mapping.small import DOT, GEMM, LANES, S64, access, instruction, machine, root, statement

F32, S8, U8, BOOL = (DTYPES[name] for name in ("f32", "s8", "u8", "bool"))
A, B = access("a[k]"), access("b[k]")


def sets(body: Op, reduction: Reduction, *, finite: bool = True) -> list[list[str]]:
    """Return the killing sets, those of all fillings together, as sorted names."""
    found = best_fillings(body, reduction, ("a", "b"), (), finite)
    return sorted(sorted(s) for filling in found for s in filling.sets)


def body(op: str, dtype_name: str) -> Op:
    dtype = DTYPES[dtype_name]
    return Op(op, (access("a[k]", dtype), access("b[k]", dtype)), dtype)


@pytest.mark.parametrize(
    ("op", "reduction", "dtype", "expected"),
    [
        ("*", "+=", "s32", [["a"], ["b"]]),
        ("*", "+=", "f32", [["a"], ["b"]]),
        ("+", "max=", "f32", [["a"], ["b"]]),
        ("+", "min=", "f64", [["a"], ["b"]]),
        ("+", "max=", "s8", [["a", "b"]]),  # no -inf, but the least value plus zero will do
        ("+", "max=", "f8e4m3", []),
        ("min", "max=", "s8", [["a"], ["b"]]),
        ("max", "max=", "s8", [["a", "b"]]),
        ("max", "min=", "u8", [["a"], ["b"]]),
        ("-", "+=", "s32", [["a", "b"]]),
        ("+", "+=", "f32", [["a", "b"]]),
        ("&", "or=", "u8", [["a"], ["b"]]),
        ("|", "and=", "u8", [["a"], ["b"]]),
        ("|", "and=", "s8", [["a"], ["b"]]),
        ("&", "or=", "bool", [["a"], ["b"]]),
        ("^", "xor=", "u8", [["a", "b"]]),
        ("*", "*=", "s32", [["a", "b"]]),
        ("*", "=", "s32", []),
    ],
)
def test_killing_sets(op: str, reduction: Reduction, dtype: str, expected: list[list[str]]) -> None:
    assert sets(body(op, dtype), reduction) == expected


def test_infinite_floats_need_both() -> None:
    assert sets(body("*", "f32"), "+=", finite=False) == [["a", "b"]]
    assert sets(body("*", "s32"), "+=", finite=False) == [["a"], ["b"]]
    assert sets(body("max", "f32"), "min=", finite=False) == [["a", "b"]]


@pytest.mark.parametrize(
    ("op", "reduction", "dtype", "expected"),
    [
        ("<", "+=", "s32", [["a"], ["b"]]),
        ("<=", "+=", "f32", [["a", "b"]]),  # the ends make it true, not false
        (">", "+=", "u8", [["a"], ["b"]]),
        ("<=", "*=", "f32", [["a"], ["b"]]),
        (">=", "*=", "s8", [["a"], ["b"]]),
        ("==", "+=", "s8", [["a", "b"]]),
        ("//", "+=", "s32", [["a"], ["b"]]),
        ("%", "or=", "u8", [["a"], ["b"]]),
        ("<<", "+=", "s16", [["a"]]),
        (">>", "xor=", "u16", [["a"]]),
        ("/", "+=", "f32", [["b"]]),
    ],
)
def test_killed_by_what_never_holds(
    op: str, reduction: Reduction, dtype: str, expected: list[list[str]]
) -> None:
    """Each set also silences the interpreter's operation on all kinds of values of the others."""
    a, b = DTYPES[dtype], DTYPES[dtype]
    compares = op in ("<", "<=", ">", ">=", "==")
    inner = Op(op, (access("a[k]", a), access("b[k]", b)), BOOL if compares else a)
    value = Op("cast", (inner,), DTYPES["s32"]) if compares else inner
    assert sets(value, reduction) == expected
    ends = [-np.inf, np.inf, 0.5] if a.is_float else [a.lowest, a.highest]
    live = np.array([-3, 0, 1, 7, 100] if a.kind != "unsigned" else [0, 1, 7, 100, 31])
    compute = declared().operation(op, (a, b), inner.dtype)
    for filling in best_fillings(value, reduction, ("a", "b"), (), True):
        held = {name: declared().constant(literal) for name, literal in filling.constants}
        for killing in filling.sets:
            # What is live is finite, as the kernel permits one to assume.
            others = np.append(live, [e for e in ends if np.isfinite(e)]).astype(a.numpy)
            left, right = (
                np.broadcast_to(held[n], others.shape) if n in killing else others for n in "ab"
            )
            identity = 1 if reduction == "*=" else 0
            with np.errstate(all="ignore"):
                assert (np.asarray(compute(left, right)).astype(a.numpy) == identity).all()


def test_infinite_floats_compare_with_the_ends() -> None:
    less = Op("cast", (Op("<", (access("a[k]", F32), access("b[k]", F32)), BOOL),), S64)
    atmost = Op("cast", (Op("<=", (access("a[k]", F32), access("b[k]", F32)), BOOL),), S64)
    assert sets(less, "+=", finite=False) == [["a"], ["b"]]  # NaN is not less, too
    assert sets(atmost, "*=", finite=False) == [["a", "b"]]  # but not at most


def test_exponential_of_minus_infinity() -> None:
    difference = Op("exp", (Op("-", (access("a[k]", F32), access("b[k]", F32)), F32),), F32)
    assert sets(difference, "+=") == [["a"], ["b"]]
    assert sets(difference, "+=", finite=False) == [["a", "b"]]


def test_sum_of_absolute_differences() -> None:
    difference = Op("abs", (Op("-", (A, B), S64),), S64)
    (filling,) = best_fillings(difference, "+=", ("a", "b"), (), True)
    assert filling.sets == (frozenset(("a", "b")),)
    assert {name: literal.text for name, literal in filling.constants} == {"a": "0", "b": "0"}


def test_offset_kills_on_one_side() -> None:
    shifted = Op("*", (Op("+", (A, Literal("128", S64)), S64), B), S64)
    (filling,) = best_fillings(shifted, "+=", ("a", "b"), (), True)
    assert filling.sets == (frozenset("b"),)


def test_widening_keeps_zero() -> None:
    s32 = DTYPES["s32"]
    wide = Op(
        "*",
        (
            Op("cast", (access("a[k]", U8),), s32),
            Op("cast", (access("b[k]", S8),), s32),
        ),
        s32,
    )
    assert sets(wide, "+=") == [["a"], ["b"]]


def test_literal_operand_is_known() -> None:
    (filling,) = best_fillings(
        Op("*", (A, B), S64), "+=", ("a", "b"), (("b", Literal("2", S64)),), False
    )
    assert filling.sets == (frozenset("a"),)


# --- in matchings -------------------------------------------------------------------------------
def best(kernel: Statement, inner: str, **axes: int) -> Matching:
    needle, operands = root(kernel, instruction("x", statement(inner, **axes)))
    return enumerate_matchings(kernel, needle, operands)[0][-1]


def texts(matching: Matching) -> dict[str, str | None]:
    found = fillers(matching)
    return {name: literal.text if literal else None for name, literal in found.items()}


def test_lanes_need_no_filler() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=9, n=9, k=9)
    needle, operands = root(kernel, LANES)
    for matching in enumerate_matchings(kernel, needle, operands)[0]:
        assert texts(matching) == {"a": None, "b": None}
        assert filled_axes(matching, "a") == ()


def test_reduced_axes_need_zeros() -> None:
    kernel = statement("C[m] += A[m,k] * B[k]", m=9, k=9)
    needle, operands = root(kernel, DOT)
    for matching in enumerate_matchings(kernel, needle, operands)[0]:
        assert texts(matching) == {"a": "0", "b": "0"}
        assert filled_axes(matching, "a") == ("k",)
        assert filled_axes(matching, "b") == ("k",)


def test_max_plus_needs_minus_infinity() -> None:
    kernel = statement("C[m,n] max= A[m,k] + B[k,n]", F32, m=9, n=9, k=9)
    inner = instruction("tropical", statement("c[i,j] max= a[i,k] + b[k,j]", F32, i=4, j=4, k=4))
    needle, operands = root(kernel, inner)
    found = enumerate_matchings(kernel, needle, operands)[0]
    assert len(found) == 4
    assert all(texts(m) == {"a": "-inf", "b": "-inf"} for m in found)


def test_integer_max_plus_is_padded_where_both_are_unused() -> None:
    kernel = statement("C[m,n] max= A[m,k] + B[k,n]", m=9, n=9, k=9)
    inner = instruction("tropical", statement("c[i,j] max= a[i,k] + b[k,j]", i=4, j=4, k=4))
    needle, operands = root(kernel, inner)
    (matching,) = enumerate_matchings(kernel, needle, operands)[0]
    assert [(str(p.form), p.axis) for p in matching.placements] == [
        ("m", "i"),
        ("n", "j"),
        ("k", "k"),
    ]
    assert sorted(text or "" for text in texts(matching).values()) == [str(-(2**63)), "0"]


def test_axis_that_cannot_be_silenced_refuses_the_instruction() -> None:
    kernel = statement("C[m] max= A[m,k] + B[m]", m=9, k=9)
    inner = instruction("x", statement("c[i] max= a[i,k] + b[i]", i=4, k=4))
    needle, operands = root(kernel, inner)
    assert enumerate_matchings(kernel, needle, operands) == ((), True, "")
    lanes = instruction("lanes", statement("c[i] max= a[i] + b[i]", i=4))
    needle, operands = root(kernel, lanes)
    assert len(enumerate_matchings(kernel, needle, operands)[0]) == 1


def test_pairs_kill_where_both_are_unused() -> None:
    """A sum of absolute differences may be padded, but not put on a diagonal."""

    def difference(a: str, b: str) -> Op:
        return Op("abs", (Op("-", (access(a), access(b)), S64),), S64)

    def made(target: str, value: Op, **extents: int) -> Statement:
        variables = tuple(Variable(n, const(0), const(e)) for n, e in extents.items())
        return Statement(access(target), "+=", value, variables)

    inner = instruction("sad", made("c[i,j]", difference("a[i,k]", "b[k,j]"), i=4, j=4, k=4))
    kernel = made("Y[m]", difference("A[m,k]", "B[m,k]"), m=9, k=9)
    needle, operands = root(kernel, inner)
    found = enumerate_matchings(kernel, needle, operands)[0]
    assert found
    for matching in found:
        axes = {p.axis for p in matching.placements if p.form.names == {"m"}}
        # The variable of both operands would make a matrix product repeat work off its diagonal.
        assert axes in (set(), {"i", "j"})


def test_no_finite_refuses_diagonals() -> None:
    kernel = statement("Y[m] += A[m] * B[m]", F32, m=9)
    inner = instruction("gemm", statement("c[i,j] += a[i,k] * b[k,j]", F32, i=4, j=4, k=4))
    needle, operands = root(kernel, inner)
    allowed = enumerate_matchings(kernel, needle, operands, listed="every")[0]
    strict = enumerate_matchings(
        kernel, needle, operands, listed="every", permissions=Permissions(finite=False)
    )[0]
    assert len(allowed) == 5
    assert {tuple(p.axis for p in m.placements) for m in strict} == {
        (),
        ("i", "j"),
        ("i", "j", "k"),  # off the diagonal both operands are unused
    }


def test_literal_operand_is_its_own_filler() -> None:
    kernel = Statement(
        access("Y[m]"),
        "+=",
        Op("*", (access("A[m,k]"), Literal("3", S64)), S64),
        tuple(Variable(n, const(0), const(9)) for n in "mk"),
    )
    for needle, operands in roots(kernel, needles(machine(DOT))):
        if isinstance(dict(operands)["b"], Literal):
            found = enumerate_matchings(kernel, needle, operands)[0]
            assert [texts(m) for m in found] == [{"a": "0", "b": "3"}]
            break
    else:
        pytest.fail("no binding of the literal")


def test_diagonal_needs_filler_in_the_operand_with_holes() -> None:
    kernel = statement("Y[c,w] += X[c,w,s] * W[c,s]", c=9, w=9, s=9)
    needle, operands = root(kernel, GEMM)
    for matching in enumerate_matchings(kernel, needle, operands)[0]:
        assert texts(matching) == {"a": "0", "b": "0"}


def test_bool_reduction() -> None:
    kernel = Statement(
        access("Y[m]", BOOL),
        "or=",
        Op("&", (access("A[m,k]", BOOL), access("B[k]", BOOL)), BOOL),
        tuple(Variable(n, const(0), const(9)) for n in "mk"),
    )
    inner = Statement(
        access("c[i]", BOOL),
        "or=",
        Op("&", (access("a[i,k]", BOOL), access("b[i,k]", BOOL)), BOOL),
        tuple(Variable(n, const(0), const(4)) for n in "ik"),
    )
    needle, operands = root(kernel, instruction("anyof", inner))
    for matching in enumerate_matchings(kernel, needle, operands)[0]:
        assert texts(matching) == {"a": "false", "b": "false"}
