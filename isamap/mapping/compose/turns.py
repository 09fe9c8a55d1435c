"""Instructions that add the terms of a value to one accumulator, one after the other.

``c += a*b - d*e`` is ``c += a*b`` and then ``c -= d*e``: a complex product is four real ones in two
accumulators.  For floats this changes the order of additions, which the kernel must permit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import (
    Access,
    Buffer,
    Expr,
    Op,
    Permissions,
    Statement,
    Variable,
)
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses, substitute_expr
from isamap.mapping.compose.composed import TARGET, needle
from isamap.mapping.compose.connect import Given, Part, named
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import Bindings, Needles, covered, roots
from isamap.mapping.needles.pattern import bindings, size
from isamap.mapping.needles.pieces import is_fixed

MOST_TERMS = 4
"""Terms of a value that are taken in turn at most."""

MOST_WAYS = 3
"""Instructions that are considered for one term."""

MOST_SEQUENCES = 4
"""Sequences that are offered for one statement."""


@dataclass(frozen=True, slots=True)
class Way:
    """An instruction that adds a term to its target, or takes it away.

    ``value`` is the term over the instruction's operands, without the sign.
    """

    needle: Needle
    value: Expr
    bound: Bindings


def sequences(
    statement: Statement, index: Needles, best: int, permissions: Permissions
) -> Iterator[tuple[Needle, Bindings]]:
    """Yield sequences that compute a statement term by term, with the operands' bindings.

    They do more of the statement's operations than ``best``, what a single instruction does.
    """
    reduction, dtype = statement.reduction, statement.target.dtype
    if reduction == "=":
        return
    rounded = dtype.is_float and reduction in ("+=", "*=")
    terms = tuple(_terms(statement.value, REDUCTION_OPERATIONS[reduction], True))
    if not 2 <= len(terms) <= MOST_TERMS or (rounded and not permissions.reassociate):
        return
    ways = [_ways(statement, index, term, adding) for term, adding in terms]
    if not all(ways):
        return
    choices = sorted(product(*ways), key=lambda c: sum(w.needle.entry.throughput for w in c))
    found = (
        joined
        for choice in choices
        if (joined := _joined(statement, choice)) and covered(joined[0]) > best
    )
    yield from islice(found, MOST_SEQUENCES)


def _terms(value: Expr, op: str, adding: bool) -> Iterator[tuple[Expr, bool]]:
    """Yield the terms of a value and whether each is added; only sums have others."""
    match value:
        case Op(own, (first, second), _) if own == op:
            yield from _terms(first, op, adding)
            yield from _terms(second, op, adding)
        case Op("-", (first, second), _) if op == "+":
            yield from _terms(first, op, adding)
            yield from _terms(second, op, not adding)
        case _:
            yield value, adding


def _ways(statement: Statement, index: Needles, term: Expr, adding: bool) -> list[Way]:
    """Return the instructions for one term, those that do most of it and cost least first."""
    found = list(_adding(statement, index, term) if adding else _taking(statement, index, term))
    fixed = [way for way in found if _is_fixed(way.needle)]
    fixed.sort(key=lambda way: (-size(way.value), way.needle.entry.throughput))
    return [way for way in fixed if size(way.value) == size(fixed[0].value)][:MOST_WAYS]


def _adding(statement: Statement, index: Needles, term: Expr) -> Iterator[Way]:
    for one, bound in roots(replace(statement, value=term), index):
        yield Way(one, one.value, bound)


def _taking(statement: Statement, index: Needles, term: Expr) -> Iterator[Way]:
    """Yield the instructions that compute ``c += -x``, ``c += -a * b`` or ``r = c - x``."""
    dtype = term.dtype
    negative: list[Expr] = [Op("neg", (term,), dtype)]
    if isinstance(term, Op) and term.op == "*":
        first, second = term.args
        negative += [
            Op("*", (Op("neg", (first,), dtype), second), dtype),
            Op("*", (first, Op("neg", (second,), dtype)), dtype),
        ]
    for value in negative:
        for one, bound in roots(replace(statement, value=value), index):
            if (positive := _positive(one.value)) is not None:
                yield Way(one, positive, bound)
    for one in index.at(("=", "-", dtype.name)):
        if not isinstance(one.value, Op) or one.target.dtype != statement.target.dtype:
            continue
        own, other = one.value.args
        if not isinstance(own, Access) or not _shares(one, own) or _reads(other, own.buffer):
            continue
        adder = replace(one, reduction=statement.reduction, value=other, tied=own.buffer)
        order = [operand.name for operand in one.entry.instruction.operands]
        for found in bindings(other, term):
            yield Way(adder, other, tuple((name, found[name]) for name in order if name in found))


def _positive(value: Expr) -> Expr | None:
    """Return what a value is the negative of, where it says so."""
    match value:
        case Op("neg", (inner,), _):
            return inner
        case Op("*", (Op("neg", (first,), _), second), _):
            return replace(value, args=(first, second))
        case Op("*", (first, Op("neg", (second,), _)), _):
            return replace(value, args=(first, second))
        case _:
            return None


def _reads(value: Expr, operand: str) -> bool:
    return any(access.buffer == operand for access in accesses(value))


def _shares(one: Needle, own: Access) -> bool:
    """Return whether an operand can be the register of the result."""
    mine, result = (one.operand(a.buffer) for a in (own, one.target))
    places = [(b.storage, b.dtype, b.shape, b.strides) for b in (mine, result)]
    return own.indices == one.target.indices and places[0] == places[1] and result.role == "out"


def _is_fixed(one: Needle) -> bool:
    """Return whether an instruction has fixed extents, and axes as the indices of its result."""
    axes = {axis.name for axis in one.axes}
    own = [index.name for index in one.target.indices]
    plain = is_fixed(one.entry) and not one.places
    return plain and set(own) <= axes and len(set(own)) == len(own)


# --- one instruction of several -------------------------------------------------------------------
def _joined(statement: Statement, ways: tuple[Way, ...]) -> tuple[Needle, Bindings] | None:
    """Return the sequence of some ways as one needle; None if their results or sums differ."""
    first = ways[0].needle
    place = first.operand(first.target.buffer)
    shape = _shape(first)
    operands: list[Buffer] = []
    bound: list[tuple[str, Expr]] = []
    values: list[Expr] = []
    parts: list[Part] = []
    for way in ways:
        target = way.needle.operand(way.needle.target.buffer)
        if _shape(way.needle) != shape or (target.storage, target.dtype) != (
            place.storage,
            place.dtype,
        ):
            return None
        names = _operand_names(way, {TARGET} | {operand.name for operand in operands})
        own = (way.needle.target.buffer, way.needle.tied)
        given = [o.name for o in way.needle.entry.instruction.operands if o.role != "local"]
        if any(name not in names and name not in own for name in given):
            return None  # It takes something besides, to do no more than the term.
        values.append(_renamed(substitute_expr(way.value, _axes(way.needle)), names))
        for operand in way.needle.entry.instruction.operands:
            if operand.name in names:
                operands.append(replace(operand, name=names[operand.name], role="in"))
        bound += [(names[name], expr) for name, expr in way.bound]
        parts.append(
            Part(
                way.needle.entry,
                tuple(
                    (o.name, Given(TARGET if o.name in own else names[o.name]))
                    for o in way.needle.entry.instruction.operands
                    if o.role != "local"
                ),
            )
        )
    dims, sums = shape
    axes = list(named([True] * len(dims) + [False] * len(sums)).values())
    extents = dict(zip(axes, (*dims, *sums), strict=True))
    rest = iter(values)
    value = _rebuilt(statement.value, REDUCTION_OPERATIONS[statement.reduction], rest)
    whole = Statement(
        Access(TARGET, tuple(map(var, axes[: len(dims)])), place.dtype),
        statement.reduction,
        value,
        tuple(Variable(axis, const(0), const(extent)) for axis, extent in extents.items()),
    )
    operands.append(replace(place, name=TARGET, role="inout"))
    temporaries = (None,) * (len(parts) - 1)
    return needle(tuple(parts), temporaries, operands, whole, ()), tuple(bound)


def _shape(one: Needle) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the extents of the axes of the target, and those of the others."""
    extents = {axis.name: axis.extent for axis in one.axes}
    own = [index.name or "" for index in one.target.indices]
    return tuple(extents[n] for n in own), tuple(e for n, e in extents.items() if n not in own)


