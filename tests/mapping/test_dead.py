"""What lies behind the end of a row comes through operations on it."""

import numpy as np
import pytest

from isamap.interp.run import interpret
from isamap.ir.nodes import Access, Literal
from isamap.mapping.fragments.dead import comes_through, held
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module
from tests.mapping.machines import simulate

KEPT = [
    ("s32", "a[i] * b[i]", "0"),
    ("s32", "a[i] + b[i] - a[i] * b[i]", "0"),
    ("s32", "neg(a[i])", "0"),
    ("s32", "(a[i] << 3) | (b[i] & a[i])", "0"),
    ("s32", "a[i] * -7", "0"),
    ("s32", "max(a[i] * b[i], 0)", "0"),
    ("f32", "a[i] * b[i]", "0.0"),
    ("f32", "a[i] * 0.25 + b[i]", "0.0"),
    ("f32", "abs(a[i]) * sqrt(b[i])", "0.0"),
    ("f32", "max(a[i], b[i])", "-inf"),
    ("f32", "min(max(a[i], b[i]), a[i])", "inf"),
]
LOST = [
    ("s32", "a[i] + 1", "0"),
    ("s32", "~a[i]", "0"),
    ("f32", "neg(a[i])", "0.0"),
    ("f32", "a[i] * -0.25", "0.0"),
    ("f32", "exp(a[i])", "0.0"),
    ("f32", "a[i] / b[i]", "0.0"),
    ("f32", "a[i] * b[i]", "-inf"),
    ("f32", "max(a[i], 0)", "-inf"),
    ("f32", "a[i] - b[i]", "inf"),
]


def text_of(kind: str, value: str) -> str:
    value = value.replace("neg(a[i])", "-a[i]")
    return f"kernel k {{ in a : {kind}[4]  in b : {kind}[4]  out y : {kind}[4]\n y[i] = {value} }}"


@pytest.mark.parametrize(("kind", "value", "filler"), [*KEPT, *LOST])
def test_what_comes_through_is_what_the_interpreter_computes(
    kind: str, value: str, filler: str
) -> None:
    (kernel,) = parse_module(text_of(kind, value)).kernels
    (statement,) = kernel.statements
    number = Literal(filler, statement.target.dtype)
    comes = comes_through(statement.value, number, {})
    assert comes == ((kind, value, filler) in KEPT)
    if comes:
        same = np.full(4, float(filler), statement.target.dtype.numpy)
        with np.errstate(all="ignore"):
            found = interpret(kernel, {"a": same, "b": same})["y"]
        assert found.tobytes() == same.tobytes()


def test_constants_count_for_what_they_are() -> None:
    (kernel,) = parse_module(text_of("f32", "a[i] * b[i]")).kernels
    value = kernel.statements[0].value
    dtype = value.dtype
    zero = Literal("0.0", dtype)
    assert comes_through(value, zero, {"b": Literal("0.5", dtype)})
    for text in ("-0.5", "inf", "nan", "-0.0"):
        assert not comes_through(value, zero, {"b": Literal(text, dtype)})


def test_zero_is_the_same_number_in_every_type() -> None:
    (kernel,) = parse_module(text_of("s8", "a[i]")).kernels
    access = kernel.statements[0].value
    assert isinstance(access, Access)
    (other,) = parse_module(text_of("f32", "a[i]")).kernels
    dtype = other.statements[0].value.dtype
    assert held(Literal("0.0", dtype), access.dtype) == Literal("0", access.dtype)
    assert held(Literal("-inf", dtype), access.dtype) is None


@pytest.mark.parametrize("factor", ["", " * 3"])
@pytest.mark.parametrize("length", [13, 45])
def test_products_behind_a_row_add_nothing(length: int, factor: str) -> None:
    text = f"""kernel dot {{ in x : s32[3, {length}]  in y : s32[3, {length}]  out z : s32[3]
      z[r] += x[r, i] * y[r, i]{factor} }}"""
    (kernel,) = parse_module(text).kernels
    options = Options(prove=False, rewrite=(), instruction="vsum_s32")
    result = simulate(kernel, load_hardware("x86_avx512"), options=options)
    (own,) = result.schedule.statements
    assert own.mapping.matching.needle.name == "vsum_s32"
    # All sixteen lanes are summed, with dead ones in the last vector.
    assert own.mapping.tile["i"] == min(length, 16)
