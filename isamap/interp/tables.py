"""The elements of tables as arrays."""

import numpy as np

from isamap.interp.arithmetic import Arithmetic
from isamap.interp.rounding import Values, constant
from isamap.ir.nodes import Buffer, Contents


def table_array(buffer: Buffer) -> Values:
    """Return what a table holds, of its shape and its type's numpy type."""
    assert buffer.contents is not None, "a table has contents"
    found = np.array([constant(literal) for literal in buffer.contents.elements])
    return found.astype(buffer.dtype.numpy).reshape(buffer.contents.shape)


def carried(contents: Contents, arithmetic: Arithmetic) -> Values:
    """Return the elements of a table as an arithmetic holds constants, 1-dimensional.

    A number means the same there, an infinity or a rounded fraction too, wherever it is written.
    """
    values = {n: arithmetic.constant(n).reshape(1) for n in dict.fromkeys(contents.elements)}
    return np.concatenate([values[literal] for literal in contents.elements])
