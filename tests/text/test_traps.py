"""Texts that a lexer or a parser easily misreads."""

import pytest

from isamap.diagnostics import IsamapError
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel, print_statement
from isamap.text.load import parse_module


def kernel(statements: str, more: str = "") -> Kernel:
    text = (
        "kernel k {\n  in X : f32[4]\n  in B : bool[4]\n"
        f"  out Y : f32[4]\n{more}{statements}\n}}\n"
    )
    (found,) = parse_module(text).kernels
    return found


def complaints(text: str) -> list[tuple[str, int, int, str]]:
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    found = []
    for d in caught.value.diagnostics:
        assert d.span is not None
        found.append((d.code, d.span.line, d.span.column, d.message))
    return found


@pytest.mark.parametrize(
    ("value", "column", "message"),
    [
        ("2w", 10, "'2w' is no number"),
        ("1e", 10, "'1e' is no number"),
        (".5", 10, "'.5' is no number"),
        ("09", 10, "'09' is no number"),
        ("0x1G", 10, "'0x1G' is no number"),
        ("0b102", 10, "'0b102' is no number"),
        ("X[i] + 1.", 17, "'1.' is no number"),
        ("1" * 41, 10, f"'{'1' * 30}...' is no number"),
        ("X[i] < X[i] < X[i]", 22, "expected a declaration, a statement, '}' or '|', found '<'"),
        ("pad[i]", 10, "expected an expression, found 'pad'"),
        ("kernel", 10, "expected an expression, found 'kernel'"),
        ("X[i]\xa0", 14, "the character U+00A0 is not of the language"),
        ("é", 10, "the character 'é' is not of the language"),
        ("X[i] 2", 15, "expected an operator, a declaration, a statement or '}', found '2'"),
        ("X[]", 10, "X has 1 dimension but is indexed with 0"),
    ],
)
def test_a_trap_is_told_where_it_is(value: str, column: int, message: str) -> None:
    text = f"kernel k {{\n  in X : f32[4]\n  out Y : f32[4]\n  Y[i] = {value}\n}}\n"
    found = complaints(text)
    assert [(line, at, what) for _, line, at, what in found] == [(4, column, message)]


@pytest.mark.parametrize("reduction", ["max=", "max =", "max \t=", "min=", "+=", "*="])
def test_a_reduction_is_one_word(reduction: str) -> None:
    (statement,) = kernel(f"Y[i] {reduction} X[i]").statements
    assert statement.reduction == "".join(reduction.split())


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("0x1F", "31.0"),
        ("0XFf", "255.0"),
        ("0b101", "5.0"),
        ("-0x10", "-16.0"),
        ("0x0", "0.0"),
        ("f32(0xFFFF)", "65535.0"),
    ],
)
def test_whole_numbers_of_other_bases_are_decimal_once_read(written: str, printed: str) -> None:
    (statement,) = kernel(f"Y[i] = {written}").statements
    assert printed in print_statement(statement)


def test_extents_indices_and_contents_take_other_bases() -> None:
    text = (
        "kernel k(N = 0x10) {\n  in X : u8[N] values 0x1 .. 0xF\n"
        "  const T : u8[0b10] = [0xff, 0b10]\n  out Y : u8[N]\n"
        "  Y[i] = X[0xF - i] & T[0x1]\n}\n"
    )
    (found,) = parse_module(text).kernels
    assert print_kernel(found) == (
        "kernel k(N = 16) {\n  in X : u8[N] values 1 .. 15\n"
        "  const T : u8[2] = [255, 2]\n  out Y : u8[N]\n"
        "  Y[i] = X[-i + 15] & T[1]\n}\n"
    )


def test_names_may_begin_with_keywords() -> None:
    text = (
        "kernel inner { in input : f32[4]  out maximum : f32[4]\n maximum[format] = input[format] }"
    )
    (found,) = parse_module(text).kernels
    assert [b.name for b in found.buffers] == ["input", "maximum"]


def test_an_instruction_fits_on_one_line() -> None:
    text = "instruction set1 { in m : f32[] @ memory out r : f32[16] @ zmm r[i] = m[] }"
    (found,) = parse_module(text).instructions
    assert [o.storage for o in found.operands] == ["memory", "zmm"]


def test_ranges_need_no_space_around_their_dots() -> None:
    made = kernel("for r in 0..4\n  Y[r] = X[r]")
    assert str(made.ranges[0].upper) == "4"


def test_a_sign_binds_tighter_than_a_division() -> None:
    text = (
        "kernel k { in X : f32[4] out Y : f32[4]\n Y[i] = X[-7//2 + 4 + i] * X[-(7//2) + 3 + i] }"
    )
    (statement,) = parse_module(text).kernels[0].statements
    first, second = statement.value.args  # type: ignore[union-attr]
    assert str(first.indices[0]) == "i"  # type: ignore[union-attr]
    assert str(second.indices[0]) == "i"  # type: ignore[union-attr]


def test_a_byte_order_mark_and_other_line_ends_are_ignored() -> None:
    text = "\ufeffkernel k {\r\n  out Y : f32[4]\r\n  Y[i] = 1\r\n}\r\n"
    assert parse_module(text).kernels[0].name == "k"


def test_lines_are_counted_through_odd_characters_in_comments() -> None:
    text = "# a\x0b b\x0c c\u2028 d\x85 e\nkernel k { out Y : f32[4]\n Y[i] = $\n}"
    assert complaints(text)[0][1] == 3
