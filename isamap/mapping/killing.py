"""Constants in unused elements of input operands that make an instruction's body do nothing."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, product
from typing import TypeAlias

from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduction
from isamap.ir.statements import accesses, identity

Value: TypeAlias = Fraction | float | bool
"""A finite number, an infinity, or a truth value."""


@dataclass(frozen=True, slots=True)
class Family:
    """One constant for each operand, and the smallest sets of operands that kill with them.

    While the operands of one of ``sets`` hold their constants the body is the reduction's identity,
    whatever the others hold.
    """

    constants: tuple[tuple[str, Literal], ...]
    sets: tuple[frozenset[str], ...]


@lru_cache(maxsize=4096)
def killing_families(
    value: Expr,
    reduction: Reduction,
    fillable: tuple[str, ...],
    fixed: tuple[tuple[str, Literal], ...],
    finite: bool,
) -> tuple[Family, ...]:
    """Return the families that no other one surpasses; there is always at least one.

    ``fillable`` are the operands whose unused elements can be given a constant, ``fixed`` those
    that hold a known one everywhere.  ``finite`` says that live floats are neither infinite nor
    NaN.
    """
    known = {name: _number(literal) for name, literal in fixed}
    operands = [name for name in fillable if name not in known]
    types = {access.buffer: access.dtype for access in accesses(value)}
    neutral = None if reduction == "=" else _number(identity(reduction, value.dtype))
    families: list[Family] = []
    if neutral is None or len(operands) > 4:
        return (Family((), ()),)
    for constants in product(*(_candidates(types[name]) for name in operands)):
        chosen = dict(zip(operands, constants, strict=True))
        sets: list[frozenset[str]] = []
        for group in chain.from_iterable(
            combinations(operands, n) for n in range(1, len(operands) + 1)
        ):
            if any(s <= set(group) for s in sets):
                continue
            held = {**known, **{name: chosen[name] for name in group}}
            if _evaluate(value, held, finite) == neutral:
                sets.append(frozenset(group))
        useful = frozenset(chain.from_iterable(sets))
        literals = tuple(
            (name, literal_of(chosen[name] if name in useful else zero(types[name]), types[name]))
            for name in operands
        )
        families.append(Family(literals, tuple(sets)))
    kept: list[Family] = []
    for family in families:
        if not any(_surpasses(other, family) for other in kept):
            kept = [other for other in kept if not _surpasses(family, other)] + [family]
    return tuple(kept) or (Family((), ()),)


def zero(dtype: DType) -> Value:
    """Return the zero of a type."""
    return False if dtype.kind == "bool" else Fraction(0)


def literal_of(value: Value, dtype: DType) -> Literal:
    """Return a constant as a literal."""
    if isinstance(value, bool):
        return Literal("true" if value else "false", dtype)
    if isinstance(value, float):
        return Literal("inf" if value > 0 else "-inf", dtype)
    return Literal(f"{value}.0" if dtype.is_float else str(value), dtype)


def _surpasses(one: Family, other: Family) -> bool:
    """Return whether ``one`` kills wherever ``other`` does."""
    return all(any(s <= t for s in one.sets) for t in other.sets)


def _has_infinity(dtype: DType) -> bool:
    return dtype.is_float and dtype.name != "f8e4m3"


def _extreme(dtype: DType, sign: int) -> Value:
    """Return the type's greatest (sign 1) or least (sign -1) value."""
    if dtype.kind == "bool":
        return sign > 0
    if not dtype.is_float:
        return Fraction(dtype.highest if sign > 0 else dtype.lowest)
    if _has_infinity(dtype):
        return sign * math.inf
    return Fraction(sign * 448)  # The largest number of f8e4m3, whose all-ones pattern is NaN.


def _all_ones(dtype: DType) -> Value:
    if dtype.kind == "bool":
        return True
    return Fraction(dtype.highest if dtype.kind == "unsigned" else -1)


def _candidates(dtype: DType) -> tuple[Value, ...]:
    """Return the constants worth trying, the preferred first."""
    if dtype.kind == "bool":
        return False, True
    ends = (_extreme(dtype, -1), _extreme(dtype, 1))
    tried = (zero(dtype), Fraction(1), *ends, *(() if dtype.is_float else (_all_ones(dtype),)))
    return tuple(dict.fromkeys(tried))


