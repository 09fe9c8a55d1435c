"""The types of elements: exact facts about each, and its numpy counterpart."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import ml_dtypes
import numpy as np

Kind = Literal["float", "signed", "unsigned", "bool"]


@dataclass(frozen=True, slots=True)
class DType:
    """A type of elements.

    ``bits`` is the width of a value; ``precision`` the significand bits of a float, the hidden one
    included (0 for the others); ``max_exponent`` the exponent of its largest finite binade.
    """

    name: str
    kind: Kind
    bits: int
    precision: int = 0
    max_exponent: int = 0

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers (bool is not)."""
        return self.kind in ("signed", "unsigned")

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory; 4-bit integers take one byte each, as in ml_dtypes."""
        return max(1, self.bits // 8)

    @property
    def lowest(self) -> int:
        """Smallest value of an integer type or bool."""
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def highest(self) -> int:
        """Largest value of an integer type or bool."""
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind == "signed" else (1 << self.bits) - 1

    def holds(self, other: "DType") -> bool:
        """Whether every value of another integer type is one of this integer type."""
        if not (self.is_integer and other.is_integer):
            return False
        return self.lowest <= other.lowest and other.highest <= self.highest

    @property
    def epsilon(self) -> Fraction:
        """Unit roundoff of a float: half the distance from 1 to the next value."""
        return Fraction(1, 1 << self.precision)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy (or ml_dtypes) type that holds an element."""
        return _NUMPY[self.name]


_ALL = (
    DType("f64", "float", 64, 53, 1023),
    DType("f32", "float", 32, 24, 127),
    DType("f16", "float", 16, 11, 15),
    DType("bf16", "float", 16, 8, 127),
    DType("f8e4m3", "float", 8, 4, 8),
    DType("f8e5m2", "float", 8, 3, 15),
    *(DType(f"s{bits}", "signed", bits) for bits in (64, 32, 16, 8, 4)),
    *(DType(f"u{bits}", "unsigned", bits) for bits in (64, 32, 16, 8, 4)),
    DType("bool", "bool", 8),
)

DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in _ALL}
"""Every type by name."""

_NUMPY: dict[str, np.dtype[np.generic]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4),
    "bool": np.dtype(np.bool_),
    **{f"s{b}": np.dtype(f"int{b}") for b in (8, 16, 32, 64)},
    **{f"u{b}": np.dtype(f"uint{b}") for b in (8, 16, 32, 64)},
}
