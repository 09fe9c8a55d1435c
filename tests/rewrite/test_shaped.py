"""Values in other shapes: the same, for random values and bodies of instructions."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Access, Kernel, Op, Statement
from isamap.ir.printer import print_expr, print_statement
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.rules import rules_for
from isamap.rewrite.shape import shapes_of
from isamap.solver.lemma import prove
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_valid, boxes, buffers, kernel_of

RULES = ("reassociate", "insert-identity", "copy-by-identity")

BODIES = (
    "c[i] += a[i] * b[i]",
    "r[i] = a[i] * b[i] + d[i]",
    "c[i] += a[i] * b[i] * d[i]",
    "r[i] = a[i] * b[i] + d[i] * e[i]",
    "r[i] = a[i] * b[i] + d[i] * e[i] + f[i]",
    "c[i] max= a[i] + b[i]",
    "c[i] min= max(a[i], b[i])",
    "r[i] = max(a[i], b[i])",
    "r[i] = max(a[i] + b[i], d[i] * e[i])",
)
BITS = (
    "c[i] xor= a[i] & b[i]",
    "r[i] = (a[i] & b[i]) ^ d[i]",
    "c[i] or= a[i] & b[i] & d[i]",
    "c[i] and= a[i] | b[i]",
)


def _body(text: str, dtype: str) -> Statement:
    target = text[0]
    role = "out" if " = " in text else "inout"
    lines = [f"in {name} : {dtype}[8]" for name in "abdef" if f"{name}[" in text]
    return kernel_of(
        "kernel body {\n" + "\n".join([*lines, f"{role} {target} : {dtype}[8]", text]) + "\n}"
    ).statements[0]


def _found(
    kernel: Kernel, bodies: list[str], dtype: str, rules: tuple[str, ...] = RULES
) -> Rewritings:
    statements = [_body(text, dtype) for text in bodies]
    return rewritings(kernel, 0, rules_for(statements, rules))


def _values(
    kernel: Kernel, bodies: list[str], dtype: str, rules: tuple[str, ...] = RULES
) -> set[str]:
    found = _found(kernel, bodies, dtype, rules).proved
    return {print_statement(one.kernel.statements[0]) for one in found}


def _kernel(text: str, dtype: str, permissions: str = "") -> Kernel:
    names = [name for name in "ABCDE" if f"{name}[" in text]
    lines = [f"in {name} : {dtype}[3, 4]" for name in names]
    return kernel_of(
        f"kernel k{permissions} {{\n" + "\n".join([*lines, f"out Y : {dtype}[3]", text]) + "\n}"
    )


_OPERATORS = {"+": "({} + {})", "*": "({} * {})", "max": "max({}, {})", "min": "min({}, {})"}
_BIT_OPERATORS = {"&": "({} & {})", "|": "({} | {})", "^": "({} ^ {})"}


@st.composite
def _trees(draw: st.DrawFn, leaves: list[str], operators: dict[str, str]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    cut = draw(st.integers(1, len(leaves) - 1))
    one, other = draw(_trees(leaves[:cut], operators)), draw(_trees(leaves[cut:], operators))
    return operators[draw(st.sampled_from(sorted(operators)))].format(one, other)


@st.composite
def _statements(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A kernel, its type, and bodies of instructions."""
    drawn: Drawn = draw(boxes())
    dtype = draw(st.sampled_from(["s32", "u8", "s16", "f32", "f64"]))
    bits = dtype[0] != "f"
    leaves = [
        draw(buffers(drawn, name, dtype, draw(st.sampled_from(["mkr", "mn", "nk", "k", "r"]))))
        for name in "ABCDE"[: draw(st.integers(1, 5))]
    ]
    operators = _OPERATORS | _BIT_OPERATORS if bits and draw(st.booleans()) else _OPERATORS
    value = draw(_trees(leaves, operators))
    reductions = ["+=", "max=", "min=", *(["xor=", "or=", "and="] if bits else [])]
    whole = drawn.used <= {"m", "n"}
    reduction = draw(st.sampled_from([*reductions, "="] if whole else reductions))
    drawn.lines.append(f"out Y : {dtype}[{drawn.sizes['m']}, {drawn.sizes['n']}]")
    drawn.used |= {"m", "n"}
    permissions = draw(st.sampled_from(["", " permit no reassociate", " permit no finite"]))
    every = BODIES + BITS if bits else BODIES
    bodies = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    return drawn.text(f"Y[m, n] {reduction} {value}", permissions), dtype, bodies


