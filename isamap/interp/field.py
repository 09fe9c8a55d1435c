"""Arithmetic modulo a large prime: equal values there mean equal polynomials, almost surely."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isamap.interp.rounding import Values, literal_value
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

MERSENNE = (1 << 61) - 1
_U64 = np.dtype(np.uint64)


class NotPolynomialError(ValueError):
    """An operation has no meaning modulo a prime."""


@dataclass(frozen=True, slots=True)
class Field:
    """Integers modulo ``prime``, which is 2**61 - 1 or less than 2**32; every type is held so."""

    prime: int

    def __post_init__(self) -> None:
        assert self.prime == MERSENNE or 2 < self.prime < 1 << 32

    def carrier(self, dtype: DType) -> np.dtype[Any]:
        """Return uint64, whatever the type."""
        return _U64

    def encode(self, array: Values, dtype: DType) -> Values:
        """Return numbers modulo the prime; a fraction is a quotient there.

        NotPolynomialError of an infinity and NaN, which are no numbers.
        """
        array = np.asarray(array)
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
            return np.asarray(np.mod(array, array.dtype.type(self.prime)), _U64)
        if not dtype.is_float or array.dtype.kind in "iub":
            return np.mod(array.astype(np.int64), np.int64(self.prime)).astype(_U64)
        numbers = array.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise NotPolynomialError("an infinity or NaN is no element of a field")
        significand, exponent = np.frexp(numbers)
        whole = np.ldexp(significand, 53).astype(np.int64)
        scales = exponent.astype(np.int64) - 53
        distinct, where = np.unique(scales, return_inverse=True)
        powers = np.array([pow(2, int(e), self.prime) for e in distinct], _U64)
        power = powers[where].reshape(scales.shape)
        return self._multiply(np.mod(whole, np.int64(self.prime)).astype(_U64), power)

    def decode(self, array: Values, dtype: DType) -> Values:
        """Return the residues themselves."""
        return array

    def constant(self, literal: Literal) -> Values:
        """Return a literal's exact value modulo the prime."""
        value = literal_value(literal)
        if not isinstance(value, Fraction):
            if value == 0:
                return np.array(0, _U64)
            raise NotPolynomialError(f"{literal.text} is no element of a field")
        return self._fraction(value)

    def _fraction(self, value: Fraction) -> Values:
        inverse = pow(value.denominator, -1, self.prime)
        return np.array(value.numerator * inverse % self.prime, _U64)

    def coordinate(self, values: Values) -> Values:
        """Return index values modulo the prime."""
        return np.mod(np.asarray(values, np.int64), np.int64(self.prime)).astype(_U64)

    def index(self, values: Values) -> Values:
        """Return small numbers, of either sign, to index with."""
        signed = values.astype(np.int64)
        return np.asarray(np.where(signed > self.prime // 2, signed - self.prime, signed))

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that computes an operation; NotPolynomialError if there is none."""
        match op:
            case "+":
                return self._add
            case "-":
                return lambda a, b: self._add(a, self._negate(b))
            case "*":
                return self._multiply
            case "neg":
                return self._negate
            case "fma":
                return lambda a, b, c: self._add(self._multiply(a, b), c)
            case "/":
                return lambda a, b: self._multiply(a, self._invert(b))
            case "cast":
                return lambda x: x
            case _:
                raise NotPolynomialError(f"'{op}' is not defined modulo a prime")

    def fold(self, op: str, dtype: DType, total: Values, terms: Values) -> None:
        """Combine terms with a total, in place."""
        function = self.operation(op, (dtype, dtype), dtype)
        for term in terms:
            total[...] = function(total, term)

    def finish(self, op: str, dtype: DType, total: Values, terms: int) -> None:
        """Nothing is left to do."""

    def _add(self, a: Values, b: Values) -> Values:
        total = np.add(a, b)
        return np.asarray(
            total - np.where(total >= self.prime, np.uint64(self.prime), np.uint64(0))
        )

    def _negate(self, a: Values) -> Values:
        return np.asarray(np.where(a == 0, a, np.uint64(self.prime) - a))

    def _multiply(self, a: Values, b: Values) -> Values:
        a, b = np.asarray(a), np.asarray(b)
        if self.prime != MERSENNE:
            return np.asarray(a * b % np.uint64(self.prime))
        # Halves of 30 and 31 bits; 2**62 is 2 and 2**61 is 1 modulo the prime.
        low31, low30 = np.uint64((1 << 31) - 1), np.uint64((1 << 30) - 1)
        a1, a0 = a >> np.uint64(31), a & low31
        b1, b0 = b >> np.uint64(31), b & low31
        middle = a1 * b0 + a0 * b1
        total = (a1 * b1 << np.uint64(1)) + (middle >> np.uint64(30)) + a0 * b0
        total = total + ((middle & low30) << np.uint64(31))
        total = (total & np.uint64(MERSENNE)) + (total >> np.uint64(61))
        return np.asarray(total - np.where(total >= MERSENNE, np.uint64(MERSENNE), np.uint64(0)))

    def _invert(self, a: Values) -> Values:
        """Return the inverse by Fermat's little theorem; that of 0 is 0."""
        result, power, exponent = np.ones_like(a), np.asarray(a), self.prime - 2
        while exponent:
            if exponent & 1:
                result = self._multiply(result, power)
            power = self._multiply(power, power)
            exponent >>= 1
        return result
