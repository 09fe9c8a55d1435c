"""Arithmetic of the declared types: every operation rounds, wraps or saturates as its type does."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isamap.interp.casts import cast_function, saturate_function, wrap
from isamap.interp.exact import fma
from isamap.interp.rounding import F64, Values, carrier, constant, round_float
from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal

Function = Callable[..., Values]


def _sigmoid(x: Values) -> Values:
    # Written so that nothing overflows at either end.
    return np.asarray(np.exp(np.minimum(x, 0.0)) / (1.0 + np.exp(-np.abs(x))))


def _erf(x: Values) -> Values:
    flat = [math.erf(v) for v in np.ravel(x).tolist()]
    return np.array(flat, F64).reshape(np.shape(x))


# Correctly rounded, or exact, in float32 and in float64 alike.
_NATIVE: dict[str, Function] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "sqrt": np.sqrt,
}

# Exact: the result is one of the type's values (or an argument).
_EXACT: dict[str, Function] = {
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "round": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}

# Computed in float64, then rounded.
_TRANSCENDENTAL: dict[str, Function] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "erf": _erf,
}

_COMPARE: dict[str, Function] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}

_INTEGER: dict[str, Function] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "|": np.bitwise_or,
    "&": np.bitwise_and,
    "^": np.bitwise_xor,
    "~": np.invert,
}

_SHIFT: dict[str, Function] = {"<<": np.left_shift, ">>": np.right_shift}


def _select(condition: Values, yes: Values, no: Values) -> Values:
    return np.asarray(np.where(condition, yes, no))


# Reductions whose result does not depend on the order, so that numpy may choose it.
_ORDERLESS = frozenset({"min", "max", "|", "&", "^"})


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared types; with ``wide``, every float type computes in float64 unrounded."""

    wide: bool = False

    def carrier(self, dtype: DType) -> np.dtype[Any]:
        """Return the numpy type that holds values of a type."""
        return F64 if self.wide and dtype.is_float else carrier(dtype)

    def encode(self, array: Values, dtype: DType) -> Values:
        """Return stored elements in the carrier."""
        return array.astype(self.carrier(dtype), copy=False)

    def decode(self, array: Values, dtype: DType) -> Values:
        """Return elements as they are stored; with ``wide``, floats stay float64."""
        return array if self.wide and dtype.is_float else array.astype(dtype.numpy, copy=False)

    def constant(self, literal: Literal) -> Values:
        """Return a literal, rounded once to its own type."""
        return constant(literal).astype(self.carrier(literal.dtype), copy=False)

    def coordinate(self, values: Values) -> Values:
        """Return index values as s64."""
        return np.asarray(values, np.int64)

    def index(self, values: Values) -> Values:
        """Return integers to index with."""
        return values.astype(np.int64, copy=False)

    def operation(self, op: str, arguments: tuple[DType, ...], result: DType) -> Function:
        """Return the function that computes an operation, rounded once."""
        if op in _COMPARE:
            return _COMPARE[op]
        if op == "select":
            return _select
        if op == "cast":
            return cast_function(arguments[0], result, self.wide)
        if op == "sat":
            return saturate_function(arguments[0], result, self.wide)
        if not result.is_float:
            return integer_function(op, result)
        if self.wide:
            return _wide_function(op)
        return float_function(op, result)

    def fold(self, op: str, dtype: DType, total: Values, terms: Values) -> None:
        """Combine terms with a total in order, each step rounded."""
        function = self.operation(op, (dtype, dtype), dtype)
        if not isinstance(function, np.ufunc):
            for term in terms:
                total[...] = function(total, term)
        elif len(terms) > 1 and (op in _ORDERLESS or not dtype.is_float):
            function(total, function.reduce(terms, axis=0, dtype=total.dtype), out=total)
        elif len(terms) > 8 and total.size < 64:
            first = np.broadcast_to(total, (1, *total.shape))
            rest = np.broadcast_to(terms, (len(terms), *total.shape))
            total[...] = function.accumulate(np.concatenate([first, rest]), axis=0)[-1]
        else:
            for term in terms:
                function(total, term, out=total)

    def finish(self, op: str, dtype: DType, total: Values, terms: int) -> None:
        """Nothing is left to do: every step was rounded."""


def float_function(op: str, dtype: DType) -> Function:
    """Return a float operation whose result is rounded once to ``dtype``."""
    if op == "fma":
        return lambda a, b, c: fma(a, b, c, dtype)
    if op in _EXACT:
        return _EXACT[op]
    if op in _NATIVE and dtype.bits >= 32:
        return _NATIVE[op]
    function = _NATIVE.get(op) or _TRANSCENDENTAL[op]
    if dtype.bits == 64:
        return function

    def rounded(*arguments: Values) -> Values:
        wide = (np.asarray(a).astype(F64) for a in arguments)
        return round_float(np.asarray(function(*wide)), dtype)

    return rounded


def integer_function(op: str, dtype: DType) -> Function:
    """Return an operation on integers, which wrap, or on bool, an integer of one bit."""
    if dtype.kind == "bool":
        return _bool_function(op)
    if op in _SHIFT:
        shift, mask = _SHIFT[op], dtype.bits - 1
        function: Function = lambda a, b: shift(a, b & a.dtype.type(mask))  # noqa: E731
    else:
        function = _INTEGER[op]
    if dtype.bits != 4:
        return function
    return lambda *arguments: wrap(np.asarray(function(*arguments)), dtype)


def _bool_function(op: str) -> Function:
    if op in ("|", "&", "^", "~", "min", "max"):
        return _INTEGER[op]
    function = _INTEGER[op]

    def one_bit(*arguments: Values) -> Values:
        bits = (np.asarray(a).astype(np.uint8) for a in arguments)
        return np.asarray(function(*bits) & np.uint8(1)).astype(np.bool_)

    return one_bit


def _wide_function(op: str) -> Function:
    if op == "fma":
        return lambda a, b, c: a * b + c
    return _EXACT.get(op) or _NATIVE.get(op) or _TRANSCENDENTAL[op]
