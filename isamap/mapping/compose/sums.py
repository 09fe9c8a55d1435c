"""Values brought into the form of a statement: one reduction outside, operations inside.

Integers are followed as exact whole numbers.  A value of a type is a whole number modulo the type's
size; additions, products and conversions to types that are not wider leave it that number.  Before
a wider type or a saturation looks at it, the number must lie in the type: that is a *claim*, which
holds by itself, or for the values that a kernel's operands have, or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.nodes import Literal, Reduction
from isamap.mapping.needles.pieces import Apply, Leaf, Total, Value, leaves

RING = ("+", "-", "*", "neg")
"""Operations that wrap: their results follow from the exact ones modulo the size of the type."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The sum of ``count`` values of ``body``, or of fewer, lies in ``low`` to ``high``.

    ``body`` computes with whole numbers: its operations neither wrap nor saturate, whatever their
    type says.  A place that no iteration uses adds 0.  ``dtype`` is the type that must hold it.
    """

    body: Value
    count: int
    dtype: DType
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Sum:
    """``body`` reduced over ``axes``, and what must be true for the value to be that.

    ``body`` holds no reduction.
    """

    axes: tuple[str, ...]
    body: Value
    claims: tuple[Claim, ...] = ()


def as_sum(value: Value, reduction: Reduction, extents: Mapping[str, int]) -> Sum | None:
    """Return a value as one ``reduction`` of a body of the value's type; None if it is none."""
    if reduction == "+=" and value.dtype.is_integer:
        found = _Whole(extents).of(value)
        if found is None:
            return None
        found = Sum(found.axes, in_type(found.body, value.dtype), found.claims)
    else:
        found = _typed(value, reduction)
    return found and replace(found, claims=(*found.claims, *_demands(value)))


def _demands(value: Value) -> tuple[Claim, ...]:
    """Return the claims that operands have values for which their instructions are defined."""
    own = leaves(value).values()
    return tuple(Claim(leaf, 1, leaf.dtype, *leaf.ends) for leaf in own if leaf.ends is not None)


def in_type(body: Value, dtype: DType) -> Value:
    """Return a whole number modulo the size of an integer type, computed in that type."""
    match body:
        case Apply(op, args, _) if op in RING:
            return Apply(op, tuple(in_type(arg, dtype) for arg in args), dtype)
        case Literal(text, own) if own == dtype or _fits(int(text), dtype):
            return Literal(text, dtype)
        case _:
            return body if body.dtype == dtype else Apply("cast", (body,), dtype)


