"""Changes of a kernel that may make an instruction match: each a small function of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from isamap.explain.alignment import conversion_effect, worse
from isamap.explain.explanation import Effect
from isamap.explain.near import Near
from isamap.explain.places import entangling
from isamap.explain.verify import Candidate
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import (
    Access,
    Buffer,
    Expr,
    Extent,
    Kernel,
    Literal,
    Op,
    Range,
    Statement,
)
from isamap.ir.statements import accesses, bind_extents
from isamap.mapping.groups import Group, whole_variables


def rewritten(kernel: Kernel, number: int, near: Near) -> Iterator[Candidate]:
    """Yield the statement as the instruction has it: with casts, then with other buffer types."""
    if near.statement is None:
        return
    text = "; ".join(near.steps)
    target = near.statement.target.buffer
    types = {target: near.target} if near.target else {}
    changed = _with(kernel, number, near.statement, types)
    yield Candidate(text, near.effect, changed, number, near.reasons)
    retyped = _narrowed(near, kernel)
    if retyped is not None:
        value, found, effect = retyped
        statement = replace(near.statement, value=value)
        every = {**types, **found}
        parts = [f"make {name} {dtype}" for name, dtype in every.items()]
        rest = [s for s in near.steps if not s.startswith(("convert ", "make "))]
        yield Candidate(
            "; ".join((*parts, *rest)),
            worse(effect, near.effect if rest else "same"),
            _with(kernel, number, statement, every),
            number,
            near.reasons,
        )


def declared(kernel: Kernel, number: int, near: Near) -> Iterator[Candidate]:
    """Yield the kernel with inputs declared to hold only what the instruction's operands can."""
    found: dict[str, DType] = {}
    for _, bound in near.alignment.bound:
        match bound:
            case Op("cast", (Access(name, _, source),), dtype) if _is_wider(source, dtype):
                found[name] = dtype
    wanted = {
        b.name: (Literal(str(t.lowest), b.dtype), Literal(str(t.highest), b.dtype))
        for b in kernel.buffers
        if (t := found.get(b.name)) and b.role in ("in", "const") and b.values is None
    }
    if not wanted or len(wanted) < len(found):
        return
    buffers = tuple(replace(b, values=wanted.get(b.name, b.values)) for b in kernel.buffers)
    text = "; ".join(f"declare that {n} holds {a.text} .. {b.text}" for n, (a, b) in wanted.items())
    changed = replace(kernel, buffers=buffers)
    yield Candidate(text, "values", changed, number, near.reasons, rewrites=True)


def _is_wider(source: DType, target: DType) -> bool:
    return source.is_integer and target.is_integer and source != target


def approximated(kernel: Kernel, near: Near, number: int) -> Iterator[Candidate]:
    """Yield the kernel with errors permitted, ever larger ones, where types differ in precision."""
    if near.effect != "rounding" or kernel.permissions.approximate is not None:
        return
    for digits in (6, 5, 4, 3, 2):
        bound = Fraction(1, 10**digits)
        changed = replace(kernel, permissions=replace(kernel.permissions, approximate=bound))
        text = f"permit a relative error of 1e-{digits}"
        yield Candidate(text, "rounding", changed, number, near.reasons, rewrites=True)


def permitted(candidate: Candidate) -> Iterator[Candidate]:
    """Yield the kernel with more permissions: one, then all of them."""
    now = candidate.kernel.permissions
    for count in (1, 2):
        for names in combinations(("reassociate", "finite", "distribute"), count):
            if all(not getattr(now, name) for name in names):
                changed = replace(
                    now,
                    reassociate=now.reassociate or "reassociate" in names,
                    finite=now.finite or "finite" in names,
                    distribute=now.distribute or "distribute" in names,
                )
                lead = f"{candidate.text}; " if candidate.text else ""
                yield Candidate(
                    f"{lead}permit {' and '.join(_PERMISSIONS[n] for n in names)}",
                    worse(candidate.effect, "trust" if names == ("finite",) else "rounding"),
                    replace(candidate.kernel, permissions=changed),
                    candidate.statement,
                    candidate.reasons,
                )


_PERMISSIONS = {
    "reassociate": "to reassociate",
    "finite": "to assume that values are finite",
    "distribute": "to distribute products over sums",
}


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


def sized(kernel: Kernel, number: int, axes: Sequence[int]) -> Iterator[Candidate]:
    """Yield the kernel with one extent made as long as an axis, or given a value at all."""
    statement = kernel.statements[number]
    for extent in kernel.extents:
        if extent.value is None and any(_multiplies(statement, extent.name)):
            for value in (1, 2):
                yield _resized(kernel, number, extent, value)
    for extent in kernel.extents:
        used = any(extent.name in v.extent.names for v in statement.variables)
        for size in sorted(set(axes)):
            if used and extent.value is not None and extent.value < size:
                yield _resized(kernel, number, extent, size)


