"""Matching the body of an instruction against an expression of a kernel, up to commutativity."""

from collections.abc import Iterator
from itertools import permutations

from isamap.ir.literal import narrowed
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce
from isamap.ir.operations import OPERATIONS
from isamap.ir.statements import operations, reduces

Bindings = dict[str, Expr]
"""Operand names to the subexpressions that they stand for."""


def bindings(pattern: Expr, expr: Expr, *, as_written: bool = False) -> tuple[Bindings, ...]:
    """Return every way to read ``expr`` as ``pattern``, without duplicates, in a fixed order.

    An access of ``pattern`` names an operand and stands for any subexpression of its type; an
    operand that occurs twice stands for the same subexpression.  Operations, types and literals
    must agree; the arguments of commutative operations may be exchanged, unless the arguments are
    to be taken ``as_written``; a literal is also the conversion of a literal of its value.  A
    reduction stands for one of its kind, or for a single step.
    """
    found: dict[tuple[tuple[str, Expr], ...], Bindings] = {}
    for candidate in _match(pattern, expr, {}, as_written):
        found.setdefault(tuple(sorted(candidate.items(), key=lambda item: item[0])), candidate)
    return tuple(found.values())


def root(expr: Expr) -> object:
    """Return what :func:`may_read` looks at in an expression."""
    match expr:
        case Op(op, _, dtype):
            return op, dtype.name
        case _:
            return type(expr), expr.dtype.name


def may_read(pattern: Expr, expr: Expr) -> bool:
    """Return whether an expression of this root may have :func:`bindings`."""
    if pattern.dtype != expr.dtype:
        return False
    match pattern:
        case Op("cast" | "sat") if isinstance(expr, Literal):
            return True
        case Op(op, _, _):
            return isinstance(expr, Op) and expr.op == op
        case Literal():
            return isinstance(expr, Literal)
        case Coordinate():
            return False
        case Access() | Reduce():
            return True


def size(expr: Expr) -> int:
    """Return how many operations ``expr`` holds."""
    return operations(expr)


def _match(pattern: Expr, expr: Expr, bound: Bindings, as_written: bool) -> Iterator[Bindings]:
    if pattern.dtype != expr.dtype:
        return
    match pattern:
        case Access(operand, _, _):
            if operand not in bound:
                if not reduces(expr):  # only the instruction itself holds what is half computed
                    yield {**bound, operand: expr}
            elif bound[operand] == expr:
                yield bound
        case Literal():
            if pattern == expr:
                yield bound
        case Coordinate():
            return
        case Op("cast" | "sat", (arg,), _) if isinstance(expr, Literal):
            # What is converted without loss is a literal of the narrower type, converted.
            if (literal := narrowed(expr, arg.dtype)) is not None:
                yield from _match(arg, literal, bound, as_written)
        case Reduce(reduction, _, body, _):
            if isinstance(expr, Reduce) and expr.reduction != reduction:
                return
            # What is not reduced is a reduction of one step.
            inner = expr.body if isinstance(expr, Reduce) else expr
            yield from _match(body, inner, bound, as_written)
        case Op(op, args, _):
            if not isinstance(expr, Op) or expr.op != op or len(args) != len(expr.args):
                return
            commutes = OPERATIONS[op].commutative and not as_written
            for order in permutations(expr.args) if commutes else (expr.args,):
                yield from _match_all(args, tuple(order), bound, as_written)


def _match_all(
    patterns: tuple[Expr, ...], exprs: tuple[Expr, ...], bound: Bindings, as_written: bool
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for first in _match(patterns[0], exprs[0], bound, as_written):
        yield from _match_all(patterns[1:], exprs[1:], first, as_written)
