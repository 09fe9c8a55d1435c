"""Buffers while they are interpreted, and the strided views that affine accesses are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from isamap.interp.rounding import Values
from isamap.ir.index import Index, Name
from isamap.ir.nodes import Buffer

Box: TypeAlias = tuple[tuple[str, int, int], ...]
"""Variables with the first value and the number of values of each, outermost first."""


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum of coefficient * variable``."""

    constant: int
    coefficients: Mapping[str, int]

    def ends(self, box: Box) -> tuple[int, int]:
        """Return the least and the largest value over a box, both taken."""
        low = high = self.constant
        for name, start, count in box:
            factor = self.coefficients.get(name, 0)
            ends = factor * start, factor * (start + count - 1)
            low, high = low + min(ends), high + max(ends)
        return low, high


def linear(index: Index, symbols: Mapping[str, int]) -> Linear | None:
    """Return an index as a linear form in the names that are no symbols, or None if it is not."""
    constant = 0
    coefficients: dict[str, int] = {}
    for monomial, factor in index.substitute(symbols).terms:
        match monomial:
            case ():
                constant = factor
            case (Name(name),):
                coefficients[name] = factor
            case _:
                return None
    return Linear(constant, coefficients)


def pitches(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the pitch of each dimension of a dense row-major array, in elements."""
    found = [1]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * extent)
    return tuple(reversed(found))[: len(shape)]


@dataclass(slots=True)
class Cell:
    """A buffer's content: carried values, with a margin of padding where accesses need one.

    ``low`` is the margin before the first element of each dimension.  ``written`` marks the
    elements that have a value, None when all have.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    data: Values
    low: tuple[int, ...]
    pad: Values | None
    written: Values | None = None

    @property
    def inner(self) -> Values:
        """The elements without the margin, a view."""
        return self.data[tuple(slice(m, m + n) for m, n in zip(self.low, self.shape, strict=True))]

    def fits(self, forms: Sequence[Linear], box: Box) -> bool:
        """Return whether an access over a box stays within elements and margin."""
        for form, low, size in zip(forms, self.low, self.data.shape, strict=True):
            least, most = form.ends(box)
            if least + low < 0 or most + low >= size:
                return False
        return True

    def address(self, indices: Sequence[Values]) -> Values:
        """Return flat addresses in ``data`` of elements within elements and margin."""
        total = np.zeros((), np.int64)
        for index, low, pitch in zip(indices, self.low, pitches(self.data.shape), strict=True):
            total = total + (index + low) * pitch
        return np.asarray(total, np.int64)


@dataclass(frozen=True, slots=True)
class Strided:
    """An affine access: a byte offset and the bytes that each variable moves it by."""

    data: Values
    offset: int
    steps: Mapping[str, int]

    def view(self, box: Box, full: bool = False) -> Values:
        """Return the elements over a box, one dimension a variable.

        The dimension of a variable that does not occur has extent 1, unless ``full``.
        """
        offset = self.offset
        shape: list[int] = []
        strides: list[int] = []
        for name, start, count in box:
            step = self.steps.get(name, 0)
            offset += step * start
            shape.append(count if step or full else 1)
            strides.append(step)
        return np.ndarray(shape, self.data.dtype, self.data, offset, strides)


def strided(cell: Cell, forms: Sequence[Linear]) -> Strided:
    """Return the affine access of a cell whose dimension ``d`` has index ``forms[d]``."""
    offset = 0
    steps: dict[str, int] = {}
    size = cell.data.dtype.itemsize
    for form, low, pitch in zip(forms, cell.low, pitches(cell.data.shape), strict=True):
        offset += (form.constant + low) * pitch * size
        for name, factor in form.coefficients.items():
            steps[name] = steps.get(name, 0) + factor * pitch * size
    return Strided(cell.data, offset, steps)


def is_injective(access: Strided, box: Box) -> bool:
    """Return whether no two points of a box are the same element."""
    reach = 0
    moves = sorted((abs(access.steps.get(n, 0)), count) for n, _, count in box if count > 1)
    for step, count in moves:
        if step <= reach:
            break
        reach += step * (count - 1)
    else:
        return True
    addresses = np.zeros((1,) * len(box), np.int64)
    for axis, (name, _, count) in enumerate(box):
        shape = [1] * len(box)
        shape[axis] = count
        addresses = addresses + np.arange(count).reshape(shape) * access.steps.get(name, 0)
    return np.unique(addresses).size == addresses.size


def size_of(box: Box) -> int:
    """Return the number of points of a box."""
    total = 1
    for _, _, count in box:
        total *= max(0, count)
    return total


def blocks(box: Box, room: int) -> list[Box]:
    """Return boxes of at most ``room`` points that in turn are the box in lexicographic order."""
    if size_of(box) == 0:
        return []
    split, inner = len(box), 1
    while split and inner * box[split - 1][2] <= room:
        split -= 1
        inner *= box[split][2]
    if split == 0:
        return [box]
    name, start, count = box[split - 1]
    chunk = max(1, room // inner)
    pieces = [
        ((name, start + at, min(chunk, count - at)), *box[split:]) for at in range(0, count, chunk)
    ]
    for outer, first, extent in reversed(box[: split - 1]):
        pieces = [((outer, first + at, 1), *piece) for at in range(extent) for piece in pieces]
    return pieces