def shortened(kernel: Kernel, group: Group, axes: Sequence[int]) -> Iterator[Candidate]:
    """Yield the kernel with an extent of a reduction that must be whole made as long as an axis."""
    names = whole_variables(group.statement)
    statements = kernel.statements[group.first : group.first + group.count]
    variables = [v for s in statements for v in s.variables if v.name in names]
    for extent in kernel.extents:
        if extent.value is None or not any(extent.name in v.extent.names for v in variables):
            continue
        for size in sorted(set(axes), reverse=True):
            if size < extent.value:
                changed = _resized(kernel, group.first, extent, size)
                yield replace(changed, together=group.count)


def transposed(kernel: Kernel, number: int) -> Iterator[Candidate]:
    """Yield the kernel with two dimensions of one buffer exchanged."""
    statement = kernel.statements[number]
    used = dict.fromkeys(a.buffer for a in (statement.target, *accesses(statement.value)))
    for name in used:
        buffer = kernel.buffer(name)
        for one, other in combinations(range(len(buffer.shape)), 2):
            if any(_is_index_buffer(s, name) for s in kernel.statements):
                continue
            order = list(range(len(buffer.shape)))
            order[one], order[other] = other, one
            moved = replace(buffer, shape=tuple(buffer.shape[n] for n in order))
            buffers = tuple(moved if b.name == name else b for b in kernel.buffers)
            statements = tuple(_permuted(s, name, order) for s in kernel.statements)
            changed = replace(kernel, buffers=buffers, statements=statements)
            text = f"exchange dimensions {one} and {other} of {name}"
            yield Candidate(text, "layout", changed, number)


# --- parts ----------------------------------------------------------------------------------------
def _with(kernel: Kernel, number: int, statement: Statement, types: Mapping[str, DType]) -> Kernel:
    statements = (*kernel.statements[:number], statement, *kernel.statements[number + 1 :])
    buffers = tuple(replace(b, dtype=types.get(b.name, b.dtype)) for b in kernel.buffers)
    return replace(kernel, statements=statements, buffers=buffers)


def _narrowed(near: Near, kernel: Kernel) -> tuple[Expr, dict[str, DType], Effect] | None:
    """Return the changed value with buffers of the wanted types in place of casts of them."""
    assert near.statement is not None
    types: dict[str, DType] = {}
    effect: Effect = "same"
    for _, bound in near.alignment.bound:
        match bound:
            case Op("cast", (Access(name, _, source),), dtype) if source != dtype:
                if types.setdefault(name, dtype) != dtype or name == near.statement.target.buffer:
                    return None
                effect = worse(effect, conversion_effect(source, dtype))
    if not types:
        return None
    return _retyped(near.statement.value, types), types, effect


def _retyped(expr: Expr, types: Mapping[str, DType]) -> Expr:
    match expr:
        case Op("cast", (Access(name, _, _) as inner,), dtype) if types.get(name) == dtype:
            return replace(inner, dtype=dtype)
        case Access(name, _, _) if name in types:
            return replace(expr, dtype=types[name])
        case Op(_, args, _):
            return replace(expr, args=tuple(_retyped(arg, types) for arg in args))
        case _:
            return expr


def _replaced(expr: Expr, old: Access, new: Access) -> Expr:
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


def _multiplies(statement: Statement, symbol: str) -> Iterator[bool]:
    variables = [v.name for v in statement.variables]
    for v in variables:
        found = entangling(statement, v)
        if found is not None:
            yield symbol in found[1].names


def _resized(kernel: Kernel, number: int, extent: Extent, value: int) -> Candidate:
    changed = replace(extent, value=value)
    extents = tuple(changed if e.name == extent.name else e for e in kernel.extents)
    text = f"give {extent.name} the value {value}"
    return Candidate(text, "size", replace(kernel, extents=extents), number)


def _permuted(statement: Statement, name: str, order: Sequence[int]) -> Statement:
    def change(expr: Expr) -> Expr:
        match expr:
            case Access(buffer, indices, _) if buffer == name:
                return replace(expr, indices=tuple(indices[n] for n in order))
            case Op(_, args, _):
                return replace(expr, args=tuple(change(arg) for arg in args))
            case _:
                return expr

    target = change(statement.target)
    assert isinstance(target, Access)
    return replace(statement, target=target, value=change(statement.value))


def _is_index_buffer(statement: Statement, name: str) -> bool:
    found = (statement.target, *accesses(statement.value))
    return any(r.buffer == name for a in found for i in a.indices for r in i.reads)


def numbered(kernel: Kernel, number: int) -> Statement:
    """Return a statement of the kernel with the extents that have a value replaced by it."""
    return bind_extents(kernel).statements[number]
