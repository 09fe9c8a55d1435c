"""Questions about statements and expressions, and substitutions in them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import is_

from isamap.diagnostics import Span
from isamap.ir.dtype import DType
from isamap.ir.index import Div, Index, Mod, Name, Read, const, var
from isamap.ir.literal import narrowed
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Extent,
    Instruction,
    Kernel,
    Literal,
    Op,
    Range,
    Reduce,
    Reduction,
    Statement,
)


def accesses(expr: Expr) -> tuple[Access, ...]:
    """Return the accesses of an expression, left to right, duplicates included."""
    match expr:
        case Access():
            return (expr,)
        case Op(_, args, _):
            return expr.answer("accesses", lambda: tuple(chain.from_iterable(map(accesses, args))))
        case Reduce(_, _, body, _):
            return accesses(body)
        case Literal() | Coordinate():
            return ()


def read_by(statement: Statement) -> frozenset[str]:
    """Return the buffers that a statement reads, indices included; not its target's own value."""
    found = {access.buffer for access in accesses(statement.value)}
    for access in (statement.target, *accesses(statement.value)):
        found |= {read.buffer for index in access.indices for read in index.reads}
    return frozenset(found)


def reduces(expr: Expr) -> tuple[Reduce, ...]:
    """Return the reductions within an expression, left to right; none is in another."""
    match expr:
        case Reduce():
            return (expr,)
        case Op(_, args, _):
            return tuple(found for arg in args for found in reduces(arg))
        case Literal() | Access() | Coordinate():
            return ()


def operations(expr: Expr) -> int:
    """Return how many operations an expression holds, a reduction counting as one."""
    match expr:
        case Op(_, args, _):
            return 1 + sum(map(operations, args))
        case Reduce(_, _, body, _):
            return 1 + operations(body)
        case Literal() | Access() | Coordinate():
            return 0


def names(expr: Expr) -> frozenset[str]:
    """Return the variables and symbols that the indices of an expression use."""
    return frozenset().union(*(index.names for index in read_indices(expr)))


def substitute_expr(expr: Expr, values: Mapping[str, Index | int]) -> Expr:
    """Return an expression with names replaced in all of its indices."""
    match expr:
        case Access(_, indices, _):
            changed = tuple([i.substitute(values) for i in indices])
            if all(map(is_, changed, indices)):
                return expr
            return replace(expr, indices=changed)
        case Coordinate(index, _):
            return replace(expr, index=index.substitute(values))
        case Op(_, args, _):
            parts = tuple([substitute_expr(arg, values) for arg in args])
            if all(map(is_, parts, args)):
                return expr
            return _number(expr, parts) or replace(expr, args=parts)
        case Reduce(_, _, body, _):
            return replace(expr, body=substitute_expr(body, values))
        case Literal():
            return expr


def _number(expr: Op, args: tuple[Expr, ...]) -> Literal | None:
    """Return the number that an extent is as another type, once it has a value that fits there."""
    match args:
        case (Coordinate(index, dtype),) if expr.op == "cast" and index.constant is not None:
            return narrowed(Literal(str(index.constant), dtype), expr.dtype)
    return None


def substitute(statement: Statement, values: Mapping[str, Index | int]) -> Statement:
    """Return a statement with names replaced; the ranges of its variables included."""
    target = substitute_expr(statement.target, values)
    assert isinstance(target, Access)
    variables = tuple(
        replace(v, lower=v.lower.substitute(values), extent=v.extent.substitute(values))
        for v in statement.variables
    )
    value = substitute_expr(statement.value, values)
    return replace(statement, target=target, value=value, variables=variables)


def zero_based(statement: Statement) -> Statement:
    """Return the statement with variables that start at 0."""
    shifted = {v.name: var(v.name) + v.lower for v in statement.variables if v.lower != const(0)}
    if not shifted:
        return statement
    moved = substitute(replace(statement, variables=()), shifted)
    variables = tuple(replace(v, lower=const(0)) for v in statement.variables)
    return replace(moved, variables=variables)


def names_in_order(index: Index) -> tuple[str, ...]:
    """Return the names in an index, those inside its parts included, as they are printed."""
    found: dict[str, None] = {}
    for atom in index.atoms:
        match atom:
            case Name(name):
                found.setdefault(name)
            case Div(value, _) | Mod(value, _):
                found.update(dict.fromkeys(names_in_order(value)))
            case Read(_, indices):
                for part in indices:
                    found.update(dict.fromkeys(names_in_order(part)))
    return tuple(found)


