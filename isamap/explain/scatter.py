"""Changes of statements that add to elements which several of their variables choose together."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.explain.explanation import Effect
from isamap.explain.verify import Candidate
from isamap.ir.index import const, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Literal, Op, Range, Statement
from isamap.ir.statements import accesses, bind_extents, identity, substitute
from isamap.rewrite.build import fresh


def is_scattering(statement: Statement) -> bool:
    """Return whether an index of the target has several variables, and elements are added to."""
    return statement.reduction != "=" and any(len(i.names) > 1 for i in statement.target.indices)


def scattered(kernel: Kernel, number: int) -> Iterator[Candidate]:
    """Yield changes of a statement that scatters: it gathers, or adds partial results afterwards"""
    yield from gathering(kernel, number)
    yield from apart(kernel, number)


def gathering(kernel: Kernel, number: int) -> Iterator[Candidate]:
    """Yield the statement with one variable for an index of the target that had several.

    One of these is then read at a difference, outside its range too, where a padding value makes
    that iteration add nothing.
    """
    statement = kernel.statements[number]
    if not is_scattering(statement):
        return
    for at, index in enumerate(statement.target.indices):
        if len(index.names) < 2:
            continue
        for name in sorted(index.names):
            changed = _gathered(kernel, number, at, name)
            if changed is not None:
                yield changed


def apart(kernel: Kernel, number: int) -> Iterator[Candidate]:
    """Yield the kernel with what is added up first in a buffer of its own: partial results."""
    statement = kernel.statements[number]
    used = statement.target.names
    kept = tuple(v for v in statement.variables if v.name in used)
    if not is_scattering(statement) or not isinstance(statement.value, Op):
        return
    if any(v.lower != const(0) for v in kept):
        return
    name = fresh(kernel, f"{statement.target.buffer}_parts")
    dtype = statement.target.dtype
    place = Access(name, tuple(var(v.name) for v in kept), dtype)
    buffer = Buffer(name, "local", dtype, tuple(v.extent for v in kept))
    parts = replace(statement, target=place, span=None)
    rest = replace(statement, value=place, variables=kept, span=None)
    statements = (*kernel.statements[:number], parts, rest, *kernel.statements[number + 1 :])
    known = {r.name for r in kernel.ranges}
    ranges = tuple(Range(v.name, v.lower, v.lower + v.extent) for v in statement.variables)
    changed = replace(
        kernel,
        buffers=(*kernel.buffers, buffer),
        statements=statements,
        ranges=(*kernel.ranges, *(r for r in ranges if r.name not in known)),
    )
    several = len(kept) < len(statement.variables)
    text = f"first compute what is added to {statement.target.buffer} in a buffer of its own"
    yield Candidate(text, _order(statement) if several else "same", changed, number)


def _gathered(kernel: Kernel, number: int, at: int, name: str) -> Candidate | None:
    """Return the statement with a variable for index ``at`` of the target in place of ``name``."""
    statement = kernel.statements[number]
    target = statement.target
    index = target.indices[at]
    factor = index.coefficient(name).constant if index.is_linear_in((name,)) else None
    elsewhere = (i for n, i in enumerate(target.indices) if n != at)
    if factor not in (1, -1) or any(name in i.names for i in elsewhere):
        return None
    own = next(v for v in statement.variables if v.name == name)
    silent = _silent(kernel, number, name)
    if silent is None or own.lower != const(0):
        return None
    taken = tuple(v.name for v in statement.variables)
    place = fresh(kernel, target.buffer.lower(), taken)
    value = (var(place) - (index - var(name) * factor)) * factor
    variables = tuple(
        replace(v, name=place, extent=kernel.buffer(target.buffer).shape[at]) if v is own else v
        for v in statement.variables
    )
    moved = substitute(replace(statement, variables=()), {name: value})
    indices = tuple(var(place) if n == at else i for n, i in enumerate(target.indices))
    changed = replace(
        moved, target=replace(target, indices=indices), variables=variables, span=None
    )
    buffers = tuple(
        replace(b, pad=silent[b.name]) if b.name in silent else b for b in kernel.buffers
    )
    known = {r.name for r in kernel.ranges}
    ranges = tuple(
        Range(v.name, v.lower, v.lower + v.extent) for v in variables if v.name not in known
    )
    statements = (*kernel.statements[:number], changed, *kernel.statements[number + 1 :])
    others = [s for n, s in enumerate(kernel.statements) if n != number]
    gone = not any(v.name == name for s in others for v in s.variables)
    kept = tuple(r for r in kernel.ranges if not (gone and r.name == name))
    padded = ", ".join(f"{b} with {silent[b].text}" for b in silent)
    text = f"choose elements of {target.buffer} by one variable, {place}; pad {padded}"
    return Candidate(
        text,
        _order(statement),
        replace(kernel, buffers=buffers, statements=statements, ranges=(*kept, *ranges)),
        number,
    )


def _silent(kernel: Kernel, number: int, name: str) -> dict[str, Literal] | None:
    """Return the padding with which iterations outside a variable's range add nothing.

    That is so if a factor of what is added, or all of it, is an input that is read at the variable
    alone, in a dimension of its extent.  All inputs that are read at the variable need padding.
    """
    bound = bind_extents(kernel)
    statement = bound.statements[number]
    extent = next(v.extent for v in statement.variables if v.name == name)
    factors = _factors(statement) if kernel.permissions.finite else ()
    found: dict[str, Literal] = {}
    is_silent = False
    for access in accesses(statement.value):
        if not any(name in i.names for i in access.indices):
            continue
        alone = access == statement.value
        literal = identity(statement.reduction if alone else "+=", access.dtype)
        buffer = bound.buffer(access.buffer)
        if buffer.role not in ("in", "const") or buffer.pad not in (None, literal):
            return None
        found[buffer.name] = literal
        dims = zip(access.indices, buffer.shape, strict=True)
        whole = any(index == var(name) and size == extent for index, size in dims)
        is_silent = is_silent or (whole and (alone or access in factors))
    return found if is_silent else None


def _factors(statement: Statement) -> tuple[Access, ...]:
    """Return the accesses of which each makes what a sum adds zero."""

    def inside(expr: Expr) -> Iterator[Access]:
        match expr:
            case Access():
                yield expr
            case Op("*" | "cast", args, _):
                for arg in args:
                    yield from inside(arg)

    return tuple(inside(statement.value)) if statement.reduction == "+=" else ()


def _order(statement: Statement) -> Effect:
    """Return what adding in another order may do to the result."""
    rounds = statement.reduction in ("+=", "*=") and statement.target.dtype.is_float
    return "rounding" if rounds else "same"
