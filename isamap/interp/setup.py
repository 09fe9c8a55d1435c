"""What has to exist before the first statement runs: boxes, cells, margins of padding."""

from collections.abc import Mapping
from math import prod

import numpy as np

from isamap.interp.arguments import shape_of
from isamap.interp.arithmetic import Arithmetic
from isamap.interp.cells import Box, Cell, linear
from isamap.interp.rounding import Values
from isamap.interp.tables import carried
from isamap.ir.nodes import Buffer, Kernel, Statement
from isamap.ir.statements import accesses, identity


def box_of(statement: Statement, symbols: Mapping[str, int]) -> Box:
    """Return a statement's variables with their ranges in numbers."""
    return tuple(
        (v.name, int(v.lower.evaluate(symbols)), int(v.extent.evaluate(symbols)))
        for v in statement.variables
    )


def split(statement: Statement, box: Box) -> tuple[Box, Box]:
    """Return the variables that the target uses, and the others, over which it reduces."""
    used = frozenset().union(*(index.names for index in statement.target.indices))
    return tuple(v for v in box if v[0] in used), tuple(v for v in box if v[0] not in used)


def first_writer(statements: tuple[Statement, ...], buffer: str) -> Statement | None:
    """Return the first statement that writes a buffer."""
    return next((s for s in statements if s.target.buffer == buffer), None)


def make_cells(
    kernel: Kernel,
    statements: tuple[Statement, ...],
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int],
    arithmetic: Arithmetic,
) -> dict[str, Cell]:
    """Return every buffer as it is before the first statement."""
    margins = _margins(kernel, statements, symbols)
    cells = {}
    for buffer in kernel.buffers:
        if buffer.role in ("in", "const", "table", "inout"):
            if buffer.contents is not None:
                content = carried(buffer.contents, arithmetic).reshape(buffer.contents.shape)
            else:
                content = arithmetic.encode(np.asarray(arrays[buffer.name]), buffer.dtype)
            writer = first_writer(statements, buffer.name)
            cells[buffer.name] = _given(buffer, content, margins, arithmetic, writer is not None)
        else:
            cells[buffer.name] = _computed(buffer, statements, symbols, margins, arithmetic)
    return cells


_Margins = dict[str, tuple[tuple[int, int], ...]]


def _margins(
    kernel: Kernel, statements: tuple[Statement, ...], symbols: Mapping[str, int]
) -> _Margins:
    """Return how far affine accesses reach outside each padded buffer, where that is not far."""
    reach: _Margins = {}
    padded = {b.name: shape_of(b, symbols) for b in kernel.buffers if b.pad is not None}
    for statement in statements:
        box = box_of(statement, symbols)
        for access in accesses(statement.value):
            forms = [linear(index, symbols) for index in access.indices]
            if access.buffer not in padded or any(n <= 0 for _, _, n in box):
                continue
            shape = padded[access.buffer]
            old = reach.get(access.buffer, ((0, 0),) * len(shape))
            ends = [f.ends(box) if f is not None else (0, 0) for f in forms]
            new = tuple(
                (max(low, -a), max(high, b - n + 1))
                for (low, high), (a, b), n in zip(old, ends, shape, strict=True)
            )
            grown = prod(low + n + high for (low, high), n in zip(new, shape, strict=True))
            if grown <= 4 * prod(shape) + (1 << 16):
                reach[access.buffer] = new
    return reach


def _given(
    buffer: Buffer, content: Values, margins: _Margins, arithmetic: Arithmetic, changes: bool
) -> Cell:
    around = margins.get(buffer.name, ((0, 0),) * content.ndim)
    pad = arithmetic.constant(buffer.pad) if buffer.pad is not None else None
    low = tuple(m for m, _ in around)
    if any(map(any, around)):
        assert pad is not None
        grown = tuple(a + n + b for (a, b), n in zip(around, content.shape, strict=True))
        cell = Cell(buffer, content.shape, np.full(grown, pad, content.dtype), low, pad)
        cell.inner[...] = content
        return cell
    data = np.array(content, order="C") if changes else np.ascontiguousarray(content)
    return Cell(buffer, content.shape, data.reshape(content.shape), low, pad)


def _computed(
    buffer: Buffer,
    statements: tuple[Statement, ...],
    symbols: Mapping[str, int],
    margins: _Margins,
    arithmetic: Arithmetic,
) -> Cell:
    shape = shape_of(buffer, symbols)
    writer = first_writer(statements, buffer.name)
    content = np.zeros(shape, arithmetic.carrier(buffer.dtype))
    reduces = writer is not None and writer.reduction != "="
    if writer is not None and reduces:
        content[...] = arithmetic.constant(identity(writer.reduction, buffer.dtype))
    cell = _given(buffer, content, margins, arithmetic, changes=False)
    if prod(shape) and not (reduces and buffer.role == "local"):
        cell.written = np.zeros(shape, np.bool_)
    return cell
