"""Why nothing maps, in the kernel's own names."""

from dataclasses import replace

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Expr, Literal, Op, Permissions, Statement
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.reasons import MOST, reasons
from tests.mapping.small import GEMM, S64, access, fold, instruction, machine, statement

F32 = DTYPES["f32"]


def test_type() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", F32, m=4, n=4, k=4)
    assert reasons(kernel, machine(GEMM)) == ("gemm: its operand a is s64, A[m, k] is f32",)


def test_operation() -> None:
    kernel = statement("C[m] += A[m,k] - B[k]", m=4, k=4)
    assert reasons(kernel, machine(GEMM)) == ("gemm: it computes '*', A[m, k] - B[k] is '-'",)


def test_reduction() -> None:
    kernel = statement("C[m] max= A[m,k] * B[k]", m=4, k=4)
    assert reasons(kernel, machine(GEMM)) == ("gemm: it does '+=', the statement does 'max='",)


def test_what_only_moves_or_sets_is_told_where_nothing_else_is() -> None:
    kernel = statement("C[m] = A[m] - B[m]", m=4)
    lanes = statement("r[i] = a[i] - a[i]", i=4).variables
    clear = Statement(access("r[i]"), "=", Literal("0", S64), lanes)
    a_clear = instruction("a_clear", clear)
    told = reasons(kernel, machine(a_clear, GEMM))
    assert [line.partition(":")[0] for line in told] == ["gemm"]
    (line,) = reasons(kernel, machine(a_clear))
    assert line.startswith("a_clear: ")


def test_law() -> None:
    kernel = statement("C[m] max= A[m,k] + B[m]", m=9, k=9)
    inner = instruction("x", statement("c[i] max= a[i,k] + b[i]", i=4, k=4))
    (line,) = reasons(kernel, machine(inner))
    assert line.startswith("x: law 4: padding its axes (i, k)")
    assert enumerate_mappings(kernel, machine(inner), Permissions()).mappings == ()


def test_literal_inside_the_instruction() -> None:
    def made(target: str, name: str, literal: str) -> Statement:
        lanes = statement(f"{target} = {name} - {name}", i=8).variables
        value = Op("max", (access(name), Literal(literal, S64)), S64)
        return Statement(access(target), "=", value, lanes)

    relu = instruction("relu", made("r[i]", "a[i]", "0"))
    assert reasons(made("Y[i]", "X[i]", "6"), machine(relu)) == ("relu: its 0 is not 6",)


def test_instructions_that_are_not_considered() -> None:
    kernel = statement("Y[w] += X[w+s] * W[s]", w=9, s=3)
    twice = instruction("twice", statement("c[i] += a[i] * c[j]", i=8, j=3))
    assert reasons(kernel, machine(twice)) == (
        "twice: it reads its result c at another place than it writes",
    )


def test_nearest_first_and_not_too_many() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", F32, m=4, n=4, k=4)
    others = [instruction(f"op{n}", statement("r[i] = a[i] - b[i]", i=8)) for n in range(20)]
    found = reasons(kernel, machine(*others, GEMM))
    assert len(found) == MOST
    assert found[0].startswith("gemm: ")


def test_no_reasons_where_something_fits() -> None:
    kernel = statement("C[m,n] += A[m,k] * B[k,n]", m=4, n=4, k=4)
    assert reasons(kernel, machine(GEMM)) == ()
    assert enumerate_mappings(kernel, machine(GEMM), Permissions()).mappings


def test_a_conversion_inside_the_instruction() -> None:
    kernel = statement("C[m] += A[m,k] * B[k]", F32, m=4, k=4)
    short = [Op("cast", (access(text, DTYPES["f16"]),), F32) for text in ("a[i,k]", "b[k]")]
    inner = replace(statement("c[i] += a[i,k] * b[k]", F32, i=4, k=4), value=fold("*", [*short]))
    told = reasons(kernel, machine(instruction("dot", inner)))
    assert told == ("dot: its operand a is f16, converted to f32 inside; A[m, k] is f32",)


def test_a_value_that_an_instruction_takes_in_a_wider_type_is_said_so_that_it_fits() -> None:
    narrow, wide = DTYPES["s8"], DTYPES["s32"]
    zero = Literal("0", narrow)

    def relu(value: Expr) -> Statement:
        return replace(
            statement("C[m] = X[m]", narrow, m=16), value=Op("max", (value, zero), narrow)
        )

    clamped = Op("sat", (access("a[m]", wide),), narrow)
    index = machine(instruction("store", relu(clamped)))
    told = reasons(relu(access("X[m]", narrow)), index)
    assert told == (
        "store: its operand a is s32, converted to s8 inside; X[m] is s8, "
        "write sat[s8](s32(X[m])) for it",
    )
    # What the note says to write fits.
    written = Op("sat", (Op("cast", (access("X[m]", narrow),), wide),), narrow)
    assert reasons(relu(written), index) == ()
    # No value of s32 is said in f32 and back without loss.
    rounded = Op("sat", (access("a[m]", DTYPES["f32"]),), narrow)
    (lossy,) = reasons(relu(access("X[m]", narrow)), machine(instruction("store", relu(rounded))))
    assert lossy.endswith("; X[m] is s8")
