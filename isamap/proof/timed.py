"""Arithmetic that gives up when its time is over."""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

from isamap.interp.arithmetic import Arithmetic
from isamap.interp.rounding import Values
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal


class OutOfTimeError(Exception):
    """The time for some runs is over; nothing is known of what they would have shown."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Another arithmetic, until this process has taken ``until`` seconds: then OutOfTimeError.

    It is looked at before each operation on an array, of which none takes long.
    """

    arithmetic: Arithmetic
    until: float

    def carrier(self, dtype: DType) -> np.dtype[Any]:
        """Return the other arithmetic's type."""
        return self.arithmetic.carrier(dtype)

    def encode(self, array: Values, dtype: DType) -> Values:
        """Return stored elements in the carrier."""
        return self.arithmetic.encode(array, dtype)

    def decode(self, array: Values, dtype: DType) -> Values:
        """Return carried values as they are stored."""
        return self.arithmetic.decode(array, dtype)

    def constant(self, literal: Literal) -> Values:
        """Return a literal's value."""
        return self.arithmetic.constant(literal)

    def coordinate(self, values: Values) -> Values:
        """Return the values of an index expression used as data."""
        return self.arithmetic.coordinate(values)

    def index(self, values: Values) -> Values:
        """Return numpy integers to index with."""
        return self.arithmetic.index(values)

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that computes an operation while there is time."""
        function = self.arithmetic.operation(op, arguments, result)

        def compute(*values: Values) -> Values:
            self._look()
            return function(*values)

        return compute

    def fold(self, op: str, dtype: DType, total: Values, terms: Values) -> None:
        """Combine terms with a total, in place, while there is time."""
        self._look()
        self.arithmetic.fold(op, dtype, total, terms)

    def finish(self, op: str, dtype: DType, total: Values, terms: int) -> None:
        """End a reduction, in place."""
        self.arithmetic.finish(op, dtype, total, terms)

    def _look(self) -> None:
        if process_time() > self.until:
            raise OutOfTimeError