def bounds(body: Value, known: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Return the least and the greatest value of a body of whole numbers; None if unknown.

    ``known`` gives those of operands; others have any value of their type.
    """
    match body:
        case Leaf(operand, _, dtype):
            return known.get(operand, (dtype.lowest, dtype.highest))
        case Literal(text, _):
            return int(text), int(text)
        case Apply("neg", (inner,), _):
            ends = bounds(inner, known)
            return ends and (-ends[1], -ends[0])
        case Apply(op, (first, second), _) if op in RING:
            a, b = bounds(first, known), bounds(second, known)
            if a is None or b is None:
                return None
            match op:
                case "+":
                    return a[0] + b[0], a[1] + b[1]
                case "-":
                    return a[0] - b[1], a[1] - b[0]
                case _:
                    ends4 = [x * y for x in a for y in b]
                    return min(ends4), max(ends4)
        case _:
            dtype = body.dtype
            return (dtype.lowest, dtype.highest) if dtype.is_integer else None


def sum_bounds(claim: Claim, known: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Return the least and the greatest sum of at most ``count`` values of a claim's body."""
    ends = bounds(claim.body, known)
    return ends and (claim.count * min(ends[0], 0), claim.count * max(ends[1], 0))


def holds(claim: Claim, known: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether a claim follows from the ends of its operands."""
    ends = sum_bounds(claim, known)
    return ends is not None and claim.low <= ends[0] and ends[1] <= claim.high


@dataclass(frozen=True, slots=True)
class _Whole:
    """Follows integers as whole numbers under ``+=``."""

    extents: Mapping[str, int]

    def of(self, value: Value) -> Sum | None:
        match value:
            case Leaf() | Literal():
                return Sum((), value) if value.dtype.is_integer else None
            case Total("+=", axes, inner, _):
                found = self.of(inner)
                return found and Sum((*axes, *found.axes), found.body, found.claims)
            case Total():
                return None
            case Apply("cast" | "sat" as op, (inner,), dtype) if (
                inner.dtype.is_integer and dtype.is_integer
            ):
                found = self.of(inner)
                return found and self._converted(found, op, inner.dtype, dtype)
            case Apply(op, args, _) if op in RING and value.dtype.is_integer:
                found_args = [self.of(arg) for arg in args]
                kept = [found for found in found_args if found is not None]
                return self._ring(value, kept) if len(kept) == len(args) else None
            case _:
                # Any other operation is taken as it stands, in its own type.
                plain = _has_total(value) or not value.dtype.is_integer
                return None if plain else Sum((), value)

    def _ring(self, value: Apply, args: list[Sum]) -> Sum | None:
        axes = tuple(axis for arg in args for axis in arg.axes)
        claims = tuple(claim for arg in args for claim in arg.claims)
        for arg, other in (args, args[::-1]) if len(args) == 2 else ():
            if (value.op == "*" and _is(other.body, 1)) or (value.op == "+" and _is(other.body, 0)):
                return Sum(arg.axes, arg.body, claims)
        summing = [arg for arg in args if arg.axes]
        # A factor goes into a sum; a term beside a sum, and a product of sums, stay outside.
        if len(summing) > 1 or (summing and value.op in ("+", "-")):
            return None
        return Sum(axes, Apply(value.op, tuple(arg.body for arg in args), value.dtype), claims)

    def _converted(self, found: Sum, op: str, source: DType, dtype: DType) -> Sum:
        """Return a sum of type ``source`` as ``dtype`` sees it."""
        if op == "cast" and dtype.bits <= source.bits:
            return found
        low, high = source.lowest, source.highest
        if op == "sat":
            low, high = max(low, dtype.lowest), min(high, dtype.highest)
        count = prod(self.extents[axis] for axis in found.axes)
        holder = source if op == "cast" or dtype.bits > source.bits else dtype
        claim = Claim(found.body, count, holder, low, high)
        if holds(claim, {}):
            return found
        return Sum(found.axes, found.body, tuple(dict.fromkeys((*found.claims, claim))))


def _typed(value: Value, reduction: Reduction) -> Sum | None:
    """Take a reduction out of a value without looking at numbers."""
    match value:
        case Leaf() | Literal():
            return Sum((), value)
        case Total(own, axes, inner, _):
            found = _typed(inner, reduction)
            # Without axes it is the value itself.
            if found is None or (axes and own != reduction):
                return None
            return Sum((*axes, *found.axes), found.body)
        case Apply("*", (first, second), _) if _is(first, 1) or _is(second, 1):
            return _typed(first if _is(second, 1) else second, reduction)
        case Apply("neg", (inner,), dtype) if reduction == "+=":
            found = _typed(inner, reduction)
            return found and Sum(found.axes, Apply("neg", (found.body,), dtype))
        case Apply(_, args, _):
            parts = [_typed(arg, reduction) for arg in args]
            bodies = tuple(part.body for part in parts if part is not None and not part.axes)
            if len(bodies) < len(args):
                return None
            return Sum((), Apply(value.op, bodies, value.dtype))


def _has_total(value: Value) -> bool:
    match value:
        case Total():
            return True
        case Apply(_, args, _):
            return any(map(_has_total, args))
        case _:
            return False


def _is(value: Value, number: int) -> bool:
    """Return whether a value is a certain constant, perhaps converted."""
    match value:
        case Literal(text, dtype):
            return dtype.kind != "bool" and float(text) == number
        case Apply("cast", (inner,), _):
            return _is(inner, number)
        case _:
            return False


def _fits(number: int, dtype: DType) -> bool:
    return dtype.lowest <= number <= dtype.highest
