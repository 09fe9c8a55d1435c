"""A prime field in which every operation means something: polynomials, and free functions.

Sums and products are those of the field.  An operation that is no polynomial is *some* function
that keeps only what a compiler may use of it.  ``max`` and ``min`` are associative and commutative,
with the type's least and greatest value as identity and absorbing element, and so are ``&`` and
``|``: each is a product after a change of variable, thus a polynomial after all, in which no term
can hide behind a greater one.  ``exp`` and the rest are pseudo-random functions that agree with the
real ones on small whole numbers where those are whole.  What agrees here on random residues is
equal by these laws alone, for all values, except with the probability with which random residues
meet a root.

With ``idempotent`` a term may be repeated, too: ``max`` is then the greater one in an order of the
residues that has nothing to do with their size, and a lost term shows only if it was the greatest.
With ``fractions`` a constant is the simple fraction that was rounded to it (0.16666667 is 1/6).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isamap.interp.field import MERSENNE, Field
from isamap.interp.rounding import Values
from isamap.ir.dtype import DType
from isamap.ir.literal import meant
from isamap.ir.nodes import Literal

_P = np.uint64(MERSENNE)
_SMALL = 1 << 32
_KEEPING = frozenset({"round", "floor", "ceil", "trunc", "sat"})
"""Operations that leave whole numbers within their type's range alone."""
_ODD = frozenset({"tanh", "sqrt", "erf"})
"""Other operations that leave 0 alone."""
_VANISHING = frozenset({"exp", "sigmoid"})
"""Operations that are 0 of the least infinity."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class Free(Field):
    """Residues modulo 2**61 - 1 with a function for every operation."""

    prime: int = MERSENNE
    idempotent: bool = False
    fractions: bool = False

    def constant(self, literal: Literal) -> Values:
        """Return a literal modulo the prime; truth values are 0 and 1, infinities two residues."""
        match literal.text:
            case "true" | "false":
                return np.array(literal.text == "true", np.uint64)
            case "inf" | "-inf" | "nan":
                return np.array(_SPECIAL[literal.text], np.uint64)
            case _ if self.fractions:
                return self._fraction(meant(literal))
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
                ends = (low, high) if op in ("max", "min") else (0, _ones(result))
                if self.idempotent or result.kind == "bool":
                    return self._choice(op, *ends)
                return self._product(op, *ends)
            case "^":
                if result.kind == "bool":
                    return lambda a, b: np.asarray(a != b, np.uint64)
                return self._power_sum
            case "~":
                return self._negated(result)
            case "select":
                return lambda c, a, b: np.asarray(np.where(c != 0, a, b))
            case "<<" | ">>" | "//" | "%":
                return lambda a, b: self._of_zero(op, a, b)
            case "abs":
                return lambda x: self._absolute(x)
            case "+" | "-" if result.is_float:
                return self._sum(op)
            case "neg" if result.is_float:
                return self._opposite
            case "/":
                divide = Field.operation(self, op, arguments, result)
                return lambda a, b: self._over_infinity(divide, a, b)
            case "+" | "-" | "*" | "neg" | "fma":
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
        if op in _VANISHING:
            return np.asarray(np.where(x == np.uint64(_SPECIAL["-inf"]), _ZERO, hashed))
        return hashed

    def _of_zero(self, op: str, a: Values, b: Values) -> Values:
        """Return shifts and divisions of integers: 0 where 0 is shifted or divided, or divides."""
        nothing = a == 0 if op in ("<<", ">>") else (a == 0) | (b == 0)
        return np.asarray(np.where(nothing, _ZERO, self._hash(op, a, b)))

    def _over_infinity(self, divide: Callable[..., Values], a: Values, b: Values) -> Values:
        """Return quotients, 0 where a finite number is divided by an infinity.

        Zero by something is not zero, for that may be zero, too: only by a constant it is.
        """
        infinities = [np.uint64(_SPECIAL[name]) for name in ("-inf", "inf")]
        vanishes = np.isin(b, infinities) & ~np.isin(a, infinities)
        a, b = np.broadcast_arrays(a, b)
        is_constant = (b != 0) & (np.minimum(b, self._negate(b)) < _SMALL)
        is_open = (a == 0) & ~is_constant & ~vanishes
        found = np.where(is_open, self._hash("0/", b), divide(a, b))
        return np.asarray(np.where(vanishes, _ZERO, found))

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

    def _choice(self, op: str, low: int, high: int) -> Callable[..., Values]:
        """Return the greater or the lesser of two in an order with these ends."""
        greater, tag = op in ("max", "|"), "order" if op in ("max", "min") else "bits"

        def choose(a: Values, b: Values) -> Values:
            first, second = self._key(a, low, high, tag), self._key(b, low, high, tag)
            return np.asarray(np.where(first >= second if greater else first <= second, a, b))

        return choose

    def _product(self, op: str, low: int, high: int) -> Callable[..., Values]:
        """Return ``g'(g(a) g(b))`` where g takes the identity to 1 and what absorbs to 0."""
        identity, absorbing = (low, high) if op in ("max", "|") else (high, low)
        width = np.asarray((identity - absorbing) % MERSENNE, np.uint64)
        scale = np.asarray(pow(int(width), -1, MERSENNE), np.uint64)
        origin = np.asarray(absorbing, np.uint64)
        two, one = np.asarray(2, np.uint64), np.asarray(1, np.uint64)

        def there(x: Values) -> Values:
            u = self._multiply(self._add(x, self._negate(origin)), scale)
            if op in ("max", "min"):
                return u
            # Another variable for bits, so that | is not max on unsigned numbers.
            return self._multiply(u, self._invert(self._add(two, self._negate(u))))

        def back(w: Values) -> Values:
            if op not in ("max", "min"):
                w = self._multiply(self._multiply(two, w), self._invert(self._add(one, w)))
            return self._add(self._multiply(w, width), origin)

        return lambda a, b: back(self._multiply(there(np.asarray(a)), there(np.asarray(b))))

    def _sum(self, op: str) -> Callable[..., Values]:
        """Return sums of floats, in which infinities absorb: max-plus kernels count on that."""

        def add(a: Values, b: Values) -> Values:
            b = self._opposite(b) if op == "-" else b
            total = self._add(a, b)
            for infinity in ("inf", "-inf"):
                residue = np.uint64(_SPECIAL[infinity])
                total = np.where((a == residue) | (b == residue), residue, total)
            return np.asarray(total)

        return add

    def _opposite(self, x: Values) -> Values:
        low, high = (np.uint64(_SPECIAL[name]) for name in ("-inf", "inf"))
        return np.asarray(np.where(x == low, high, np.where(x == high, low, self._negate(x))))

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


_ZERO = np.uint64(0)
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
