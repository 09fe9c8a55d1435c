"""A prime field in which every operation means something: polynomials, and free functions.

Sums and products are those of the field.  An operation that is no polynomial is *some* function
that keeps only what a compiler may use of it: ``max`` and ``min`` are associative, commutative and
idempotent with the type's least and greatest value as identities (an order of the residues that has
nothing to do with their size), bit operations likewise, ``exp`` and the rest are pseudo-random
functions that agree with the real ones on small whole numbers where those are whole.  What agrees
here on random residues is equal by these laws alone, for all values, except with the probability
with which random residues collide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isamap.interp.field import MERSENNE, Field
from isamap.interp.rounding import Values
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

_P = np.uint64(MERSENNE)
_SMALL = 1 << 32
_KEEPING = frozenset({"round", "floor", "ceil", "trunc", "sat"})
"""Operations that leave whole numbers within their type's range alone."""
_ODD = frozenset({"tanh", "sqrt", "erf"})
"""Other operations that leave 0 alone."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class Free(Field):
    """Residues modulo 2**61 - 1 with a function for every operation."""

    prime: int = MERSENNE

    def constant(self, literal: Literal) -> Values:
        """Return a literal modulo the prime; truth values are 0 and 1, infinities two residues."""
        match literal.text:
            case "true" | "false":
                return np.array(literal.text == "true", np.uint64)
            case "inf" | "-inf" | "nan":
                return np.array(_SPECIAL[literal.text], np.uint64)
            case _:
                return Field.constant(self, literal)

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that stands for an operation."""
        low, high = _ends(result)
        if result.kind == "bool" and (op in _COMPARISONS or op == "cast"):
            return self._truth(op, arguments[0])
        match op:
            case "max" | "min" | "&" | "|":
                return self._extremum(op, low, high, result)
            case "^":
                if result.kind == "bool":
                    return lambda a, b: np.asarray(a != b, np.uint64)
                return self._power_sum
            case "~":
                return self._negated(result)
            case "select":
                return lambda c, a, b: np.asarray(np.where(c != 0, a, b))
            case "<<" | ">>" | "//" | "%":
                return lambda a, b: self._hash(op, a, b)
            case "abs":
                return lambda x: self._absolute(x)
            case "+" | "-" | "*" | "neg" | "fma" | "/":
                return Field.operation(self, op, arguments, result)
            case "cast":
                return lambda x: x
            case _:
                tag = f"{op} {result.name}" if op == "sat" else op
                return lambda x: self._unary(tag, op, x, result)

    # --- functions ------------------------------------------------------------------------------
    def _hash(self, tag: str, *values: Values) -> Values:
        """Return pseudo-random residues, a function of a name and of values."""
        total = np.asarray(
            sum(ord(c) * 0x9E3779B1 ** (n + 1) for n, c in enumerate(tag)) % MERSENNE, np.uint64
        )
        state: Values = total
        for value in values:
            state = self._multiply(self._add(state, np.asarray(value)), _MIXER)
            state = self._add(self._multiply(state, state), total)
            state = self._multiply(self._add(state, _MIXER), state)
        return state

    def _unary(self, tag: str, op: str, x: Values, dtype: DType) -> Values:
        hashed = self._hash(tag, x)
        if op in _KEEPING:
            signed = np.where(
                x > _P // np.uint64(2), -(_P - x).astype(np.int64), x.astype(np.int64)
            )
            low = max(dtype.lowest, -_SMALL) if dtype.is_integer else -_SMALL
            high = min(dtype.highest, _SMALL) if dtype.is_integer else _SMALL
            return np.asarray(np.where((signed >= low) & (signed <= high), x, hashed))
        if op in _ODD:
            return np.asarray(np.where(x == 0, x, hashed))
        return hashed

    def _absolute(self, x: Values) -> Values:
        """Return small numbers without sign, of others a function that is one of x and of -x."""
        negated = self._negate(x)
        smaller = np.minimum(x, negated)
        return np.asarray(np.where(smaller < _SMALL, smaller, self._hash("abs", smaller)))

    def _truth(self, op: str, dtype: DType) -> Callable[..., Values]:
        """Return comparisons as truth values that respect swapping and negation of each other."""
        match op:
            case "cast":
                return lambda x: np.asarray(x != 0, np.uint64)
            case "==":
                return lambda a, b: np.asarray(a == b, np.uint64)
            case "!=":
                return lambda a, b: np.asarray(a != b, np.uint64)
            case "<":
                return lambda a, b: self._less(a, b, dtype)
            case ">":
                return lambda a, b: self._less(b, a, dtype)
            case "<=":
                return lambda a, b: np.uint64(1) - self._less(b, a, dtype)
            case _:
                return lambda a, b: np.uint64(1) - self._less(a, b, dtype)

    def _less(self, a: Values, b: Values, dtype: DType) -> Values:
        low, high = _ends(dtype)
        return np.asarray(self._key(a, low, high, "order") < self._key(b, low, high, "order"), _U64)

    def _key(self, x: Values, low: int, high: int, tag: str) -> Values:
        """Return where residues stand in an order with given ends."""
        inside = self._hash(tag, x) >> np.uint64(1)
        return np.asarray(
            np.where(
                x == np.uint64(low), np.uint64(0), np.where(x == np.uint64(high), _P, inside + 1)
            )
        )

    def _extremum(self, op: str, low: int, high: int, dtype: DType) -> Callable[..., Values]:
        if op in ("&", "|"):  # 0 is the least, all ones the greatest
            low, high = 0, _ones(dtype)
            tag = f"bits{op}"
        else:
            tag = "order"

        def choose(a: Values, b: Values) -> Values:
            first, second = self._key(a, low, high, tag), self._key(b, low, high, tag)
            take = first >= second if op in ("max", "|") else first <= second
            return np.asarray(np.where(take, a, b))

        return choose

    def _negated(self, dtype: DType) -> Callable[..., Values]:
        """Return ``~x`` as ``-1 - x``, in truth values ``1 - x``."""
        ones = np.asarray(np.uint64(_ones(dtype)))
        return lambda x: self._add(ones, self._negate(x))

    def _power_sum(self, a: Values, b: Values) -> Values:
        """Return an associative, commutative operation with identity 0 that is not the sum."""
        return self._power(self._add(self._power(a, 17), self._power(b, 17)), _ROOT)

    def _power(self, a: Values, exponent: int) -> Values:
        result, power = np.ones_like(np.asarray(a)), np.asarray(a)
        while exponent:
            if exponent & 1:
                result = self._multiply(result, power)
            power = self._multiply(power, power)
            exponent >>= 1
        return result


_U64: np.dtype[Any] = np.dtype(np.uint64)
_MIXER = np.asarray(0x1B873593CC9E2D51 % MERSENNE, np.uint64)
_SPECIAL = {
    "inf": 0x123456789ABCDEF,
    "-inf": MERSENNE - 0x123456789ABCDEF,
    "nan": 0xFEDCBA987654321,
}
_ROOT = pow(17, -1, MERSENNE - 1)


def _ends(dtype: DType) -> tuple[int, int]:
    """Return the residues of a type's least and greatest values."""
    if dtype.is_float:
        return _SPECIAL["-inf"], _SPECIAL["inf"]
    if dtype.kind == "bool":
        return 0, 1
    return dtype.lowest % MERSENNE, dtype.highest % MERSENNE


def _ones(dtype: DType) -> int:
    """Return the residue of the value of which all bits are ones."""
    if dtype.kind == "bool":
        return 1
    return (dtype.highest if dtype.kind == "unsigned" else -1) % MERSENNE
