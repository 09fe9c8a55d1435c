"""Printing any tree and parsing it gives the same tree."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import IsamapError
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Access, Coordinate, Expr, Instruction, Kernel, Literal, Module, Op
from isamap.ir.printer import (
    print_expr,
    print_instruction,
    print_kernel,
    print_module,
    print_statement,
)
from isamap.text.load import parse_module
from tests.strategies import ALL, exprs, instructions, kernels

F32 = DTYPES["f32"]
S8 = DTYPES["s8"]
BUFFERS = tuple(Access(f"X_{dtype}", (var("i"),), dtype) for dtype in ALL)


AT, M = var("i"), var("M")
PLACES = tuple(
    Coordinate(index, DTYPES["s64"])
    for index in (
        *(AT, -AT, AT + 1, 2 * AT, M * AT, -1 * (M * AT), AT // 2, AT % 3, -(AT % 3), AT % 3 + M),
        *(M - AT // 2, -(AT // 2) + M, 2 * (AT // 2), (AT + 1) // 2, (2 * AT) // 3, AT % 4 // 2),
    )
)


def reparsed(expr: Expr) -> Expr:
    """Print an expression as the value of a statement, and parse it."""
    return parsed(print_expr(expr), expr)


def parsed(value: str, expr: Expr) -> Expr:
    """Parse a text as the value of a statement of the type of an expression."""
    inputs = "".join(f"  in X_{dtype} : {dtype}[4]\n" for dtype in ALL)
    text = (
        f"kernel k(M) {{\n{inputs}  out Y : {expr.dtype}[4]\n"
        f"  for i in 0..4\n  Y[i] = {value}\n}}\n"
    )
    return parse_module(text).kernels[0].statements[0].value


@given(kernels())
def test_kernels_survive(kernel: Kernel) -> None:
    assert parse_module(print_kernel(kernel)).kernels == (kernel,)


@given(instructions())
def test_instructions_survive(instruction: Instruction) -> None:
    assert parse_module(print_instruction(instruction)).instructions == (instruction,)


@given(st.sampled_from(ALL).flatmap(lambda dtype: exprs(dtype, (*BUFFERS, *PLACES), depth=4)))
def test_expressions_survive_and_no_parentheses_could_be_left_out(expr: Expr) -> None:
    assert reparsed(expr) == expr
    text = print_expr(expr)
    for start, end in groups(text):
        if text[:start].endswith("-") and re.fullmatch(r"-(\d[\w.+-]*|inf)", text[start + 1 : end]):
            continue  # the sign of a number is kept apart from that before it
        shorter = text[:start] + text[start + 1 : end] + text[end + 1 :]
        try:
            found = parsed(shorter, expr)
        except IsamapError:
            continue
        assert found != expr, f"{text} is {shorter}"


def groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ends of the parentheses that only group: those of calls and casts have a name."""
    opened: list[int] = []
    for at, char in enumerate(text):
        if char == "(":
            opened.append(at)
        elif char == ")":
            start = opened.pop()
            if not re.search(r"[\w\]]$", text[:start]):
                yield start, at


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("f32(i + 1) * f32((i // 2))", "f32(i + 1) * f32(i // 2)"),
        ("f32(s64(X_s8[i]) + (i + 1))", "f32(s64(X_s8[i]) + (i + 1))"),
        ("f32((i + 1) + s64(X_s8[i]))", "f32(i + 1 + s64(X_s8[i]))"),
        ("f32(s64(X_s8[i]) * (2*i))", "f32(s64(X_s8[i]) * (2*i))"),
        ("f32(s64(X_s8[i]) - (-i))", "f32(s64(X_s8[i]) - -i)"),
        ("f32(s64(X_s8[i]) // (i % 3))", "f32(s64(X_s8[i]) // (i % 3))"),
        ("f32(-(i // 2))", "f32(-(i // 2))"),
        ("f32(M - (i // 2))", "f32(M - i // 2)"),
        ("f32((i + 1) // 2 // 3)", "f32((i + 1) // 2 // 3)"),
        ("select(((i + 1) < (M)), 1, 2)", "select(i + 1 < M, 1.0, 2.0)"),
        ("X_f32[(i % 3)] + X_f32[((i + 1) // 2)]", "X_f32[i % 3] + X_f32[(i + 1) // 2]"),
    ],
)
def test_how_places_are_written(value: str, text: str) -> None:
    expr = parsed(value, A)
    assert print_expr(expr) == text
    assert reparsed(expr) == expr


@given(st.lists(kernels(), max_size=2), st.lists(instructions(), max_size=2))
def test_modules_survive(found: list[Kernel], others: list[Instruction]) -> None:
    named = tuple(_renamed(kernel, f"k{n}") for n, kernel in enumerate(found))
    several = tuple(_named(other, f"i{n}") for n, other in enumerate(others))
    module = Module(1, named, several, ())
    assert parse_module(print_module(module)) == module


