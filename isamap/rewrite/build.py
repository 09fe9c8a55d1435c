"""Making kernels that are valid: names that are free, variables in order, ranges that are said."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.diagnostics import Span
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op, Range, Reduction, Statement, Variable
from isamap.ir.statements import bind_extents, substitute, used_names, zero_based


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement to be: ``extents`` gives the iterations of each variable, which start at 0.

    It is told to stand at ``span``; None where the one stood that it replaces.
    """

    target: Access
    reduction: Reduction
    value: Expr
    extents: Mapping[str, Index]
    span: Span | None = None


def remade(expr: Expr, change: Callable[[Op], Expr | None]) -> Expr:
    """Return an expression with what ``change`` makes of its operations, the inner ones first; None
    leaves one as it is.
    """
    if not isinstance(expr, Op):
        return expr
    inner = replace(expr, args=tuple(remade(arg, change) for arg in expr.args))
    return change(inner) or inner


def normal(kernel: Kernel) -> Kernel:
    """Return the kernel with extents bound and all variables starting at 0, their ranges said.

    A variable that has different ranges in different statements gets a name for each.
    """
    statements = [zero_based(statement) for statement in bind_extents(kernel).statements]
    return _assembled(bind_extents(kernel), (), statements)


def extents(statement: Statement) -> dict[str, Index]:
    """Return the iterations of each variable of a statement whose variables start at 0."""
    return {v.name: v.extent for v in statement.variables}


def fresh(kernel: Kernel, wanted: str, taken: Iterable[str] = ()) -> str:
    """Return a name that the kernel does not use: ``wanted``, numbered if need be."""
    used = {b.name for b in kernel.buffers} | {e.name for e in kernel.extents} | set(taken)
    for statement in kernel.statements:
        used |= {v.name for v in statement.variables}
    used |= {r.name for r in kernel.ranges}
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}{number}"
    return name


def local(name: str, dtype: DType, shape: Sequence[Index]) -> Buffer:
    """Return a buffer that exists within the kernel only."""
    return Buffer(name, "local", dtype, tuple(shape))


def is_sole_writer(kernel: Kernel, number: int) -> bool:
    """Return whether a statement is the only one that writes its target, which is no ``inout``.

    The target then starts from the identity of whichever reduction the statement has.
    """
    name = kernel.statements[number].target.buffer
    writers = [s for s in kernel.statements if s.target.buffer == name]
    return len(writers) == 1 and kernel.buffer(name).role in ("out", "local")


def replaced(
    kernel: Kernel, number: int, drafts: Sequence[Draft], locals_: Sequence[Buffer] = ()
) -> Kernel:
    """Return the kernel with one statement replaced by others, and more local buffers.

    The kernel is :func:`normal`, and so is the result.
    """
    there = kernel.statements[number].span
    statements = [
        *kernel.statements[:number],
        *(_statement(draft, draft.span or there) for draft in drafts),
        *kernel.statements[number + 1 :],
    ]
    return _assembled(kernel, locals_, statements)


def _statement(draft: Draft, span: Span | None) -> Statement:
    names = [n for n in used_names(draft.target, draft.value) if n in draft.extents]
    unused = [n for n in draft.extents if n not in names]
    assert not unused, f"{', '.join(unused)} occurs nowhere in the statement"
    variables = tuple(Variable(n, const(0), draft.extents[n]) for n in names)
    return Statement(draft.target, draft.reduction, draft.value, variables, span)


def _assembled(
    kernel: Kernel, locals_: Sequence[Buffer], statements: Iterable[Statement]
) -> Kernel:
    """Return a kernel of statements that start at 0, with one range for each variable's name."""
    buffers = (*kernel.buffers, *locals_)
    kernel = replace(kernel, buffers=buffers)
    chosen: dict[str, Index] = {}
    result: list[Statement] = []
    for statement in statements:
        own = {variable.name for variable in statement.variables}
        names: dict[str, str] = {}
        for variable in statement.variables:
            if chosen.get(variable.name, variable.extent) != variable.extent:
                avoided = own | set(names.values())
                name = _namesake(kernel, variable, chosen, avoided)
                names[variable.name] = name
                chosen[name] = variable.extent
            else:
                chosen[variable.name] = variable.extent
        result.append(_renamed(statement, names) if names else statement)
    used = {v.name for statement in result for v in statement.variables}
    ranges = tuple(Range(n, const(0), e) for n, e in chosen.items() if n in used)
    return replace(kernel, ranges=ranges, statements=tuple(result))


def _namesake(
    kernel: Kernel, variable: Variable, chosen: Mapping[str, Index], avoided: set[str]
) -> str:
    """Return another name for a variable: one of its extent that is known, or a free one."""
    for name, extent in chosen.items():
        alike = extent == variable.extent and name.rstrip("0123456789") == variable.name
        if alike and name not in avoided:
            return name
    return fresh(kernel, variable.name, [*chosen, *avoided])


def _renamed(statement: Statement, names: Mapping[str, str]) -> Statement:
    moved = substitute(replace(statement, variables=()), {a: var(b) for a, b in names.items()})
    variables = tuple(replace(v, name=names.get(v.name, v.name)) for v in statement.variables)
    return replace(moved, variables=variables)
