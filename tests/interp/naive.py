"""A second interpreter, a point at a time in plain loops: what the vectorised one is judged by."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from isamap.interp.arithmetic import declared
from isamap.interp.rounding import Values
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Literal, Op, Reduce
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import identity

EXACT = declared()


def interpret_slowly(
    kernel: Kernel, arrays: Mapping[str, Values], symbols: Mapping[str, int]
) -> dict[str, Values]:
    """Return what each computed buffer holds after the kernel."""
    values = {e.name: e.value for e in kernel.extents if e.value is not None} | dict(symbols)
    held: dict[str, Values] = {}
    for buffer in kernel.buffers:
        shape = tuple(int(n.evaluate(values)) for n in buffer.shape)
        if buffer.name in arrays:
            held[buffer.name] = EXACT.encode(arrays[buffer.name], buffer.dtype).copy()
            continue
        if buffer.contents is not None:
            elements = [EXACT.constant(literal) for literal in buffer.contents.elements]
            held[buffer.name] = np.array(elements).reshape(shape)
            continue
        held[buffer.name] = np.zeros(shape, EXACT.carrier(buffer.dtype))
        first = next(s for s in kernel.statements if s.target.buffer == buffer.name)
        if first.reduction != "=":
            held[buffer.name][...] = EXACT.constant(identity(first.reduction, buffer.dtype))
    for statement in kernel.statements:
        old = {name: array.copy() for name, array in held.items()}
        ranges = [
            range(
                int(v.lower.evaluate(values)),
                int(v.lower.evaluate(values)) + int(v.extent.evaluate(values)),
            )
            for v in statement.variables
        ]
        target, dtype = statement.target, statement.target.dtype
        for point in product(*ranges):
            names = values | {v.name: x for v, x in zip(statement.variables, point, strict=True)}
            term = _value(statement.value, kernel, old, names)
            at = tuple(_index(i, old, names) for i in target.indices)
            if statement.reduction != "=":
                op = REDUCTION_OPERATIONS[statement.reduction]
                before = held[target.buffer][at].reshape(1)
                term = EXACT.operation(op, (dtype, dtype), dtype)(before, term)
            held[target.buffer][at] = term[0]
    return {
        b.name: EXACT.decode(held[b.name], b.dtype)
        for b in kernel.buffers
        if b.role in ("out", "inout", "local")
    }


def _index(index: Any, held: Mapping[str, Values], names: Mapping[str, int]) -> int:
    return int(index.evaluate(names, lambda buffer, at: int(held[buffer][at])))


def _value(
    expr: Expr, kernel: Kernel, held: Mapping[str, Values], names: Mapping[str, int]
) -> Values:
    match expr:
        case Literal():
            return EXACT.constant(expr).reshape(1)
        case Coordinate(index, _):
            return np.array([_index(index, held, names)], np.int64)
        case Access(buffer, indices, _):
            at = tuple(_index(i, held, names) for i in indices)
            shape = held[buffer].shape
            pad = kernel.buffer(buffer).pad
            if pad is not None and any(i < 0 or i >= n for i, n in zip(at, shape, strict=True)):
                return EXACT.constant(pad).reshape(1)
            assert all(i >= 0 for i in at)
            return np.asarray(held[buffer][at]).reshape(1)
        case Op(op, args, dtype):
            function = EXACT.operation(op, tuple(a.dtype for a in args), dtype)
            return np.asarray(function(*(_value(a, kernel, held, names) for a in args)))
        case Reduce():
            raise AssertionError("no text has one")