def _axes(one: Needle) -> dict[str, Index]:
    """Return the axes of a sequence for those of one of its instructions."""
    own = [index.name or "" for index in one.target.indices]
    others = [axis.name for axis in one.axes if axis.name not in own]
    names = named([True] * len(own) + [False] * len(others), [*own, *others])
    return {name: var(new) for name, new in names.items()}


def _operand_names(way: Way, taken: set[str]) -> dict[str, str]:
    """Return a new name for each input of an instruction that a term needs."""
    names: dict[str, str] = {}
    for name in dict.fromkeys(access.buffer for access in accesses(way.value)):
        short, number = name, 1
        while short in taken | set(names.values()):
            number += 1
            short = f"{name}{number}"
        names[name] = short
    return names


def _renamed(value: Expr, names: Mapping[str, str]) -> Expr:
    match value:
        case Access(buffer, _, _):
            return replace(value, buffer=names[buffer])
        case Op(_, args, _):
            return replace(value, args=tuple(_renamed(arg, names) for arg in args))
        case _:
            return value


def _rebuilt(value: Expr, op: str, terms: Iterator[Expr]) -> Expr:
    """Return a value with its terms, in order, replaced."""
    match value:
        case Op(own, (first, second), _) if own == op or (own == "-" and op == "+"):
            left = _rebuilt(first, op, terms)
            return replace(value, args=(left, _rebuilt(second, op, terms)))
        case _:
            return next(terms)
