"""Changes of a kernel that first leave in a buffer what a statement then reads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from isamap.explain.verify import Candidate
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op, Range, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses
from isamap.mapping.matching import Matching


def gathered(kernel: Kernel, number: int, variables: Sequence[str]) -> Iterator[Candidate]:
    """Yield the kernel with elements at other than linear indices first copied to a buffer.

    The copy is a statement of its own; the changed statement reads it at plain variables.
    """
    statement = kernel.statements[number]
    read: dict[Access, None] = {}
    for v in variables:
        for access in accesses(statement.value):
            if any(v in i.names and not i.is_linear_in((v,)) for i in access.indices) or any(
                _symbolic(i, v) for i in access.indices
            ):
                read[access] = None
    if not read or any(a.buffer == statement.target.buffer for a in read):
        return
    extents = {v.name: v for v in statement.variables}
    buffers, copies, value = list(kernel.buffers), [], statement.value
    for access in read:
        names = [v.name for v in statement.variables if _uses(access, v.name)]
        if any(extents[n].lower != const(0) for n in names) or not names:
            return
        fresh = _fresh(kernel, f"{access.buffer}_taken", buffers)
        shape = tuple(extents[n].extent for n in names)
        buffers.append(Buffer(fresh, "local", access.dtype, shape))
        place = Access(fresh, tuple(var(n) for n in names), access.dtype)
        copies.append(Statement(place, "=", access, tuple(extents[n] for n in names)))
        value = _replaced(value, access, place)
    changed = replace(statement, value=value)
    statements = (*kernel.statements[:number], *copies, changed, *kernel.statements[number + 1 :])
    listed = ", ".join(a.buffer for a in read)
    yield Candidate(
        f"first copy what is read of {listed} to a buffer of its own",
        "same",
        replace(
            kernel,
            buffers=tuple(buffers),
            statements=statements,
            ranges=_ranges(kernel, statement),
        ),
        number + len(copies),
    )


def staged(kernel: Kernel, number: int, matching: Matching) -> Iterator[Candidate]:
    """Yield the kernel with an operand that has to be computed first in a buffer of its own.

    Each operand is tried alone, then all of them, as one left over may be in the way, too.
    """
    statement = kernel.statements[number]
    extents = {v.name: v for v in statement.variables}
    parts: dict[Expr, str] = {}
    for operand, bound in matching.operands:
        expr = _part(statement.value, bound)
        if not isinstance(expr, Op) or bound == matching.statement.value:
            continue
        if all(extents[n].lower == const(0) for n in _names(expr, extents)):
            parts.setdefault(expr, operand)
    for one in parts.items():
        yield _staged(kernel, number, (one,))
    if len(parts) > 1:
        yield _staged(kernel, number, tuple(parts.items()))


def _staged(kernel: Kernel, number: int, parts: Sequence[tuple[Expr, str]]) -> Candidate:
    """Return the kernel with parts of a statement computed before it, for the named operands."""
    statement = kernel.statements[number]
    extents = {v.name: v for v in statement.variables}
    buffers, before, value = list(kernel.buffers), [], statement.value
    for expr, operand in parts:
        names = _names(expr, extents)
        fresh = _fresh(kernel, f"{statement.target.buffer}_{operand}", buffers)
        shape = tuple(extents[n].extent for n in names)
        buffers.append(Buffer(fresh, "local", expr.dtype, shape))
        place = Access(fresh, tuple(var(n) for n in names), expr.dtype)
        before.append(Statement(place, "=", expr, tuple(extents[n] for n in names)))
        value = _replaced(value, expr, place)
    listed = " and ".join(print_expr(expr) for expr, _ in parts)
    where = "a buffer of its own" if len(parts) == 1 else "buffers of their own"
    return Candidate(
        f"first compute {listed} in {where}",
        "same",
        replace(
            kernel,
            buffers=tuple(buffers),
            statements=(
                *kernel.statements[:number],
                *before,
                replace(statement, value=value),
                *kernel.statements[number + 1 :],
            ),
            ranges=_ranges(kernel, statement),
        ),
        number + len(before),
    )


def _names(expr: Expr, variables: Iterable[str]) -> tuple[str, ...]:
    """Return those of some variables that an expression uses."""
    used = frozenset(n for a in accesses(expr) for i in a.indices for n in i.names)
    return tuple(n for n in variables if n in used)


def _part(expr: Expr, wanted: Expr) -> Expr | None:
    """Return the part of a statement as it was written that prints like a part of it bound."""
    if print_expr(expr) == print_expr(wanted):
        return expr
    if isinstance(expr, Op):
        return next((p for arg in expr.args if (p := _part(arg, wanted)) is not None), None)
    return None


# --- parts ----------------------------------------------------------------------------------------
def _replaced(expr: Expr, old: Expr, new: Access) -> Expr:
    if expr == old:
        return new
    if isinstance(expr, Op):
        return replace(expr, args=tuple(_replaced(arg, old, new) for arg in expr.args))
    return expr


def _uses(access: Access, variable: str) -> bool:
    return any(variable in index.names for index in access.indices)


def _symbolic(index: Index, variable: str) -> bool:
    return index.is_linear_in((variable,)) and index.coefficient(variable).constant is None


def _fresh(kernel: Kernel, stem: str, buffers: Sequence[Buffer]) -> str:
    taken = {b.name for b in buffers} | {e.name for e in kernel.extents}
    taken |= {v.name for s in kernel.statements for v in s.variables}
    return next(n for n in (stem, *(f"{stem}{k}" for k in range(2, 99))) if n not in taken)


def _ranges(kernel: Kernel, statement: Statement) -> tuple[Range, ...]:
    """Return the kernel's ranges, those inferred for a statement written out besides."""
    known = {r.name for r in kernel.ranges}
    more = [
        Range(v.name, v.lower, v.lower + v.extent)
        for v in statement.variables
        if v.name not in known
    ]
    return (*kernel.ranges, *more)
