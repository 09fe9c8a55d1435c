"""What lies behind the end of a row comes through operations on it."""

import numpy as np
import pytest

from isamap.interp.run import interpret
from isamap.ir.nodes import Literal
from isamap.mapping.fragments.dead import comes_through
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
    ("f32", "neg(a[i]) * -0.25", "0.0"),
    ("f32", "abs(a[i]) * sqrt(b[i])", "0.0"),
    ("f32", "max(a[i], b[i])", "-inf"),
    ("f32", "min(max(a[i], b[i]), a[i])", "inf"),
]
LOST = [
    ("s32", "a[i] + 1", "0"),
    ("s32", "~a[i]", "0"),
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
    comes = comes_through(statement.value, number)
    assert comes == ((kind, value, filler) in KEPT)
    if comes:
        same = np.full(4, float(filler), statement.target.dtype.numpy)
        with np.errstate(all="ignore"):
            found = interpret(kernel, {"a": same, "b": same})["y"]
        assert np.array_equal(found, same)


def test_zero_is_the_same_number_in_every_type() -> None:
    (kernel,) = parse_module(text_of("s8", "a[i]")).kernels
    (other,) = parse_module(text_of("f32", "a[i]")).kernels
    dtype = other.statements[0].value.dtype
    assert comes_through(kernel.statements[0].value, Literal("0.0", dtype))
    assert not comes_through(kernel.statements[0].value, Literal("-inf", dtype))


@pytest.mark.parametrize("machine", ["x86_avx512", "aarch64_neon", "aarch64_sve2", "hexagon_hvx"])
@pytest.mark.parametrize("value", ["{} + 3", "{} | 3", "max({}, 5)", "{} * 3"])
@pytest.mark.parametrize("types", [("u8", "s8"), ("s8", "s8")])
def test_what_is_computed_of_packed_operands_adds_nothing(
    machine: str, value: str, types: tuple[str, str]
) -> None:
    """Five bytes of sixteen rows, where dot products sum four: three of eight places are dead."""
    left, right = (f"s32({value.format(f'{name}[i, k]')})" for name in "xy")
    text = f"""kernel dots {{
      in x : {types[0]}[16, 5]  in y : {types[1]}[16, 5]  out z : s32[16]
      z[i] += {left} * {right} }}"""
    (kernel,) = parse_module(text).kernels
    for rewrite in ((), None):
        options = Options(prove=False, rewrite=rewrite)
        simulate(kernel, load_hardware(machine), options=options)
