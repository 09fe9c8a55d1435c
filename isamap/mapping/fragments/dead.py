"""What operands must hold in dead elements for those of a result to hold a filler.

A reduction adds what lies behind the end of a row, too: there must be nothing that counts.  Moves
bring it as it is, and operations on it often leave it as it is: ``0 * 0`` is 0, ``max(f, f)`` is f.
"""

from collections.abc import Mapping
from math import copysign, isfinite

from isamap.ir import literal
from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Expr, Literal, Op

_WHOLE = ("round", "floor", "ceil", "trunc")
_ZERO_OF_ZEROS = {"+", "-", "*", "&", "|", "^", "abs", "cast", "sat", "sqrt", *_WHOLE}
"""Operations that make 0 of nothing but 0, and of floats 0 without a sign."""


def held(filler: Literal, dtype: DType) -> Literal | None:
    """Return the same number in an operand's type, None if it is not said whether that has it."""
    if filler.dtype == dtype:
        return filler
    if is_zero(filler) and dtype.name != "bool":
        return Literal("0.0" if dtype.is_float else "0", dtype)
    return None


def comes_through(value: Expr, filler: Literal, constants: Mapping[str, Literal]) -> bool:
    """Return whether an operation's ``value`` is the filler where each of its operands is.

    ``constants`` are those of its operands that are numbers everywhere.
    """

    def is_filler(expr: Expr) -> bool:
        match expr:
            case Access(name, _, dtype):
                own = constants.get(name)
                return held(filler, dtype) is not None if own is None else _equal(own, filler)
            case Literal():
                return _equal(expr, filler)
            case Op("*", (a, b)) if is_zero(filler):
                either = (is_filler(a) and is_factor(b)) or (is_filler(b) and is_factor(a))
                return either or (is_filler(a) and is_filler(b))
            case Op("<<" | ">>", (a, _)):
                return is_zero(filler) and is_filler(a)
            case Op("neg", (a,), dtype):
                return is_zero(filler) and not dtype.is_float and is_filler(a)
            case Op("min" | "max", args):
                return all(map(is_filler, args))
            case Op(name, args):
                return is_zero(filler) and name in _ZERO_OF_ZEROS and all(map(is_filler, args))
            case _:
                return False

    def is_factor(expr: Expr) -> bool:
        """Return whether 0 times it is 0, without a sign."""
        own = constants.get(expr.buffer) if isinstance(expr, Access) else expr
        if not isinstance(own, Literal):
            return False
        number = literal.value(own)
        return not own.dtype.is_float or (isfinite(number) and copysign(1, number) > 0)

    return is_filler(value)


def is_zero(number: Literal) -> bool:
    """Return whether a number is 0, without a sign."""
    return number.text in ("0", "0.0", "false")


def _equal(one: Literal, other: Literal) -> bool:
    return one.text == other.text or (is_zero(one) and is_zero(other))
