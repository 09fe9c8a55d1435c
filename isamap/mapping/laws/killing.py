"""Constants in unused elements of input operands that make an instruction's body do nothing."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import TypeAlias

from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce, Reduction
from isamap.ir.statements import accesses, identity

Value: TypeAlias = Fraction | float | bool
"""A finite number, an infinity, or a truth value."""


@dataclass(frozen=True, slots=True)
class Filling:
    """One constant for each operand, and the smallest sets of operands that kill with them.

    While the operands of one of ``sets`` hold their constants the body is the reduction's identity,
    whatever the others hold.
    """

    constants: tuple[tuple[str, Literal], ...]
    sets: tuple[frozenset[str], ...]


@lru_cache(maxsize=4096)
def best_fillings(
    value: Expr,
    reduction: Reduction,
    fillable: tuple[str, ...],
    fixed: tuple[tuple[str, Literal], ...],
    finite: bool,
    *,
    shared: tuple[tuple[str, str], ...] = (),
) -> tuple[Filling, ...]:
    """Return the fillings that no other one surpasses; there is always at least one.

    ``fillable`` are the operands whose unused elements can be given a constant, ``fixed`` those
    that hold a known one everywhere.  ``finite`` says that live floats are neither infinite nor
    NaN.  ``shared`` are names of an operand at its second and further places with the operand,
    which has one constant at all of them.
    """
    owners = dict(shared)
    known = {name: _number(literal) for name, literal in fixed}
    types = {access.buffer: access.dtype for access in accesses(value)}
    neutral = None if reduction == "=" else _number(identity(reduction, value.dtype))
    if neutral is None:
        return (Filling((), ()),)
    choices = {name: _candidates(types[name]) for name in fillable if name not in known}

    def kills(held: _Held) -> bool:
        return _evaluate(value, {**known, **dict(held)}, finite) == neutral

    found = []
    for group in _compatible(_killers(choices, kills, owners), owners):
        held_by = {owners.get(name, name): value for held in group for name, value in held}
        constants = {n: held_by[owners.get(n, n)] for n in choices if owners.get(n, n) in held_by}
        literals = tuple(
            (name, literal_of(constants.get(name, zero(types[name])), types[name]))
            for name in choices
        )
        order = [
            options.index(constants[name]) if name in constants else 0
            for name, options in choices.items()
        ]
        sets = dict.fromkeys(frozenset(name for name, _ in held) for held in group)
        found.append((order, Filling(literals, tuple(sets))))
    kept: list[Filling] = []
    for _, filling in sorted(found, key=lambda item: item[0]):
        if not any(_surpasses(other, filling) for other in kept):
            kept = [other for other in kept if not _surpasses(filling, other)] + [filling]
    return tuple(kept) or (Filling((), ()),)


def is_nothing(
    value: Expr, reduction: Reduction, access: Access, held: Literal, finite: bool
) -> bool:
    """Return whether a body is the reduction's identity where one access gives a constant.

    Whatever the others give, of floats finite numbers if they are ``finite``.
    """
    neutral = None if reduction == "=" else _number(identity(reduction, value.dtype))
    known = _number(held)
    if neutral is None or known is None:
        return False
    return _evaluate(_marked(value, access), {_MARK: known}, finite) == neutral


_MARK = "="
"""A name that no buffer has."""


def _marked(expr: Expr, access: Access) -> Expr:
    """Return an expression in which an access has a name of its own."""
    match expr:
        case Access() if expr == access:
            return replace(expr, buffer=_MARK)
        case Op(op, args, dtype):
            return Op(op, tuple(_marked(arg, access) for arg in args), dtype)
    return expr


_Held: TypeAlias = tuple[tuple[str, Value], ...]
"""Constants of some operands."""


def _killers(
    choices: Mapping[str, Sequence[Value]],
    kills: Callable[[_Held], bool],
    owners: Mapping[str, str],
) -> tuple[_Held, ...]:
    """Return the smallest sets of operands with constants that kill, by size and preference.

    What kills goes on killing when more operands are held, so that only sets which hold no smaller
    one are tried; and where there are more than five operands, no sets of more than three.
    """
    found: list[_Held] = []
    largest = len(choices) if len(choices) <= 5 else 3
    for size in range(1, largest + 1):
        smaller = [frozenset(held) for held in found]
        for names in combinations(choices, size):
            for constants in product(*(choices[name] for name in names)):
                held = tuple(zip(names, constants, strict=True))
                if not _agree(held, held, owners):
                    continue
                if not any(s.issubset(held) for s in smaller) and kills(held):
                    found.append(held)
    return tuple(found)


def _agree(one: _Held, other: _Held, owners: Mapping[str, str]) -> bool:
    """Return whether two sets have one constant for each operand that is in both."""
    mine = {owners.get(name, name): constant for name, constant in one}
    return all(mine.get(owners.get(name, name), value) == value for name, value in other)


def _compatible(
    killers: tuple[_Held, ...], owners: Mapping[str, str]
) -> tuple[tuple[_Held, ...], ...]:
    """Return the largest groups of killers that agree on the constants of shared operands.

    They are the maximal cliques of the relation "agree", found by Bron and Kerbosch's algorithm
    (1973) with a pivot: killers that agree in pairs agree altogether.
    """
    count = len(killers)
    agrees = [set[int]() for _ in range(count)]
    for one, other in combinations(range(count), 2):
        if _agree(killers[one], killers[other], owners):
            agrees[one].add(other)
            agrees[other].add(one)
    groups: list[tuple[_Held, ...]] = []

    def extend(group: list[int], open_: set[int], closed: set[int]) -> None:
        if not open_ and not closed:
            groups.append(tuple(killers[n] for n in sorted(group)))
            return
        pivot = max(sorted(open_ | closed), key=lambda n: len(agrees[n] & open_))
        for n in sorted(open_ - agrees[pivot]):
            extend([*group, n], open_ & agrees[n], closed & agrees[n])
            open_ = open_ - {n}
            closed = closed | {n}

    extend([], set(range(count)), set())
    return tuple(groups)


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


def _surpasses(one: Filling, other: Filling) -> bool:
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
        case Coordinate() | Reduce():
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
            if value is None or dtype.kind == "bool":
                return None
            return _fits(Fraction(value) if isinstance(value, bool) else value, dtype)
        case "<" | "<=":
            return _compare(op, values[0], values[1], args[0].dtype, finite)
        case ">" | ">=":
            mirrored = "<" if op == ">" else "<="
            return _compare(mirrored, values[1], values[0], args[0].dtype, finite)
        case "==" | "!=":
            return None if None in values else (values[0] == values[1]) == (op == "==")
        case "<<" | ">>" | "//" | "%":
            # Of integers, by zero too: 0 comes of 0 whatever the other one is.
            if values[0] == 0 or (op in ("//", "%") and values[1] == 0):
                return Fraction(0)
            return None
        case "/":
            return _divide(values[0], values[1], finite)
        case "exp" | "sigmoid":
            return Fraction(0) if values[0] == -math.inf else None
        case "tanh" | "erf" | "sqrt" | "round" | "floor" | "ceil" | "trunc":
            return Fraction(0) if values[0] == 0 else None
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


def _divide(left: Value | None, right: Value | None, finite: bool) -> Value | None:
    """Return a quotient of floats that is 0: of a live number, it may be divided by 0."""
    of_zero = left == 0 and isinstance(right, Fraction) and right != 0
    over_infinity = isinstance(right, float) and (
        isinstance(left, Fraction) or (finite and left is None)
    )
    return Fraction(0) if of_zero or over_infinity else None


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


def _compare(
    op: str, left: Value | None, right: Value | None, dtype: DType, finite: bool
) -> bool | None:
    """Return the truth of ``left < right`` or ``left <= right`` if it is the same for all values.

    Nothing is less than the least value or exceeds the greatest, and a NaN compares as false.
    """
    least, greatest = _extreme(dtype, -1), _extreme(dtype, 1)
    if left is not None and right is not None:
        return left < right if op == "<" else left <= right
    # Of a type without infinities the ends are those of its numbers, and NaN is no number either.
    if op == "<" and (left == greatest or right == least):
        return False
    if op == "<=" and (left == least or right == greatest):
        return True if finite or not dtype.is_float else None
    return None


def _bitwise(op: str, values: list[Value | None]) -> Value | None:
    left, right = values
    if isinstance(left, bool) and isinstance(right, bool):
        return {"&": left & right, "|": left | right, "^": left ^ right}[op]
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        a, b = int(left), int(right)
        return Fraction({"&": a & b, "|": a | b, "^": a ^ b}[op])
    return None