def _renamed(kernel: Kernel, name: str) -> Kernel:
    return replace(kernel, name=name)


def _named(instruction: Instruction, name: str) -> Instruction:
    return replace(instruction, name=name, generic=name)


A = Access("X_f32", (var("i"),), F32)


def op(name: str, *args: Expr) -> Op:
    return Op(name, args, F32)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (op("+", op("+", A, A), A), "X_f32[i] + X_f32[i] + X_f32[i]"),
        (op("+", A, op("+", A, A)), "X_f32[i] + (X_f32[i] + X_f32[i])"),
        (op("*", op("+", A, A), A), "(X_f32[i] + X_f32[i])*X_f32[i]"),
        (op("-", A, op("-", A, A)), "X_f32[i] - (X_f32[i] - X_f32[i])"),
        (op("neg", op("neg", A)), "--X_f32[i]"),
        (op("neg", Literal("5.0", F32)), "-(5.0)"),
        (op("neg", Literal("-5.0", F32)), "-(-5.0)"),
        (op("neg", op("+", A, A)), "-(X_f32[i] + X_f32[i])"),
        (op("*", op("neg", A), A), "-X_f32[i]*X_f32[i]"),
        (op("-", A, Literal("-1.0", F32)), "X_f32[i] - -1.0"),
        (op("max", A, Literal("0.0", F32)), "max(X_f32[i], 0.0)"),
        (op("cast", Literal("3", S8)), "f32(s8(3))"),
        (op("sat", Literal("3", S8)), "sat[f32](s8(3))"),
        (op("cast", Op("+", (Literal("3", S8), Literal("4", S8)), S8)), "f32(s8(3) + 4)"),
        (
            Op("<", (Literal("1.0", F32), Literal("2.0", F32)), DTYPES["bool"]),
            "f32(1.0) < 2.0",
        ),
        (Literal("nan", F32), "nan"),
        (Literal("-inf", F32), "-inf"),
        (Literal("-0.0", F32), "-0.0"),
        (Literal("true", DTYPES["bool"]), "true"),
    ],
)
def test_how_expressions_are_written(expr: Expr, text: str) -> None:
    assert print_expr(expr).replace(" * ", "*") == text
    assert reparsed(expr) == expr


def test_literals_are_told_apart() -> None:
    assert Literal("1", S8) != Literal("1.0", F32)
    assert Literal("0.0", F32) != Literal("-0.0", F32)
    assert Literal("nan", F32) == Literal("nan", F32)


def test_a_whole_file() -> None:
    text = """isamap 1

kernel conv(H = 8, W, K = 16) permit no reassociate, distribute, approximate(1e-3) {
  in X : f32[H, W, 3] pad 0.0 values -1.0 .. 1.0
  const F : f32[3, 3, 3, K]
  in T : s32[K] values 0 .. 7
  local S : f32[H, W, K]
  out Y : f32[H, W, K]
  for r in 0..3
  S[h, w, k] += X[h + r - 1, s + w - 1, c] * F[r, s, c, k]
  Y[h, w, k] = max(S[T[k], w, k], 0.0) * f32(2*h + w) + select(h < w // 2, 1.0, -2.5)
}

kernel small {
  in X : s8[4]
  inout Y : s32[]
  Y[] += s32(X[i])
}

instruction move(n in 1..17, P) {
  in m : f32[n] @ memory strides [P] pad 0.0
  out r : f32[16] @ reg
  state in mask : u16
  for i in 0..16
  r[i] = m[i]
}

instruction lanes(V >= 4 pow2, W >= 3) {
  in a : f32[V, W] @ reg
  out r : f32[V, W] @ reg
  r[i, j] = a[i, j]
}

instruction add<T = s8> {
  in a : T[4] @ reg
  out r : T[4] @ reg
  r[i] = a[i] + 1
}
"""
    module = parse_module(text)
    printed = print_module(module)
    assert parse_module(printed) == module
    assert printed == text.replace("T[4]", "s8[4]")


def test_programs_survive() -> None:
    text = """isamap 1

kernel step(N) {
  in X : f32[N]
  inout H : f32[N]
  H[i] = H[i] + X[i]
}

program rnn(T = 10, N = 4) {
  in X : f32[N]
  inout H : f32[N]
  step(X, H)
  for t in 0..T {
    step(X, H)
    for u in 1..3 {
      step(X, H)
    }
  }
}
"""
    module = parse_module(text)
    assert print_module(module) == text
    assert parse_module(print_module(module)) == module


def test_a_statement_is_one_line() -> None:
    (kernel,) = parse_module("kernel k { in X : f32[4]\n out Y : f32[]\n Y[] max= X[i] }").kernels
    assert print_statement(kernel.statements[0]) == "Y[] max= X[i]"


def test_a_constant_index_as_a_value_has_its_type() -> None:
    assert print_expr(Coordinate(const(3), DTYPES["s64"])) == "s64(3)"
