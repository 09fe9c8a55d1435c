"""What a trial's arrays hold: elements at the pitches of their operands, and what lies between."""

from collections.abc import Mapping

import numpy as np

from isamap.interp.arguments import shape_of
from isamap.interp.rounding import Values
from isamap.ir.index import row_major
from isamap.ir.nodes import Buffer
from isamap.targets.probe.operands import random_operand

_BETWEEN = 0x5A


def span_of(operand: Buffer, symbols: Mapping[str, int]) -> int:
    """Return the elements from the first of an operand in memory to its last, gaps included."""
    shape = shape_of(operand, symbols)
    return sum((n - 1) * p for n, p in zip(shape, _pitches(operand, symbols), strict=True)) + 1


def filled(
    operand: Buffer, symbols: Mapping[str, int], sets: int, generator: np.random.Generator
) -> Values:
    """Return the content of an operand in memory for a number of sets, one in each row."""
    span = span_of(operand, symbols)
    whole = np.full((sets, span * operand.dtype.bytes), _BETWEEN, np.uint8)
    found = whole.view(operand.dtype.numpy)
    shape = (sets, *shape_of(operand, symbols))
    elements(found, operand, symbols)[...] = random_operand(operand, shape, generator)
    return found


def elements(array: Values, operand: Buffer, symbols: Mapping[str, int]) -> Values:
    """Return the view of an operand's elements in arrays of :func:`filled`, set after set."""
    shape, size = shape_of(operand, symbols), array.dtype.itemsize
    strides = tuple(p * size for p in _pitches(operand, symbols))
    return np.ndarray((len(array), *shape), array.dtype, array, 0, (array.strides[0], *strides))


def between(array: Values, operand: Buffer, symbols: Mapping[str, int]) -> Values:
    """Return the bytes of an array's sets in which there is no element."""
    kept = np.ones((1, array.shape[1]), bool)
    elements(kept, operand, symbols)[...] = False
    raw = array.view(np.uint8).reshape(*array.shape, array.dtype.itemsize)
    return np.asarray(raw[:, kept[0]])


def untouched(array: Values, operand: Buffer, symbols: Mapping[str, int]) -> Values:
    """Return for each set whether what lies between the elements is still what it was."""
    gaps = between(array, operand, symbols)
    return np.asarray((gaps == _BETWEEN).reshape(len(array), -1).all(axis=1))


def _pitches(operand: Buffer, symbols: Mapping[str, int]) -> tuple[int, ...]:
    strides = operand.strides if operand.strides is not None else row_major(operand.shape)
    return tuple(int(stride.evaluate(symbols)) for stride in strides)
