"""Instructions as pieces of a composition: what they compute, as a function of their operands.

Elements of an operand in registers are numbered in row-major order, so one instruction may see as
``[8, 2]`` what another wrote as ``[16]``.  A piece therefore lists the axes along an operand, outer
ones first, and nothing else of its shape: ``a[2*i + k]`` and ``a[i, k]`` are the same piece.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from isamap.hw.accelerator import Entry
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Literal,
    Op,
    Reduce,
    Reduction,
    Statement,
)
from isamap.mapping.matching import Needle
from isamap.mapping.needles.demands import defined_for, is_restricted
from isamap.mapping.needles.unrolled import is_unrolled, rolled


@dataclass(frozen=True, slots=True)
class Leaf:
    """An element of an operand: ``axes`` number it in row-major order.

    ``ends`` are the least and greatest value for which the instruction is defined; None: all are.
    """

    operand: str
    axes: tuple[str, ...]
    dtype: DType
    ends: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation of :data:`isamap.ir.operations.OPERATIONS`."""

    op: str
    args: tuple["Value", ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Total:
    """The reduction of a value over some axes, from the reduction's identity."""

    reduction: Reduction
    axes: tuple[str, ...]
    value: "Value"
    dtype: DType


Value: TypeAlias = Leaf | Literal | Apply | Total


@dataclass(frozen=True, slots=True)
class Piece:
    """``target[axes] reduction value``; the value's reductions over further axes are inside it.

    ``tied`` is the operand that must share the target's register.  ``extents`` are those of all
    axes.
    """

    entry: Entry
    target: Leaf
    reduction: Reduction
    value: Value
    extents: Mapping[str, int]
    tied: str | None = None

    def count(self, leaf: Leaf) -> int:
        """Return how many elements an operand has."""
        return prod(self.extents[axis] for axis in leaf.axes)


def read_piece(entry: Entry) -> Piece | None:
    """Read an entry that writes one operand afresh; None if it is no function of its operands.

    ``r = value``, ``out r`` with ``r += value`` (reduced from the identity), and such statements in
    sequence where all but the last write locals.
    """
    instruction = entry.instruction
    if instruction.states or not is_fixed(entry):
        return None
    if is_restricted(entry) or entry.same:
        return None
    sizes = {e.name: const(e.value) for e in instruction.extents if e.value is not None}
    made: dict[str, tuple[Leaf, Value]] = {}
    extents: dict[str, int] = {}
    for number, statement in enumerate(instruction.statements):
        read = _read(entry, statement, sizes, f"s{number}")
        operand = instruction.operand(statement.target.buffer)
        last = number == len(instruction.statements) - 1
        if read is None or operand.role != ("out" if last else "local") or operand.name in made:
            return None
        target, value, own = read
        extents.update(own)
        for name, (leaf, inner) in made.items():
            found = _with_local(value, name, leaf, inner, extents)
            if found is None:
                return None
            value = found
        if operand.name in leaves(value) or not _is_plain(value):
            return None
        made[operand.name] = (target, value)
        if last:
            return Piece(entry, target, "=", value, extents)
    return None


def read_needle(needle: Needle) -> Piece | None:
    """Read a needle that adds to what is there: ``c += value`` or ``r = c + value``."""
    entry = needle.entry
    axes = {axis.name: axis.extent for axis in needle.axes}
    if not is_fixed(entry):
        return None
    if needle.fixed or needle.places or is_restricted(entry) or entry.same:
        return None
    target = _leaf(entry, needle.target, axes)
    value = _value(entry, needle.value, axes)
    if target is None or value is None or not _is_plain(value):
        return None
    looped = (axis.name for axis in needle.axes)
    summed = tuple(axis for axis in looped if axis not in target.axes and axes[axis] > 1)
    if summed:
        value = Total(needle.reduction, summed, value, value.dtype)
    return Piece(entry, target, needle.reduction, value, axes, needle.tied)


def is_fixed(entry: Entry) -> bool:
    """Return whether an instruction can be a part: numbers for all extents, no tables of its own,
    and no demands on its operands."""
    instruction = entry.instruction
    if entry.same or entry.constraints:
        return False
    tables = any(operand.role == "table" for operand in instruction.operands)
    return not tables and all(extent.value is not None for extent in instruction.extents)


def _read(
    entry: Entry, statement: Statement, sizes: Mapping[str, Index], prefix: str
) -> tuple[Leaf, Value, dict[str, int]] | None:
    """Return target, value and extents of a statement; axes get a prefix."""
    extents: dict[str, int] = {}
    for variable in statement.variables:
        number = variable.extent.substitute(sizes).constant
        if number is None or variable.lower.substitute(sizes).constant != 0:
            return None
        extents[variable.name] = number
    target = _leaf(entry, statement.target, extents)
    value = _value(entry, statement.value, extents)
    if target is None or value is None:
        return None
    looped = (variable.name for variable in statement.variables)
    summed = tuple(axis for axis in looped if axis not in target.axes and extents[axis] > 1)
    if statement.reduction == "=" and summed:
        return None
    if statement.reduction != "=":
        value = Total(statement.reduction, summed, value, value.dtype)
    names = {axis: f"{prefix}.{axis}" for axis in extents}
    target = replace(target, axes=tuple(names[axis] for axis in target.axes))
    return target, rename(value, names, {}), {names[a]: e for a, e in extents.items()}


def _value(entry: Entry, expr: Expr, extents: dict[str, int]) -> Value | None:
    """Read an expression; sums that are written out get an axis of their own in ``extents``."""
    axis = f"+{len(extents)}"
    if is_unrolled(expr) and (written := rolled(expr, axis)):
        term, extents[axis] = written
        value = _value(entry, term, extents)
        return value and Total("+=", (axis,), value, expr.dtype)
    match expr:
        case Access():
            return _leaf(entry, expr, extents)
        case Literal():
            return expr
        case Coordinate() | Reduce():
            return None
        case Op(op, args, dtype):
            found = [_value(entry, arg, extents) for arg in args]
            kept = tuple(value for value in found if value is not None)
            return Apply(op, kept, dtype) if len(kept) == len(found) else None


def _leaf(entry: Entry, access: Access, extents: Mapping[str, int]) -> Leaf | None:
    """Read an access that reaches each element of its operand once."""
    buffer = _sized(entry, entry.instruction.operand(access.buffer))
    if buffer.strides is not None or buffer.pad is not None:
        return None
    axes: list[str] = []
    for index, size in zip(access.indices, buffer.shape, strict=True):
        split = _digits(index, extents, size.constant)
        if split is None:
            return None
        axes += split
    if len(set(axes)) < len(axes):
        return None
    return Leaf(access.buffer, tuple(axes), access.dtype, defined_for(buffer))


def _sized(entry: Entry, operand: Buffer) -> Buffer:
    """Return an operand of an instruction with the numbers of its extents in its shape."""
    known = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
    if not known:
        return operand
    return replace(operand, shape=tuple(extent.substitute(known) for extent in operand.shape))


def _digits(index: Index, extents: Mapping[str, int], size: int | None) -> list[str] | None:
    """Return the axes of a mixed-radix number that takes each value below ``size`` once."""
    if not index.is_linear_in(list(extents)) or index.offset or index.names - extents.keys():
        return None
    weights: list[tuple[int, str]] = []
    for name in index.names:
        weight = index.coefficient(name).constant
        if weight is None or weight < 1:
            return None
        if extents[name] > 1:
            weights.append((weight, name))
    room = 1
    for weight, name in sorted(weights):
        if weight != room:
            return None
        room *= extents[name]
    return [name for _, name in sorted(weights, reverse=True)] if room == size else None


# --- trees ----------------------------------------------------------------------------------------
def leaves(value: Value) -> dict[str, Leaf]:
    """Return the leaf of each operand; operands are read at one place each."""
    match value:
        case Leaf():
            return {value.operand: value}
        case Apply(_, args, _):
            found: dict[str, Leaf] = {}
            for arg in args:
                found.update(leaves(arg))
            return found
        case Total():
            return leaves(value.value)
        case Literal():
            return {}


def rename(value: Value, axes: Mapping[str, str], operands: Mapping[str, str]) -> Value:
    """Return a value with other names for its axes and operands."""
    match value:
        case Leaf(operand, own):
            named = tuple(axes.get(axis, axis) for axis in own)
            return replace(value, operand=operands.get(operand, operand), axes=named)
        case Apply(op, args, dtype):
            return Apply(op, tuple(rename(arg, axes, operands) for arg in args), dtype)
        case Total(reduction, own, inner, dtype):
            named = tuple(axes.get(axis, axis) for axis in own)
            return Total(reduction, named, rename(inner, axes, operands), dtype)
        case Literal():
            return value


def divide(value: Value, parts: Mapping[str, tuple[str, ...]]) -> Value:
    """Return a value with axes replaced by the digits of which they are made."""
    match value:
        case Leaf(_, own, _):
            return replace(value, axes=divided(own, parts))
        case Apply(_, args, _):
            return replace(value, args=tuple(divide(arg, parts) for arg in args))
        case Total(_, own, inner, _):
            return replace(value, axes=divided(own, parts), value=divide(inner, parts))
        case Literal():
            return value


def divided(axes: tuple[str, ...], parts: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return axes with some replaced by their digits."""
    return tuple(digit for axis in axes for digit in parts.get(axis, (axis,)))


def put(value: Value, operand: str, other: Value) -> Value:
    """Return a value with an operand replaced by another value."""
    match value:
        case Leaf():
            return other if value.operand == operand else value
        case Apply(_, args, _):
            return replace(value, args=tuple(put(arg, operand, other) for arg in args))
        case Total():
            return replace(value, value=put(value.value, operand, other))
        case Literal():
            return value


def _with_local(
    value: Value, operand: str, target: Leaf, inner: Value, extents: Mapping[str, int]
) -> Value | None:
    """Return ``value`` with a local's leaf replaced by what was written to the local.

    None if the local is read at several places, or in other digits than it was written in.
    """
    found = _places(value, operand)
    if not found:
        return value
    (own, *others) = found
    if others or [extents[a] for a in own] != [extents[a] for a in target.axes]:
        return None
    return put(value, operand, rename(inner, dict(zip(target.axes, own, strict=True)), {}))


def _is_plain(value: Value) -> bool:
    """Return whether each operand is read at one place only."""
    return all(len(set(_places(value, operand))) == 1 for operand in leaves(value))


def _places(value: Value, operand: str) -> list[tuple[str, ...]]:
    match value:
        case Leaf():
            return [value.axes] if value.operand == operand else []
        case Apply(_, args, _):
            return [place for arg in args for place in _places(arg, operand)]
        case Total():
            return _places(value.value, operand)
        case Literal():
            return []
