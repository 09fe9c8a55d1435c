"""The elements of tables as arrays."""

import numpy as np

from isamap.interp.rounding import Values, constant
from isamap.ir.nodes import Buffer


def table_array(buffer: Buffer) -> Values:
    """Return what a table holds, of its shape and its type's numpy type."""
    assert buffer.contents is not None, "a table has contents"
    found = np.array([constant(literal) for literal in buffer.contents.elements])
    return found.astype(buffer.dtype.numpy).reshape(buffer.contents.shape)
