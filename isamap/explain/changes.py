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
from isamap.ir.nodes import (
    Access,
    Expr,
    Extent,
    Kernel,
    Literal,
    Op,
    Statement,
)
from isamap.ir.statements import accesses, bind_extents
from isamap.mapping.groups import Group, whole_variables
from isamap.rewrite.rules import APPROXIMATED


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
    """Yield the kernel with errors permitted, ever larger ones, where types differ in precision, or
    rules have other forms of what is computed.
    """
    other = near.effect == "rounding" or _has_other_forms(kernel.statements[number].value)
    if not other or kernel.permissions.approximate is not None:
        return
    for digits in (6, 5, 4, 3, 2):
        bound = Fraction(1, 10**digits)
        changed = replace(kernel, permissions=replace(kernel.permissions, approximate=bound))
        text = f"permit a relative error of 1e-{digits}"
        yield Candidate(text, "rounding", changed, number, near.reasons, rewrites=True)


def _has_other_forms(expr: Expr) -> bool:
    """Return whether rules may compute a part of it in another way that is a little off."""
    if not isinstance(expr, Op):
        return False
    return (expr.op in APPROXIMATED and expr.dtype.is_float) or any(
        map(_has_other_forms, expr.args)
    )


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


def sized(kernel: Kernel, number: int, axes: Sequence[int]) -> Iterator[Candidate]:
    """Yield the kernel with one extent made as long as an axis or so many of it, or given a value.

    A length that is no multiple of an axis becomes the next one.
    """
    statement = kernel.statements[number]
    for extent in kernel.extents:
        if extent.value is None and any(_multiplies(statement, extent.name)):
            for value in (1, 2):
                yield _resized(kernel, number, extent, value)
    for extent in kernel.extents:
        used = any(extent.name in v.extent.names for v in statement.variables)
        if not used or extent.value is None:
            continue
        own = extent.value
        for size in sorted({-(-own // axis) * axis for axis in axes}):
            if own < size:
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
                own = conversion_effect(source, dtype)
                if own == "different" and source.is_integer and dtype.is_integer:
                    own = "values"  # what callers give must be of the type
                effect = worse(effect, own)
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
