"""Sizes: of symbolic extents, of the arrays, and of the work of a kernel."""

from collections.abc import Mapping
from math import prod

import numpy as np

from isamap.diagnostics import ArgumentsError, LimitError, fail
from isamap.ir.index import Index, Name
from isamap.ir.nodes import Kernel, Statement
from isamap.lower.capacity import ADDRESSABLE
from isamap.lower.nodes import LoweredKernel

# Sizes at which a kernel with symbolic extents is run: no multiple of any tile first.
_TRIED = (37, 64, 100, 7, 1)
Symbols = Mapping[str, int]

TYPICAL_SIZE = 256
"""What an extent without a value is taken for in estimates."""


def all_sizes(kernel: Kernel, symbols: Symbols) -> dict[str, int]:
    """Return the value of every extent, the known ones included."""
    known = {e.name: e.value for e in kernel.extents if e.value is not None}
    return {**known, **symbols}


def check_addressable(kernel: Kernel) -> None:
    """Raise LimitError if what callers give and get is more than a program can address.

    Extents without a value are taken for 1.
    """
    values = {**dict.fromkeys(kernel.symbols, 1), **all_sizes(kernel, {})}
    given = [b for b in kernel.buffers if b.role in ("in", "const", "out", "inout")]
    held = sum(prod(int(n.evaluate(values)) for n in b.shape) * b.dtype.bytes for b in given)
    if held > ADDRESSABLE:
        text = f"the arrays of {kernel.name} take {held} bytes, more than any program can address"
        raise LimitError(fail("E753", text, kernel.span))


def shape_of(kernel: Kernel, buffer: str, symbols: Symbols) -> tuple[int, ...]:
    """Return a buffer's shape in elements."""
    values = all_sizes(kernel, symbols)
    return tuple(int(extent.evaluate(values)) for extent in kernel.buffer(buffer).shape)


def variable_extents(kernel: Kernel, statement: Statement, symbols: Symbols) -> dict[str, int]:
    """Return the number of values that each variable of a statement takes."""
    values = all_sizes(kernel, symbols)
    return {v.name: max(0, int(v.extent.evaluate(values))) for v in statement.variables}


def iterations(kernel: Kernel, symbols: Symbols) -> int:
    """Return the iterations of all statements: the multiply-accumulates of a product's sum."""
    return sum(prod(variable_extents(kernel, s, symbols).values()) for s in kernel.statements)


def array_bytes(kernel: Kernel, symbols: Symbols) -> int:
    """Return the bytes of all buffers of a kernel."""
    return sum(
        prod(shape_of(kernel, b.name, symbols)) * b.dtype.numpy.itemsize for b in kernel.buffers
    )


def sample_symbols(kernel: Kernel, lowered: LoweredKernel) -> dict[str, int] | None:
    """Return sizes for the extents without a value at which a result can be tried.

    Every buffer has elements and every requirement of the lowered kernel holds; None when none of
    a few sizes does that.
    """
    for size in _TRIED:
        symbols = dict.fromkeys(kernel.symbols, size)
        values = all_sizes(kernel, symbols)
        shapes = [shape_of(kernel, b.name, symbols) for b in kernel.buffers]
        required = all(index.evaluate(values) >= 0 for index in lowered.requires)
        if required and all(min(shape, default=1) >= 1 for shape in shapes):
            return symbols
    return None


def infer_symbols(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return the values of symbolic extents that the shapes of given arrays determine.

    Raises ArgumentsError when two shapes disagree or a symbol is left without a value.
    """
    found: dict[str, tuple[int, str]] = {}
    for buffer in kernel.buffers:
        if buffer.name not in arrays or arrays[buffer.name].ndim != len(buffer.shape):
            continue
        for axis, (extent, size) in enumerate(
            zip(buffer.shape, arrays[buffer.name].shape, strict=True)
        ):
            solved = _solve(extent.substitute(all_sizes(kernel, {})), size)
            if solved is None:
                continue
            name, value = solved
            place = f"dimension {axis} of {buffer.name}"
            earlier = found.setdefault(name, (value, place))
            if earlier[0] != value:
                text = f"{name} is {earlier[0]} by {earlier[1]} but {value} by {place}"
                raise ArgumentsError(fail("E711", text))
    if missing := [name for name in kernel.symbols if name not in found]:
        text = f"extent {missing[0]} of kernel '{kernel.name}' has no value"
        raise ArgumentsError(fail("E712", text, hint=f"give one, --set {missing[0]}=64"))
    return {name: found[name][0] for name in kernel.symbols}


def _solve(extent: Index, size: int) -> tuple[str, int] | None:
    """Return the symbol and its value for which ``a*symbol + b`` is ``size``."""
    if len(extent.atoms) != 1 or not isinstance(atom := extent.atoms[0], Name):
        return None
    factor = extent.coefficient(atom.name).constant
    rest = size - extent.offset
    linear = extent == extent.coefficient(atom.name) * Index((((atom,), 1),)) + extent.offset
    if factor is None or not linear or rest % factor or rest // factor < 1:
        return None
    return atom.name, rest // factor