@given(_statements(), st.integers(0, 99))
@examples(1)
def test_every_shape_computes_the_same(drawn: tuple[str, str, list[str]], seed: int) -> None:
    text, dtype, bodies = drawn
    kernel = kernel_of(text)
    found = _found(kernel, bodies, dtype)
    assert not [r.text for r in found.refused if r.verdict.verdict == "refuted"]
    arrays = random_inputs(kernel, None, seed)
    expected = interpret(kernel, arrays)
    for rewriting in found.proved:
        assert_valid(rewriting, kernel)
        actual = interpret(rewriting.kernel, arrays)
        if dtype[0] == "f":
            comparison = compare(kernel, arrays, expected, actual)
            assert comparison.ok, comparison.text
        else:
            np.testing.assert_array_equal(actual["Y"], expected["Y"])


@pytest.mark.parametrize("dtype", ["s32", "u8", "f32"])
def test_a_body_is_found_however_the_kernel_wrote_it(dtype: str) -> None:
    body = ["r[i] = a[i] * b[i] + d[i] * e[i] + f[i]"]
    terms = ["A[i, 0] * B[i, 0]", "C[i, 0] * D[i, 0]", "E[i, 0]"]
    for x, y, z in permutations(terms):
        for text in (f"Y[i] = ({x} + {y}) + {z}", f"Y[i] = {x} + ({y} + {z})"):
            kernel = _kernel(text, dtype)
            ready = "A[i, 0] * B[i, 0] + C[i, 0] * D[i, 0] + E[i, 0]"
            swapped = "C[i, 0] * D[i, 0] + A[i, 0] * B[i, 0] + E[i, 0]"
            wanted = {f"Y[i] = {ready}", f"Y[i] = {swapped}"}
            last = text.endswith((f"+ {terms[2]}", f"+ {terms[2]})"))
            already = text.startswith("Y[i] = (") and last and z == terms[2]
            already |= x == terms[2] and "+ (" in text
            found = _values(kernel, body, dtype)
            assert already or found & wanted, text


def test_sums_of_floats_keep_their_order_unless_permitted() -> None:
    body = ["r[i] = a[i] * b[i] + d[i]"]
    text = "Y[i] = D[i, 0] + A[i, 0] * B[i, 0] + C[i, 0]"
    rules = ("reassociate",)
    strict = " permit no reassociate"
    assert _values(_kernel(text, "f32"), body, "f32", rules)
    assert not _values(_kernel(text, "f32", strict), body, "f32", rules)
    assert _values(_kernel(text, "s32", strict), body, "s32", rules)
    ordered = "Y[i] = max(D[i, 0], max(A[i, 0] + B[i, 0], C[i, 0]))"
    maximum = ["r[i] = max(a[i] + b[i], d[i])"]
    found = _values(_kernel(ordered, "f32", strict), maximum, "f32", rules)
    assert found == {"Y[i] = max(A[i, 0] + B[i, 0], max(D[i, 0], C[i, 0]))"}


