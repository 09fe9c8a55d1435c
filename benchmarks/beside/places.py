"""Memory for libraries that take it as it is: each operand in other sets of the first cache."""

from ctypes import c_void_p

import numpy as np
from numpy.typing import DTypeLike

from beside.inputs import Array

LINE, PAGE = 64, 4096
"""Bytes that a cache moves at a time, and bytes after which addresses fall into the same sets."""

INPUT, CONSTANT, RESULT = LINE, 3 * LINE, PAGE // 2 + 5 * LINE
"""Bytes into a page at which operands begin.

Results are far from inputs: a load looks like an earlier store where both addresses end in the same
twelve bits.
"""


def room(shape: tuple[int, ...], dtype: DTypeLike, at: int) -> Array:
    """Return zeros in the order of C that begin ``at`` bytes into a page."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.zeros(size + 2 * PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE + at % PAGE
    return raw[start : start + size].view(kind).reshape(shape)


def copied(array: Array, at: int) -> Array:
    """Return a copy in the order of C that begins ``at`` bytes into a page."""
    found = room(array.shape, array.dtype, at)
    np.copyto(found, array)
    return found


class Address(c_void_p):
    """An address for a call, with all that must live as long as it is used."""

    def __init__(self, address: int | None, *held: object) -> None:
        super().__init__(address)
        self.held = held


def at(array: Array) -> Address:
    """Return the address of an array; null if it is empty."""
    return Address(array.ctypes.data if array.size else None, array)
