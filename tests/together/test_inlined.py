"""Statements put into one, and neutral operands, against evaluation point by point."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.arithmetic import declared
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.inline import ApartError, inline, inline_each
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Literal, Op, Reduce, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses, identity, reduces
from isamap.mapping.groups import covers, grouped, groups
from isamap.mapping.needles.neutral import neutral_forms
from isamap.text.load import parse_module
from tests.profiles import examples
from tests.strategies import EXACT, kernels

ARITHMETIC = declared()
Held = Mapping[str, Any]


def value(expr: Expr, held: Held, at: Mapping[str, int], extents: Mapping[str, int]) -> Any:
    """Return the value of an expression at one point, as an array of one element."""
    match expr:
        case Literal():
            return ARITHMETIC.constant(expr).reshape(1)
        case Coordinate(index, _):
            return np.array([index.evaluate(at)], np.int64)
        case Access(buffer, indices, _):
            array, pad = held[buffer]
            place = tuple(int(i.evaluate(at)) for i in indices)
            inside = all(0 <= i < n for i, n in zip(place, array.shape, strict=True))
            return array[place].reshape(1) if inside else ARITHMETIC.constant(pad).reshape(1)
        case Op(op, args, dtype):
            function = ARITHMETIC.operation(op, tuple(a.dtype for a in args), dtype)
            return function(*(value(arg, held, at, extents) for arg in args))
        case Reduce(reduction, variables, body, dtype):
            total = ARITHMETIC.constant(identity(reduction, dtype)).reshape(1)
            function = ARITHMETIC.operation(REDUCTION_OPERATIONS[reduction], (dtype, dtype), dtype)
            for point in product(*(range(extents[v]) for v in variables)):
                here = {**at, **dict(zip(variables, point, strict=True))}
                total = function(total, value(body, held, here, extents))
            return total


def evaluated(kernel: Kernel, statement: Statement, arrays: Mapping[str, Any]) -> Any:
    """Return what an inlined assignment leaves, starting from the arrays that a caller gives."""
    held = {}
    for buffer in kernel.buffers:
        if buffer.name in arrays:
            held[buffer.name] = ARITHMETIC.encode(arrays[buffer.name], buffer.dtype), buffer.pad
        elif buffer.contents is not None:
            elements = [ARITHMETIC.constant(e) for e in buffer.contents.elements]
            held[buffer.name] = np.array(elements).reshape(buffer.contents.shape), buffer.pad
    extents = {v.name: v.extent.constant or 0 for v in statement.variables}
    target = kernel.buffer(statement.target.buffer)
    shape = tuple(extent.constant or 0 for extent in target.shape)
    result = np.zeros(shape, ARITHMETIC.carrier(target.dtype))
    inside = {n for r in reduces(statement.value) for n in r.variables}
    outer = [name for name in extents if name not in inside]
    for point in product(*(range(extents[name]) for name in outer)):
        at = dict(zip(outer, point, strict=True))
        place = tuple(int(i.evaluate(at)) for i in statement.target.indices)
        result[place] = value(statement.value, held, at, extents)[0]
    return ARITHMETIC.decode(result, target.dtype)


@given(kernels(dtypes=[DTYPES["s32"], DTYPES["u8"]], operations=EXACT), st.integers(0, 99))
@examples(25)
def test_a_run_of_statements_is_what_it_leaves(kernel: Kernel, seed: int) -> None:
    arrays = random_inputs(kernel, {}, seed)
    with np.errstate(all="ignore"):
        for group in groups(kernel):
            if group.first:
                continue  # it may read what statements before it leave
            upto = kernel.statements[: group.count]
            written = {s.target.buffer for s in upto}
            last = kernel.buffer(upto[-1].target.buffer)
            buffers = tuple(
                b for b in kernel.buffers if b.name in written or b.role not in ("out", "local")
            )
            part = Kernel(kernel.name, (), kernel.permissions, buffers, kernel.ranges, upto)
            expected = interpret(part, {n: a for n, a in arrays.items() if part.buffer(n)})
            found = evaluated(kernel, group.statement, arrays)
            np.testing.assert_array_equal(found, expected[last.name])


CHAIN = """kernel chain {
  in A : s32[3, 4]  in B : s32[4, 5]  in z : s32[5]
  local T : s32[3, 5]
  local U : s32[3, 5]
  out C : s32[5, 3]
  T[i, j] += A[i, k] * B[k, j]
  U[i, j] = T[i, j] + z[j]
  C[n, m] = max(U[m, n], 0) >> 1
}"""


def test_a_chain_is_one_assignment_with_the_reduction_within() -> None:
    (kernel,) = parse_module(CHAIN).kernels
    (whole,) = [g for g in groups(kernel) if g.count == 3]
    arrays = random_inputs(kernel, {}, 5)
    expected = interpret(kernel, arrays)["C"]
    np.testing.assert_array_equal(evaluated(kernel, whole.statement, arrays), expected)
    one = grouped(kernel, [whole])
    assert [b.name for b in one.buffers] == ["A", "B", "z", "C"]
    assert covers(kernel, [whole]) == ((0, 1, 2),)


def test_each_beginning_of_a_run_is_what_it_is_alone() -> None:
    (kernel,) = parse_module(CHAIN).kernels
    buffers = {b.name: b for b in kernel.buffers}
    beginnings = [inline(kernel.statements[: n + 1], buffers) for n in range(3)]
    assert list(inline_each(kernel.statements, buffers)) == beginnings


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("T[i] += A[i, k]\n C[j] += T[j]\n", ""),
        ("T[i] += A[i, k]\n C[0] += T[j]\n", "itself a reduction"),
        ("T[i] += A[i, k]\n U[i] += A[i, k]\n C[i] = T[i] * U[i]\n", "two reductions"),
        ("for h in 0..2\n T[h + 1] = A[h, 0]\n T[0] = A[0, 0]\n C[i] = T[i]\n", "in parts"),
    ],
)
def test_statements_that_are_not_one_stay_apart(body: str, reason: str) -> None:
    size = 1 if "C[0]" in body else 3
    text = f"""kernel k {{
      in A : s32[3, 4]
      local T : s32[3]
      {"local U : s32[3]" if "U[" in body else ""}
      out C : s32[{size}]
      {body} }}"""
    (kernel,) = parse_module(text).kernels
    buffers = {b.name: b for b in kernel.buffers}
    if not reason:
        assert not reduces(inline(kernel.statements[1:], buffers, {"T"}).value)
        return
    with pytest.raises(ApartError, match=reason):
        inline(kernel.statements, buffers)


BODIES = [
    "min(max(x[i] + b[i], lo[]), hi[])",
    "((x[i] * m[i]) >> s[]) + z[]",
    "(x[i] - b[i]) & m[i]",
    "(x[i] | b[i]) ^ m[i]",
    "b[i] - x[i]",
]


@pytest.mark.parametrize("dtype", ["s32", "u8", "f32"])
@pytest.mark.parametrize("body", BODIES)
def test_neutral_operands_change_nothing(body: str, dtype: str) -> None:
    if dtype == "f32" and any(op in body for op in (">>", "&", "|")):
        pytest.skip("no operation of floats")
    names = [n for n in ("x", "b", "m", "s", "z", "lo", "hi") if f"{n}[" in body]
    scalars = {"s", "z", "lo", "hi"}
    shown = [f"in {n} : {dtype}[{'' if n in scalars else 5}]" for n in names]
    text = f"kernel k {{ {'  '.join(shown)}  out y : {dtype}[5]\n y[i] = {body} }}"
    (kernel,) = parse_module(text).kernels
    whole = kernel.statements[0].value
    forms = neutral_forms(whole)
    assert forms[0] == (whole, ())
    assert len(forms) > 1
    arrays = random_inputs(kernel, {}, 3)
    if "s" in arrays:
        arrays["s"] = np.zeros((), arrays["s"].dtype)
    for smaller, fixed in forms:
        given_ = {n: ARITHMETIC.encode(a, DTYPES[dtype]) for n, a in arrays.items()}
        for access, literal in fixed:
            constant = ARITHMETIC.constant(literal)
            given_[access.buffer] = np.full_like(given_[access.buffer], constant)
        held = {n: (a, None) for n, a in given_.items()}
        left = {a.buffer for a in accesses(smaller)}
        assert left.isdisjoint(access.buffer for access, _ in fixed)
        for i in range(5):
            np.testing.assert_array_equal(
                value(smaller, held, {"i": i}, {}), value(whole, held, {"i": i}, {})
            )