@pytest.mark.parametrize(
    ("body", "dtype", "before", "after"),
    [
        ("c[i] += a[i] * b[i]", "f32", "Y[i] += A[i, j]", "Y[i] += A[i, j] * 1.0"),
        ("c[i] += a[i] * b[i]", "u8", "Y[i] += A[i, j]", "Y[i] += A[i, j] * 1"),
        ("c[i] max= a[i] + b[i]", "f32", "Y[i] max= A[i, j]", "Y[i] max= A[i, j] + 0.0"),
        ("c[i] max= a[i] + b[i]", "s8", "Y[i] max= A[i, j]", "Y[i] max= A[i, j] + 0"),
        ("c[i] min= max(a[i], b[i])", "s8", "Y[i] min= A[i, j]", "Y[i] min= max(A[i, j], -128)"),
        ("c[i] xor= a[i] & b[i]", "u8", "Y[i] xor= A[i, j]", "Y[i] xor= A[i, j] & 255"),
        ("c[i] += a[i] * b[i]", "f32", "Y[i] = A[i, 0]", "Y[i] += A[i, 0] * 1.0"),
        (
            "c[i] += a[i] * b[i] * d[i]",
            "f32",
            "Y[i] += A[i, j] * B[i, j]",
            "Y[i] += A[i, j] * B[i, j] * 1.0",
        ),
        (
            "r[i] = a[i] * b[i] + d[i] * e[i]",
            "s32",
            "Y[i] = A[i, 0] * B[i, 0] + C[i, 0]",
            "Y[i] = A[i, 0] * B[i, 0] + C[i, 0] * 1",
        ),
    ],
)
def test_identities_are_those_of_the_operation(
    body: str, dtype: str, before: str, after: str
) -> None:
    assert after in _values(_kernel(before, dtype), [body], dtype)


def test_an_assignment_accumulates_only_where_nothing_was_before() -> None:
    body = ["c[i] += a[i] * b[i]"]
    for role, offered in (("out", True), ("inout", False)):
        text = f"kernel k {{\nin A : s32[3]\n{role} Y : s32[3]\nY[i] = A[i]\n}}"
        statements = _values(kernel_of(text), body, "s32")
        assert ("Y[i] += A[i] * 1" in statements) == offered
    twice = "kernel k {\nin A : s32[3]\nout Y : s32[3]\nY[i] = A[i]\nY[i] += A[i]\n}"
    assert "Y[i] += A[i] * 1" not in _values(kernel_of(twice), body, "s32")


@pytest.mark.parametrize("quotient", ["1 / Y[i]", "rsqrt(Y[i])", "2 * (A[i] / max(Y[i], A[i]))"])
@pytest.mark.parametrize("permissions", ["", " permit no finite"])
def test_zeros_keep_their_signs_where_something_divides_by_them(
    quotient: str, permissions: str
) -> None:
    def found(last: str) -> set[str]:
        head = f"kernel k{permissions} {{\nin A : f32[3]\nout Y : f32[3]\nout Z : f32[3]\n"
        bodies = ["c[i] += a[i] * b[i]", "r[i] = a[i] * b[i]"]
        return _values(kernel_of(f"{head}Y[i] = -A[i]\nZ[i] = {last}\n}}"), bodies, "f32")

    gone = {"Y[i] += -A[i] * 1.0", "Y[i] = 0.0 + -A[i] * 1.0"}
    kept = {"Y[i] = -A[i] * 1.0"}
    assert found("Y[i] / 2") == found("Y[i]") == gone | kept
    assert found(quotient) == (kept if permissions else gone | kept)


def test_the_laws_of_maxima_hold_of_zeros_with_signs() -> None:
    a, b, c = (Access(name, (), DTYPES["f32"]) for name in "abc")
    for op in ("max", "min"):
        over = partial(Op, op, dtype=DTYPES["f32"])
        laws = (over((a, b)), over((b, a))), (over((a, over((b, c)))), over((over((a, b)), c)))
        assert prove(equal("", "", laws, signed_zeros=True), 60_000).verdict == "proved"


def test_a_value_that_has_the_shape_is_left_alone() -> None:
    kernel = _kernel("Y[i] += A[i, j] * B[i, j]", "f32")
    assert not _values(kernel, ["c[i] += a[i] * b[i]"], "f32")


def test_shapes_are_listed_once_and_movements_have_none() -> None:
    bodies = [
        _body(t, "f32") for t in ("c[i] += a[i] * b[i]", "c[i] += b[i] * a[i]", "r[i] = a[i]")
    ]
    found = [(s.reduction, print_expr(s.value)) for s in shapes_of(bodies)]
    assert found == [("+=", "o0[] * o1[]"), ("=", "o0[] + o1[] * o2[]")]
