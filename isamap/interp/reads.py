"""Whether indices that are read from arrays stay inside the buffers that they index."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from isamap.diagnostics import ArgumentsError, fail
from isamap.interp.rounding import Values
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.statements import accesses, bind_extents

_INPUTS = ("in", "const", "inout")


def reads_data(kernel: Kernel) -> bool:
    """Return whether some index of a kernel is read from an array."""
    return any(
        index.reads
        for statement in kernel.statements
        for access in (statement.target, *accesses(statement.value))
        for index in access.indices
    )


def check_reads(kernel: Kernel, arrays: Mapping[str, Values], symbols: Mapping[str, int]) -> None:
    """Raise ArgumentsError if an index that inputs hold leads outside a buffer without padding.

    Code that runs natively does not look: it would read or write what lies there.  Indices that the
    kernel itself computes into a buffer are not looked at.
    """
    bound = bind_extents(kernel)
    for statement in bound.statements:
        for access in (statement.target, *accesses(statement.value)):
            _check_access(bound, statement, access, arrays, symbols)


def _check_access(
    kernel: Kernel,
    statement: Statement,
    access: Access,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int],
) -> None:
    buffer = kernel.buffer(access.buffer)
    is_target = access is statement.target
    for dim, (index, extent) in enumerate(zip(access.indices, buffer.shape, strict=True)):
        if not index.reads or (buffer.pad is not None and not is_target):
            continue
        if any(kernel.buffer(r.buffer).role not in _INPUTS for r in index.reads):
            continue
        reached = np.asarray(_values(kernel, statement, index, arrays, symbols))
        size = int(extent.evaluate(symbols))
        bad = reached[(reached < 0) | (reached >= size)]
        if bad.size:
            source = index.reads[-1].buffer
            text = (
                f"{source} leads outside {access.buffer}: index {dim + 1}, {index}, becomes "
                f"{int(bad[0])}, and the extent is {size}"
            )
            raise ArgumentsError(fail("E216", text, access.span))


def _values(
    kernel: Kernel,
    statement: Statement,
    index: Index,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int],
) -> Any:
    """Return all values of an index over the statement's box."""
    used = [v for v in statement.variables if v.name in index.names]
    grids = np.ix_(
        *(int(v.lower.evaluate(symbols)) + np.arange(int(v.extent.evaluate(symbols))) for v in used)
    )
    places = {**symbols, **{v.name: grid for v, grid in zip(used, grids, strict=True)}}

    def read(buffer: str, indices: tuple[Any, ...]) -> Any:
        shape = arrays[buffer].shape
        inside = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, shape, strict=True))
        for given, kept, n in zip(indices, inside, shape, strict=True):
            if np.any(np.asarray(given) != kept):
                text = f"an index of {buffer} is outside its extent {n}"
                raise ArgumentsError(fail("E216", text, statement.target.span))
        return np.asarray(arrays[buffer])[inside].astype(np.int64)

    return index.evaluate(places, read)
