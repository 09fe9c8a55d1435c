"""Symbols and arrays given with a kernel: found, checked, told apart."""

from collections.abc import Mapping

import numpy as np

from isamap.diagnostics import ArgumentsError, Diagnostic, fail
from isamap.interp.rounding import Values, literal_value
from isamap.ir.index import Name
from isamap.ir.nodes import Buffer, Kernel


def bind_symbols(
    kernel: Kernel, symbols: Mapping[str, int], arrays: Mapping[str, Values] | None = None
) -> dict[str, int]:
    """Return a number for every extent; those not given are taken from the arrays' shapes."""
    values = {e.name: e.value for e in kernel.extents if e.value is not None}
    values |= {name: int(value) for name, value in symbols.items() if name in kernel.symbols}
    for buffer in kernel.buffers:
        array = (arrays or {}).get(buffer.name)
        if array is None or array.ndim != len(buffer.shape):
            continue
        for extent, size in zip(buffer.shape, array.shape, strict=True):
            match extent.terms:
                case (((Name(name),), 1),) if name not in values:
                    values[name] = int(size)
                case _:
                    pass
    missing = [e.name for e in kernel.extents if e.name not in values]
    if missing:
        names = ", ".join(missing)
        raise ArgumentsError(
            fail("E210", f"no value for {names}", kernel.span, f"give one: --set {missing[0]}=64")
        )
    return values


def shape_of(buffer: Buffer, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Return a buffer's shape in numbers."""
    return tuple(int(extent.evaluate(symbols)) for extent in buffer.shape)


def inputs_of(kernel: Kernel) -> tuple[Buffer, ...]:
    """Return the buffers whose content the caller gives."""
    return tuple(b for b in kernel.buffers if b.role in ("in", "const", "inout"))


def outputs_of(kernel: Kernel) -> tuple[Buffer, ...]:
    """Return the buffers whose content the caller receives."""
    return tuple(b for b in kernel.buffers if b.role in ("out", "inout"))


def check_arrays(
    kernel: Kernel, arrays: Mapping[str, Values], symbols: Mapping[str, int], exact_types: bool
) -> None:
    """Raise ArgumentsError for arrays that are missing or have a wrong shape, type or content."""
    found: list[Diagnostic] = []
    for buffer in inputs_of(kernel):
        array = arrays.get(buffer.name)
        shape = shape_of(buffer, symbols)
        if array is None:
            found.append(fail("E211", f"no array for {buffer.name}", buffer.span))
        elif array.shape != shape:
            message = f"{buffer.name} has shape {list(shape)}, the array {list(array.shape)}"
            found.append(fail("E212", message, buffer.span))
        elif exact_types and array.dtype != buffer.dtype.numpy:
            message = f"{buffer.name} has type {buffer.dtype}, the array {array.dtype}"
            found.append(fail("E213", message, buffer.span))
        elif exact_types and (broken := _outside_range(buffer, array)):
            found.append(fail("E214", broken, buffer.span))
    if found:
        raise ArgumentsError(found)


def check_values(kernel: Kernel, arrays: Mapping[str, Values]) -> None:
    """Raise ArgumentsError for arrays with values that their buffers are said not to have."""
    given = [(b, arrays[b.name]) for b in inputs_of(kernel) if b.values and b.name in arrays]
    broken = [(b, text) for b, array in given if (text := _outside_range(b, array)) is not None]
    if broken:
        raise ArgumentsError([fail("E214", text, b.span) for b, text in broken])


def _outside_range(buffer: Buffer, array: Values) -> str | None:
    if buffer.values is None or array.size == 0:
        return None
    low, high = (float(literal_value(v)) for v in buffer.values)
    wide = array.astype(np.float64) if array.dtype.itemsize < 4 else array
    least, most = float(wide.min()), float(wide.max())
    if low <= least and most <= high:
        return None
    return f"{buffer.name} holds values {least:g} to {most:g}, declared are {low:g} to {high:g}"
