"""Whether dead elements that hold a filler still do so after what is computed of them.

Packed operands hold it behind the end of a row, so that a reduction finds nothing there that
counts.  Operations may leave it as it is: ``0 * 0`` is 0, ``max(f, f)`` is f; ``0 + 3`` is not 0.
"""

from math import isfinite

from isamap.ir import literal
from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Expr, Literal, Op

_WHOLE = ("round", "floor", "ceil", "trunc")
_ZERO_OF_ZEROS = {"+", "-", "*", "&", "|", "^", "neg", "abs", "cast", "sat", "sqrt", *_WHOLE}
"""Operations that make 0 of nothing but 0."""


def comes_through(value: Expr, filler: Literal) -> bool:
    """Return whether a value is the filler where each access in it is.

    Of a type that is not the filler's an access holds 0 if that is what the filler is.  A 0 may
    have either sign: sums do not tell them apart.
    """

    def is_filler(expr: Expr) -> bool:
        match expr:
            case Access(_, _, dtype):
                return _has(dtype, filler)
            case Literal():
                return _equal(expr, filler)
            case Op("*", (a, b)) if is_zero(filler):
                either = (is_filler(a) and _is_finite(b)) or (is_filler(b) and _is_finite(a))
                return either or (is_filler(a) and is_filler(b))
            case Op("<<" | ">>", (a, _)):
                return is_zero(filler) and is_filler(a)
            case Op("min" | "max", args):
                return all(map(is_filler, args))
            case Op(name, args):
                return is_zero(filler) and name in _ZERO_OF_ZEROS and all(map(is_filler, args))
            case _:
                return False

    return is_filler(value)


def is_zero(number: Literal) -> bool:
    """Return whether a number is 0, without a sign."""
    return number.text in ("0", "0.0", "false")


def _is_finite(expr: Expr) -> bool:
    """Return whether an expression is a number, and 0 times it is 0."""
    return isinstance(expr, Literal) and isfinite(literal.value(expr))


def _has(dtype: DType, filler: Literal) -> bool:
    return filler.dtype == dtype or is_zero(filler)


def _equal(one: Literal, other: Literal) -> bool:
    return one.text == other.text or (is_zero(one) and is_zero(other))