def _number(literal: Literal) -> Value | None:
    match literal.text:
        case "true" | "false":
            return literal.text == "true"
        case "inf" | "-inf":
            return math.inf if literal.text == "inf" else -math.inf
        case "nan":
            return None
        case text:
            return Fraction(text)


def _evaluate(expr: Expr, held: dict[str, Value | None], finite: bool) -> Value | None:
    """Return the value that ``expr`` has whatever the operands not in ``held`` hold, or None."""
    match expr:
        case Literal():
            return _number(expr)
        case Access(buffer, _, _):
            return held.get(buffer)
        case Coordinate():
            return None
        case Op(op, args, dtype):
            values = [_evaluate(arg, held, finite) for arg in args]
            return _apply(op, values, args, dtype, finite)


def _apply(
    op: str, values: list[Value | None], args: tuple[Expr, ...], dtype: DType, finite: bool
) -> Value | None:
    match op:
        case "*":
            return _multiply(values, dtype, finite)
        case "+":
            return _add(values, dtype, finite)
        case "-":
            negated = _apply("neg", values[1:], args[1:], dtype, finite)
            return _add([values[0], negated], dtype, finite)
        case "max" | "min":
            return _extremum(values, dtype, 1 if op == "max" else -1, finite)
        case "&" | "|":
            absorbing = zero(dtype) if op == "&" else _all_ones(dtype)
            if absorbing in values:
                return absorbing
            return _bitwise(op, values)
        case "^":
            return _bitwise(op, values)
        case "neg" | "abs":
            (value,) = values
            if value is None or isinstance(value, bool):
                return None
            return _fits(-value if op == "neg" or value < 0 else value, dtype)
        case "cast" | "sat":
            (value,) = values
            if value is None or isinstance(value, bool) or args[0].dtype.kind == "bool":
                return None
            return _fits(value, dtype)
        case "select":
            condition, yes, no = values
            if isinstance(condition, bool):
                return yes if condition else no
            return yes if yes == no else None
        case "fma":
            return _add([_multiply(values[:2], dtype, finite), values[2]], dtype, finite)
        case _:
            return None


def _fits(value: Fraction | float, dtype: DType) -> Value | None:
    """Return ``value`` if the type holds it exactly without doubt."""
    if isinstance(value, float):
        return value if _has_infinity(dtype) else None
    if dtype.is_integer:
        exact = value.denominator == 1 and dtype.lowest <= value <= dtype.highest
        return value if exact else None
    # Small whole numbers are exact in every float type.
    return value if dtype.is_float and value.denominator == 1 and abs(value) <= 4 else None


def _multiply(values: list[Value | None], dtype: DType, finite: bool) -> Value | None:
    left, right = values
    for one, other in ((left, right), (right, left)):
        if one == 0 and not isinstance(one, bool):
            # 0 * inf is NaN: a float must be known, or trusted, to be finite.
            known = isinstance(other, Fraction)
            if known or not dtype.is_float or (finite and not isinstance(other, float)):
                return Fraction(0)
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _fits(left * right, dtype)
    return None


def _add(values: list[Value | None], dtype: DType, finite: bool) -> Value | None:
    left, right = values
    for one, other in ((left, right), (right, left)):
        if isinstance(one, float) and not isinstance(one, bool):
            # inf + x is inf unless x is the opposite infinity or NaN.
            if isinstance(other, Fraction) or other == one or (finite and other is None):
                return one
            return None
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _fits(left + right, dtype)
    return None


def _extremum(values: list[Value | None], dtype: DType, sign: int, finite: bool) -> Value | None:
    left, right = values
    top = _extreme(dtype, sign)
    if left is not None and right is not None:
        return max(left, right) if sign > 0 else min(left, right)
    if top in (left, right) and (finite or not dtype.is_float):
        return top  # Only a NaN would win.
    return None


def _bitwise(op: str, values: list[Value | None]) -> Value | None:
    left, right = values
    if isinstance(left, bool) and isinstance(right, bool):
        return {"&": left & right, "|": left | right, "^": left ^ right}[op]
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        a, b = int(left), int(right)
        return Fraction({"&": a & b, "|": a | b, "^": a ^ b}[op])
    return None
