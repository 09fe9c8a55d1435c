"""C literals of exactly the value that a literal of the language has, and C types of memory."""

import math

import numpy as np

from isamap.interp.rounding import constant
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

_MEMORY = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f8e4m3": "uint8_t",
    "f8e5m2": "uint8_t",
    "s4": "int8_t",
    "u4": "uint8_t",
    "bool": "uint8_t",
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}


def memory_type(dtype: DType) -> str:
    """Return the C type of an element in memory."""
    return _MEMORY[dtype.name]


def is_raw(dtype: DType) -> bool:
    """Whether memory holds the bits of a float that C has no type for."""
    return dtype.is_float and dtype.name not in ("f32", "f64")


def float_value(literal: Literal) -> float:
    """Return the value of a float literal: its decimal, rounded once to its type."""
    return float(constant(literal))


def value_text(literal: Literal) -> str:
    """Return the literal as a C constant of its value; floats that C lacks become ``float``."""
    if literal.dtype.is_float:
        return _float_text(float_value(literal), literal.dtype)
    return _integer_text(int(constant(literal)), literal.dtype)


def memory_text(literal: Literal) -> str:
    """Return the literal as a C constant of what lies in memory (raw bits of narrow floats)."""
    if not is_raw(literal.dtype):
        return value_text(literal)
    element = np.array(float_value(literal)).astype(literal.dtype.numpy)
    bits = int(element.view(f"u{literal.dtype.bytes}"))
    return f"0x{bits:0{2 * literal.dtype.bytes}x}"


def _float_text(value: float, dtype: DType) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = _hex(value) + ("" if dtype.name == "f64" else "f")
    return f"({text})" if text.startswith("-") else text


def _hex(value: float) -> str:
    if value == int(value) and abs(value) < 1000:
        return f"{value:.1f}"  # exact, and what people write
    head, exponent = value.hex().split("p")
    whole, _, digits = head.partition(".")
    digits = digits.rstrip("0")
    return f"{whole}.{digits}p{exponent}" if digits else f"{whole}p{exponent}"


def _integer_text(value: int, dtype: DType) -> str:
    match dtype.name:
        case "s64":
            return "INT64_MIN" if value == dtype.lowest else f"INT64_C({value})"
        case "s32" if value == dtype.lowest:
            return "INT32_MIN"
        case "u64":
            return f"UINT64_C({value})"
        case "u32":
            return f"UINT32_C({value})"
        case _:
            return f"({value})" if value < 0 else str(value)
