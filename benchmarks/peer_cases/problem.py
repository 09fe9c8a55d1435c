"""A kernel with its inputs, and how sums of products are written for each kind of elements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Case: TypeAlias = Mapping[str, Any]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Arrays: TypeAlias = dict[str, Array]

TYPES = {"f32": ("f32", "f32", "f32"), "bf16": ("bf16", "bf16", "f32"), "u8s8": ("u8", "s8", "s32")}
"""Elements of the activations, of the weights, and of sums."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A kernel's text, its inputs by name, and what makes the answer of its output ``Y``.

    The problems of one case differ in their ``layout`` only.
    """

    layout: str
    text: str
    inputs: Arrays
    answer: Callable[[Array], Array]


def kernel_text(name: str, *lines: str) -> str:
    """Return the text of a kernel of these declarations and statements."""
    return "\n".join([f"kernel {name} {{", *(f"  {line}" for line in lines), "}", ""])


def product(kind: str, left: str, right: str) -> str:
    """Return the product of two elements in the type of their sum."""
    total = TYPES[kind][2]
    return f"{left} * {right}" if kind == "f32" else f"{total}({left}) * {total}({right})"


def summed(kind: str, shape: str, at: str, term: str, scaled: bool) -> list[str]:
    """Return the lines of ``Y[at] += term``, ended as a kind wants it.

    bf16 is rounded from the sum in f32; bytes are ``scaled`` by 1/256, rounded and saturated, or
    the sum itself.
    """
    total = TYPES[kind][2]
    if kind == "f32" or (kind == "u8s8" and not scaled):
        return [f"out Y : {total}[{shape}]", f"Y[{at}] += {term}"]
    value = f"bf16(S[{at}])" if kind == "bf16" else f"sat[u8](f32(S[{at}]) * 0.00390625)"
    out = "bf16" if kind == "bf16" else "u8"
    return [
        f"local S : {total}[{shape}]",
        f"out Y : {out}[{shape}]",
        f"S[{at}] += {term}",
        f"Y[{at}] = {value}",
    ]


def typed(array: Array, dtype: str) -> Array:
    """Return an input in the type of its elements: bf16 is rounded once from f32."""
    return array.astype(ml_dtypes.bfloat16) if dtype == "bf16" else array


def held(array: Array) -> str:
    """Return what a declaration says of the integers that an input holds: the benchmark's are such
    that sums of two products of bytes fit 16 bits, and instructions that saturate may be used.
    """
    return f" values {array.min()} .. {array.max()}" if array.dtype.kind in "iu" else ""


def readable(array: Array) -> Array:
    """Return an answer in a type that numpy has."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array
