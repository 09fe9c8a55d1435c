"""The rule that computes once what two local buffers hold."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.ir.index import var
from isamap.ir.inline import is_whole
from isamap.ir.nodes import Access, Expr, Kernel, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, read_by, substitute
from isamap.rewrite.build import is_sole_writer, replaced
from isamap.rewrite.rule import Rewriting

NAME = "share-local"


def share_local(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the kernel without a statement that computes what an earlier local buffer holds.

    Of ``X_s16[i, j] = s16(X[i, j])`` and ``X_s162[i, j] = s16(X[i, j])``, which two products need
    that were rewritten each by itself, the first one is left, and both read that.
    """
    own = kernel.statements[number]
    name = own.target.buffer
    if not _is_local(kernel, number) or _is_index(kernel, name):
        return
    for first in range(number):
        other = kernel.statements[first]
        written = {s.target.buffer for s in kernel.statements[first:number]}
        if not _is_local(kernel, first) or read_by(own) & written:
            continue
        if _value(kernel, own) == _value(kernel, other):
            kept = other.target.buffer
            note = f"{print_expr(own.target)} is what {kept} holds already"
            yield Rewriting(NAME, number, _without(kernel, number, name, kept), (), note)
            return


def _is_local(kernel: Kernel, number: int) -> bool:
    """Return whether a statement alone writes all of a local buffer, each element once."""
    statement = kernel.statements[number]
    buffer = kernel.buffer(statement.target.buffer)
    alone = statement.reduction == "=" and is_sole_writer(kernel, number)
    is_local = buffer.role == "local" and buffer.name not in read_by(statement)
    return alone and is_local and is_whole(statement.target, statement.variables, buffer)


def _value(kernel: Kernel, statement: Statement) -> tuple[object, Expr]:
    """Return what a statement fills and its value, which names the places by their dimensions."""
    buffer = kernel.buffer(statement.target.buffer)
    places = {index.name: var(f"{n}") for n, index in enumerate(statement.target.indices)}
    moved = substitute(
        replace(statement, variables=()), {a: b for a, b in places.items() if a is not None}
    )
    return (buffer.shape, buffer.dtype, buffer.pad), moved.value


def _without(kernel: Kernel, number: int, name: str, kept: str) -> Kernel:
    """Return the kernel without a statement; what read its buffer reads another one."""
    less = replaced(kernel, number, ())
    statements = tuple(
        replace(one, value=_reading(one.value, name, kept)) for one in less.statements
    )
    buffers = tuple(buffer for buffer in less.buffers if buffer.name != name)
    return replace(less, buffers=buffers, statements=statements)


def _reading(expr: Expr, name: str, kept: str) -> Expr:
    """Return an expression that reads one buffer in place of another."""
    match expr:
        case Access(buffer):
            return replace(expr, buffer=kept) if buffer == name else expr
        case Op(_, args, _):
            return replace(expr, args=tuple(_reading(arg, name, kept) for arg in args))
        case _:
            return expr


def _is_index(kernel: Kernel, name: str) -> bool:
    """Return whether an index is read from a buffer."""
    return any(
        read.buffer == name
        for statement in kernel.statements
        for access in (statement.target, *accesses(statement.value))
        for index in access.indices
        for read in index.reads
    )
