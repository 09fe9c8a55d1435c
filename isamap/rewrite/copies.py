"""Copies of whole buffers, and parts of expressions in another type: what numeric rules share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Literal, Op, Statement
from isamap.ir.statements import accesses
from isamap.rewrite.build import Draft, fresh, local


@dataclass(frozen=True, slots=True)
class Copy:
    """A local buffer of another buffer's shape, and the statement that fills it."""

    buffer: Buffer
    draft: Draft


def copied(
    kernel: Kernel,
    name: str,
    copy: str,
    element: Callable[[Access], Expr],
    pad: Literal | None,
    order: Sequence[int] | None = None,
) -> Copy:
    """Return a local buffer ``copy`` that holds ``element`` of each element of a buffer.

    Its dimensions are in an ``order``, or in that of the buffer.
    """
    source = kernel.buffer(name)
    names = place_names(kernel, source, copy)
    indices = tuple(map(var, names))
    moved = element(Access(name, indices, source.dtype))
    sizes = dict(zip(names, source.shape, strict=True))
    order = range(len(names)) if order is None else order
    made = replace(local(copy, moved.dtype, [source.shape[n] for n in order]), pad=pad)
    place = Access(copy, tuple(indices[n] for n in order), moved.dtype)
    return Copy(made, Draft(place, "=", moved, sizes))


def place_names(kernel: Kernel, buffer: Buffer, copy: str) -> list[str]:
    """Return a variable for each dimension of a buffer that is copied to ``copy``."""
    names: list[str] = []
    for place in range(len(buffer.shape)):
        names.append(fresh(kernel, "ijlxyz"[place % 6], [*names, copy]))
    return names


def narrow_types(statement: Statement) -> Iterator[DType]:
    """Yield integer types; those of four bits only where the statement has one."""
    four = any(access.dtype.bits == 4 for access in accesses(statement.value))
    for dtype in DTYPES.values():
        if dtype.is_integer and (dtype.bits > 4 or four):
            yield dtype


def converted(expr: Expr, dtype: DType) -> Expr:
    """Return an expression whose value fits a type, in that type, without widening it before."""
    while isinstance(expr, Op) and expr.op == "cast" and expr.dtype.holds(expr.args[0].dtype):
        (expr,) = expr.args
    return expr if expr.dtype == dtype else Op("cast", (expr,), dtype)


def with_part(expr: Expr, old: Expr, new: Expr) -> Expr:
    """Return an expression with a part in another type, converted back where its type shows."""
    found = _parts(expr, old, new)
    return found if found.dtype == expr.dtype else Op("cast", (found,), expr.dtype)


def _parts(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr == old:
        return new
    match expr:
        case Op(op, args, dtype):
            found = tuple(_parts(arg, old, new) for arg in args)
            if op in ("cast", "sat"):
                if dtype.is_integer and found[0].dtype == dtype:
                    return found[0]
                return replace(expr, args=found)
            back = tuple(
                f if f.dtype == arg.dtype else Op("cast", (f,), arg.dtype)
                for f, arg in zip(found, args, strict=True)
            )
            return replace(expr, args=back)
        case _:
            return expr


def elements(buffer: Buffer) -> float:
    """Return how many elements a buffer has, infinitely many if only a run tells."""
    return prod(inf if n.constant is None else float(n.constant) for n in buffer.shape)