def used_names(target: Access, value: Expr) -> tuple[str, ...]:
    """Return the variables and extents of a statement: the target's first, then the value's."""
    return tuple(
        dict.fromkeys(
            name
            for part in (target, value)
            for index in read_indices(part)
            for name in names_in_order(index)
        )
    )


def read_indices(expr: Expr) -> tuple[Index, ...]:
    """Return all index expressions on which the value of ``expr`` depends."""
    match expr:
        case Access(_, indices, _):
            return indices
        case Coordinate(index, _):
            return (index,)
        case Op(_, args, _):
            return tuple(index for arg in args for index in read_indices(arg))
        case Reduce(_, _, body, _):
            return read_indices(body)
        case Literal():
            return ()


def reduction_variables(statement: Statement) -> tuple[str, ...]:
    """Return the variables that the target does not use, in order."""
    used = statement.target.names
    return tuple(v.name for v in statement.variables if v.name not in used)


def statement_names(kernel: Kernel) -> tuple[str, ...]:
    """Return a name for each statement: its target, numbered where there are several."""
    targets = [s.target.buffer for s in kernel.statements]
    return tuple(
        name if targets.count(name) == 1 else f"{name}#{targets[: i + 1].count(name)}"
        for i, name in enumerate(targets)
    )


def identity(reduction: Reduction, dtype: DType) -> Literal:
    """Return the value that a reduction starts from."""
    one = "1.0" if dtype.is_float else "true" if dtype.kind == "bool" else "1"
    zero = "0.0" if dtype.is_float else "false" if dtype.kind == "bool" else "0"
    match reduction:
        case "+=" | "or=" | "xor=" | "=":
            return Literal(zero, dtype)
        case "*=":
            return Literal(one, dtype)
        case "and=":
            if dtype.kind == "bool":
                return Literal("true", dtype)
            return Literal(str(-1 if dtype.kind == "signed" else dtype.highest), dtype)
        case "max=":
            return Literal(_least(dtype, "-"), dtype)
        case "min=":
            return Literal(_least(dtype, ""), dtype)


def _least(dtype: DType, sign: str) -> str:
    """Return the text of the value below (or, without sign, above) all others of a type."""
    if dtype.name == "f8e4m3":  # it has no infinity
        return f"{sign}448.0"
    if dtype.is_float:
        return f"{sign}inf"
    if dtype.kind == "bool":
        return "false" if sign else "true"
    return str(dtype.lowest if sign else dtype.highest)


def bind_extents(kernel: Kernel) -> Kernel:
    """Return the kernel with the extents that have a value replaced by it everywhere."""
    # Kernels that differ in their places alone are equal, but messages tell the places.
    return _with_values(kernel, kernel.span)


@lru_cache(maxsize=64)
def _with_values(kernel: Kernel, _: Span | None) -> Kernel:
    values = _values(kernel.extents)
    return replace(
        kernel,
        buffers=_bound_buffers(kernel.buffers, values),
        ranges=_bound_ranges(kernel.ranges, values),
        statements=tuple(substitute(s, values) for s in kernel.statements),
    )


def bind_lengths(instruction: Instruction) -> Instruction:
    """Return the instruction with the extents that have a value replaced by it everywhere."""
    values = _values(instruction.extents)
    if not values:
        return instruction
    return replace(
        instruction,
        operands=_bound_buffers(instruction.operands, values),
        ranges=_bound_ranges(instruction.ranges, values),
        statements=tuple(substitute(s, values) for s in instruction.statements),
    )


def _values(extents: tuple[Extent, ...]) -> dict[str, int]:
    return {e.name: e.value for e in extents if e.value is not None}


def _bound_buffers(buffers: tuple[Buffer, ...], values: dict[str, int]) -> tuple[Buffer, ...]:
    return tuple(
        replace(
            b,
            shape=tuple(extent.substitute(values) for extent in b.shape),
            strides=b.strides and tuple(pitch.substitute(values) for pitch in b.strides),
        )
        for b in buffers
    )


def _bound_ranges(ranges: tuple[Range, ...], values: dict[str, int]) -> tuple[Range, ...]:
    return tuple(
        replace(r, lower=r.lower.substitute(values), upper=r.upper.substitute(values))
        for r in ranges
    )
