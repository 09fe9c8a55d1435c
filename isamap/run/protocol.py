"""How arrays lie in the memory that a worker shares with its parent."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isamap.emit.source import CSource, Parameter

_PAGE = 4096
_LINE = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets of a kernel's parameters, in order, and the size of all."""

    offsets: tuple[int, ...]
    size: int


def layout_of(source: CSource, symbols: Mapping[str, int]) -> Layout:
    """Place every parameter on a page of its own, away from the others' cache sets."""
    offset = 0
    offsets = []
    for number, parameter in enumerate(source.parameters):
        # An odd number of lines into the page: arrays of one size do not share cache sets.
        offset += _LINE * (2 * (number % 16) + 1) if parameter.alignment <= _LINE else 0
        offsets.append(offset)
        size = int(parameter.size.evaluate(symbols)) * parameter.dtype.bytes
        offset += -(-size // _PAGE) * _PAGE + _PAGE
        offset -= offset % _PAGE
    return Layout(tuple(offsets), max(offset, _PAGE))


def shape_of(parameter: Parameter, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Return the extents of a parameter."""
    return tuple(int(extent.evaluate(symbols)) for extent in parameter.shape)


def view(
    parameter: Parameter, symbols: Mapping[str, int], memory: memoryview, offset: int
) -> np.ndarray:
    """Return the parameter's array in a stretch of memory."""
    shape = shape_of(parameter, symbols)
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(memory, parameter.dtype.numpy, count, offset)
    return flat.reshape(shape)
