"""Arithmetic on values with error bounds: how far any legitimate evaluation may be off.

A float is carried as ``v``, its value in float64; ``e``, a bound of |computed - exact| for every
computation that rounds each operation to its type, in whatever order sums are taken, with or
without fused multiply-adds; and ``m``, the sum of the magnitudes of the terms of a sum that may
still be reassociated; and ``n``, whether no computation makes it, or a term of such a sum,
negative.  Integers are carried exactly, with an ``e`` that is not 0 only where they come from
floats.  A bound is infinite where there is none: near a pole, at an overflow that only some orders
meet.  So an infinity or NaN with a finite bound is what every computation gives: a finite number
of which nothing is known but its error does not change it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from isamap.interp.declared import Declared
from isamap.interp.rounding import F64, Values, carrier, largest, smallest_normal
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.nodes import Literal, Permissions

Function = Callable[..., Values]

Known: TypeAlias = Values | bool
"""Where something is known to be so."""

_WIDE = Declared(wide=True)

_MOST_EXPONENT = DTYPES["f64"].max_exponent

# Monotone, and rounded as the comment says, in units of the roundoff.
_MONOTONE: dict[str, int] = {
    "round": 0,
    "floor": 0,
    "ceil": 0,
    "trunc": 0,
    "sqrt": 1,
    # An implementation may be off by two units in the last place.
    "exp": 4,
    "log": 4,
    "tanh": 4,
    "rsqrt": 4,
    "sigmoid": 4,
    "erf": 4,
}

_APPROXIMATED = frozenset({"/", "sqrt", "exp", "log", "tanh", "rsqrt", "sigmoid", "erf"})

_POSITIVE = frozenset({"sqrt", "exp", "rsqrt", "sigmoid"})
"""Functions that are never negative."""

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


@dataclass(frozen=True, slots=True)
class Bounded:
    """Values with error bounds, under the permissions of a kernel.

    ``approximate`` lets quotients and transcendental functions have that relative error besides;
    ``distribute`` lets products of sums be sums of products.  ``products`` is a relative error that
    products of floats may have besides their rounding.  Sums and products are off by so many
    ``roundoffs`` of their type, 1 where they round to the nearest.
    """

    permissions: Permissions
    products: float = 0.0
    roundoffs: int = 1

    def carrier(self, dtype: DType) -> np.dtype[Any]:
        """Return a structured type."""
        if dtype.is_float:
            return np.dtype([("v", F64), ("e", F64), ("m", F64), ("n", np.bool_)])
        return np.dtype([("v", carrier(dtype)), ("e", F64)])

    def encode(self, array: Values, dtype: DType) -> Values:
        """Return stored elements, which are exact."""
        return self._exact(_WIDE.encode(array, dtype), dtype)

    def decode(self, array: Values, dtype: DType) -> Values:
        """Return the values with their bounds."""
        return array

    def constant(self, literal: Literal) -> Values:
        """Return a literal, which is exact."""
        return self._exact(_WIDE.constant(literal), literal.dtype)

    def coordinate(self, values: Values) -> Values:
        """Return index values, which are exact."""
        found = np.zeros(np.shape(values), [("v", np.int64), ("e", F64)])
        found["v"] = values
        return found

    def index(self, values: Values) -> Values:
        """Return integers to index with."""
        return np.asarray(values["v"], np.int64)

    def operation(self, op: str, arguments: tuple[DType, ...], result: DType) -> Function:
        """Return an operation on values with bounds."""
        plain = _WIDE.operation(op, arguments, result)
        if op == "select":
            return lambda c, a, b: self._select(c, a, b, result)
        if op in _COMPARISONS:
            return lambda a, b: self._compare(plain, a, b, result)
        if op in ("cast", "sat"):
            return self._conversion(plain, arguments[0], result)
        if not result.is_float:
            return lambda *x: self._integer(op, plain, x, result)
        match op:
            case "+" | "-":
                return lambda a, b: self._sum(plain, a, b, result, op == "+")
            case "*":
                return lambda a, b: self._product(a, b, result)
            case "fma":
                return lambda a, b, c: self._sum(
                    np.add, self._product(a, b, result), c, result, adds=True
                )
            case "/":
                return lambda a, b: self._quotient(a, b, result)
            case "neg" | "abs":
                return lambda a: self._make(plain(a["v"]), a["e"], a["m"], result, op == "abs")
            case "min" | "max":
                return lambda a, b: self._extreme(plain, a, b, result, op == "max")
            case _:
                return lambda a: self._monotone(op, plain, a, result)

    def fold(self, op: str, dtype: DType, total: Values, terms: Values) -> None:
        """Combine terms with a total; the roundings of a sum are left to :meth:`finish`."""
        if op == "+" and dtype.is_float:
            for part in ("v", "e", "m"):
                total[part] += terms[part].sum(axis=0)
            total["n"] &= terms["n"].all(axis=0)
            return
        function = self.operation(op, (dtype, dtype), dtype)
        for term in terms:
            total[...] = function(total, term)

    def finish(self, op: str, dtype: DType, total: Values, terms: int) -> None:
        """Add the roundings of a sum: (n - 1) u sum|terms| in any order (Jeannerod and Rump)."""
        if op == "+" and dtype.is_float:
            size = total["m"] + total["e"]
            # One more term for what the sum starts from.
            rounding = terms * (self._step(dtype) * size + _tiny(dtype))
            # What is not finite here came with some term: float64 holds sums of narrower numbers.
            given = dtype.max_exponent < _MOST_EXPONENT
            v, e, n = total["v"], total["e"], total["n"]
            total[...] = self._rounded(v, e, rounding, size, dtype, n, given)
            total["m"] = np.abs(total["v"]) + total["e"]

    # --- construction -----------------------------------------------------------------------------
    def _exact(self, values: Values, dtype: DType) -> Values:
        return self._value(values, np.zeros(np.shape(values)), dtype)

    def _value(self, v: Values, e: Values, dtype: DType, n: Known = False) -> Values:
        """Return values that no reassociation splits any more."""
        if not dtype.is_float:
            return self._make(v, e, v, dtype)
        return self._make(v, e, np.abs(v) + e, dtype, n | np.asarray(v - e >= 0))

    def _make(self, v: Values, e: Values, m: Values, dtype: DType, n: Known = False) -> Values:
        found = np.empty(np.broadcast_shapes(np.shape(v), np.shape(e)), self.carrier(dtype))
        found["v"] = v
        found["e"] = np.where(np.isnan(e), np.inf, e)
        if dtype.is_float:
            found["m"] = m
            found["n"] = n
        return found

    def _rounded(
        self,
        v: Values,
        e: Values,
        rounding: Values,
        size: Values,
        dtype: DType,
        n: Known = False,
        given: Known = False,
    ) -> Values:
        """Return values rounded to a type; ``size`` bounds every intermediate result.

        ``given`` says where a value that is not finite is so because of an argument that is not.
        """
        # Infinities and NaN that come from exact arguments are what every evaluation gives, and so
        # are those that come from arguments of which every evaluation gives them.
        special = ~np.isfinite(v) & ((e == 0) | (given & np.isfinite(e)))
        bound = np.where(special, 0.0, e + rounding)
        top = largest(dtype)
        overflow = (size + bound > top) & ~special
        certain = overflow & (np.abs(v) - bound > top * 1.25)
        bound = np.where(overflow, np.where(certain, 0.0, np.inf), bound)
        beyond = np.copysign(np.nan if dtype.name == "f8e4m3" else np.inf, v)
        return self._make(np.where(certain, beyond, v), bound, size, dtype, n)

    # --- operations -------------------------------------------------------------------------------
    def _step(self, dtype: DType) -> float:
        """Return the relative error of a sum or product."""
        return self.roundoffs * float(dtype.epsilon)

    def _unit(self, op: str, dtype: DType) -> float:
        allowed = self.permissions.approximate
        more = float(allowed) if allowed is not None and op in _APPROXIMATED else 0.0
        return float(dtype.epsilon) + more

    def _sum(self, plain: Function, a: Values, b: Values, dtype: DType, adds: bool) -> Values:
        v, e = plain(a["v"], b["v"]), a["e"] + b["e"]
        size = a["m"] + b["m"] if self.permissions.reassociate else np.abs(v)
        given = ~(np.isfinite(a["v"]) & np.isfinite(b["v"]))
        # A difference may be reassociated, and then be negative though it is not as it stands.
        n = a["n"] & b["n"] & adds
        return self._rounded(v, e, self._step(dtype) * (size + e), size + e, dtype, n, given)

    def _extreme(self, plain: Function, a: Values, b: Values, dtype: DType, most: bool) -> Values:
        """Return maxima or minima, of which the one is certain where the errors leave no doubt."""
        v, e = plain(a["v"], b["v"]), np.maximum(a["e"], b["e"])
        above = a["v"] - a["e"] > b["v"] + b["e"]
        below = a["v"] + a["e"] < b["v"] - b["e"]
        first, second = (above, below) if most else (below, above)
        e = np.where(first, a["e"], np.where(second, b["e"], e))
        n = a["n"] | b["n"] if most else a["n"] & b["n"]
        return self._value(v, e, dtype, n)

    def _product(self, a: Values, b: Values, dtype: DType) -> Values:
        v = a["v"] * b["v"]
        x, y = np.abs(a["v"]), np.abs(b["v"])
        e = _times(x, b["e"]) + _times(y, a["e"]) + _times(a["e"], b["e"])
        size = _times(a["m"], b["m"]) if self.permissions.distribute else np.abs(v)
        rounding = (self._step(dtype) + self.products) * (size + e) + _tiny(dtype)
        # An error that is no rounding may have any sign.
        n = a["n"] & b["n"] & (self.products == 0)
        exact = self._rounded(v, e, rounding, np.abs(v) + e, dtype, n)
        exact["m"] = np.maximum(size, exact["m"])
        return exact

    def _quotient(self, a: Values, b: Values, dtype: DType) -> Values:
        v = a["v"] / b["v"]
        below = np.abs(b["v"]) - b["e"]
        known = (below > 0) | (b["e"] == 0)
        top = a["e"] + _times(np.abs(v), b["e"])
        e = np.where(known, np.where(top == 0, 0.0, top / np.abs(below)), np.inf)
        rounding = self._unit("/", dtype) * (np.abs(v) + e) + _tiny(dtype)
        return self._rounded(v, e, rounding, np.abs(v) + e, dtype, a["n"] & b["n"])

    def _monotone(self, op: str, plain: Function, a: Values, dtype: DType) -> Values:
        v = plain(a["v"])
        e = _spread(plain, a["v"], a["e"], v, a["n"])
        units = _MONOTONE[op]
        unit = units * float(dtype.epsilon) + self._unit(op, dtype) - float(dtype.epsilon)
        rounding = unit * (np.abs(v) + e) + (_tiny(dtype) if units else 0.0)
        n = (op in _POSITIVE) | (a["n"] & (op != "log"))
        return self._rounded(v, e, rounding, np.abs(v) + e, dtype, n)

    def _select(self, c: Values, a: Values, b: Values, dtype: DType) -> Values:
        v = np.where(c["v"], a["v"], b["v"])
        gap = np.abs(_real(a["v"]) - _real(b["v"]))
        either = np.where(a["v"] == b["v"], 0.0, gap) + np.maximum(a["e"], b["e"])
        e = np.where(c["e"] == 0, np.where(c["v"], a["e"], b["e"]), either)
        if not dtype.is_float:
            return self._value(v, e, dtype)
        n = np.where(c["e"] == 0, np.where(c["v"], a["n"], b["n"]), a["n"] & b["n"])
        return self._value(v, e, dtype, n)

    def _compare(self, plain: Function, a: Values, b: Values, dtype: DType) -> Values:
        e = a["e"] + b["e"]
        near = (e > 0) & ~(np.abs(_real(a["v"]) - _real(b["v"])) > e)
        return self._value(plain(a["v"], b["v"]), near.astype(F64), dtype)

    def _conversion(self, plain: Function, source: DType, target: DType) -> Function:
        if source.is_float and target.is_float:
            narrows = (
                source.precision > target.precision or source.max_exponent > target.max_exponent
            )
            unit = float(target.epsilon) if narrows else 0.0
            tiny = _tiny(target) if narrows else 0.0

            def convert(a: Values) -> Values:
                v = plain(a["v"])
                size = np.abs(v) + a["e"]
                given = ~np.isfinite(a["v"])
                return self._rounded(v, a["e"], unit * size + tiny, size, target, a["n"], given)

            return convert
        if target.is_float:
            unit = float(target.epsilon) if source.bits > target.precision else 0.0

            def from_integer(a: Values) -> Values:
                v = plain(a["v"])
                size = np.abs(v) + a["e"]
                return self._rounded(v, a["e"], unit * size, size, target)

            return from_integer
        if source.is_float:
            return lambda a: self._value(
                v := plain(a["v"]), _spread(plain, a["v"], a["e"], v, a["n"]), target
            )
        return lambda a: self._integer("cast", plain, (a,), target)

    def _integer(
        self, op: str, plain: Function, arguments: tuple[Values, ...], dtype: DType
    ) -> Values:
        v = plain(*(a["v"] for a in arguments))
        errors = [a["e"] for a in arguments]
        uncertain = np.asarray(sum(errors)) > 0
        if not uncertain.any():
            return self._value(v, np.zeros(np.shape(v)), dtype)
        whole = 2.0**dtype.bits if dtype.kind != "bool" else 1.0
        reals = [_real(a["v"]) for a in arguments]
        e, real = _integer_error(op, reals, errors, whole)
        inside = (real - e >= dtype.lowest) & (real + e <= dtype.highest)
        return self._value(v, np.where(uncertain, np.where(inside, e, whole), 0.0), dtype)


def _integer_error(
    op: str, reals: list[Values], errors: list[Values], whole: float
) -> tuple[Values, Values]:
    """Return the error of an integer operation and its result without wrap-around."""
    match op, reals, errors:
        case "+", [a, b], [x, y]:
            return x + y, a + b
        case "-", [a, b], [x, y]:
            return x + y, a - b
        case "*", [a, b], [x, y]:
            return _times(np.abs(a), y) + _times(np.abs(b), x) + x * y, a * b
        case "min" | "max", [a, b], [x, y]:
            return np.maximum(x, y), np.minimum(a, b) if op == "min" else np.maximum(a, b)
        case "neg", [a], [x]:
            return x, -a
        case "abs", [a], [x]:
            return x, np.abs(a)
        case (("cast" | "sat"), [a], [x]):
            return x, a
        case _:
            return np.full(np.shape(errors[0]), whole), reals[0]


def _spread(plain: Function, v: Values, e: Values, middle: Values, n: Values) -> Values:
    """Return how far a monotone function moves when its argument moves by at most ``e``.

    An argument that is not negative (``n``) moves no farther down than to 0: the root of one that
    may be 0 is off by about the root of its error, and that of one that may be negative by
    anything, for it may be NaN.
    """
    low = np.where(n, np.maximum(v - e, 0.0), v - e)
    ends = (np.abs(_real(plain(x)) - _real(middle)) for x in (low, v + e))
    return np.asarray(np.where(e == 0, 0.0, np.maximum(*ends)))


def _times(a: Values, b: Values) -> Values:
    """Return a product in which nothing times infinity is nothing."""
    return np.asarray(np.where((a == 0) | (b == 0), 0.0, a * b))


def _real(x: Values) -> Values:
    return np.asarray(x).astype(F64)


def _tiny(dtype: DType) -> float:
    """Return the error of an operation whose result is tiny: hardware may flush it to zero.

    Units for f16 and f8 do not flush, and their normal numbers are not tiny.
    """
    if dtype.max_exponent >= 127:
        return smallest_normal(dtype)
    return smallest_normal(dtype) * 2.0 ** (1 - dtype.precision)
