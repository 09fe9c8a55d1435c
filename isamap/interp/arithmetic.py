"""The arithmetic in which a kernel is interpreted: what a value is, and what operations give.

The interpreter knows loops and accesses; everything about numbers is behind :class:`Arithmetic`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from isamap.interp.declared import Declared
from isamap.interp.field import Field
from isamap.interp.free import Free
from isamap.interp.rounding import Values
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal


class Arithmetic(Protocol):
    """Numbers of one kind.

    Values are numpy arrays of a *carrier* type, which may differ from the type of stored elements.
    ``op`` is an operation of :data:`isamap.ir.operations.OPERATIONS`.
    """

    def carrier(self, dtype: DType) -> np.dtype[Any]:
        """Return the numpy type that holds values of a type."""
        ...

    def encode(self, array: Values, dtype: DType) -> Values:
        """Return stored elements in the carrier; the same array where nothing changes."""
        ...

    def decode(self, array: Values, dtype: DType) -> Values:
        """Return carried values as they are stored and given to the caller."""
        ...

    def constant(self, literal: Literal) -> Values:
        """Return a literal's value, 0-dimensional."""
        ...

    def coordinate(self, values: Values) -> Values:
        """Return the values (int64) of an index expression used as data."""
        ...

    def index(self, values: Values) -> Values:
        """Return carried integers as numpy integers, to index with."""
        ...

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that computes an operation on broadcastable arrays."""
        ...

    def fold(self, op: str, dtype: DType, total: Values, terms: Values) -> None:
        """Combine ``terms[0]``, ``terms[1]``, ... with ``total`` in place, in this order."""
        ...

    def finish(self, op: str, dtype: DType, total: Values, terms: int) -> None:
        """End the reduction of ``terms`` terms into ``total``, in place."""
        ...


def declared() -> Arithmetic:
    """Return the exact arithmetic of the declared types: the meaning of a kernel."""
    return Declared()


def float64() -> Arithmetic:
    """Return arithmetic whose floats are all float64; integers are as declared."""
    return Declared(wide=True)


def free(idempotent: bool = False, fractions: bool = False) -> Arithmetic:
    """Return residues modulo 2**61 - 1 with a function for every operation.

    With ``idempotent``, ``max``, ``min`` and the bit operations do not change by repeated terms;
    with ``fractions`` constants are the simple fractions that they were rounded from.
    """
    return Free(idempotent=idempotent, fractions=fractions)


def field(prime: int = (1 << 61) - 1) -> Arithmetic:
    """Return integers modulo a prime (2**61 - 1, or one below 2**32).

    Only sums, differences, products, negations and casts are defined, and ``/`` by inversion.
    """
    return Field(prime)
