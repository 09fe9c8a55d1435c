"""An instruction call as a kernel: the same statements, on the arrays that the call is given.

What a call binds is bound: counts and pitches that are numbers, immediates, operands that are one
place.  Extents that the call knows only when it runs are symbols of the kernel.  Arrays of kernels
are dense, so an operand with pitches becomes an array with more, or longer, dimensions of which the
statements use a part (:class:`_Layout`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, row_major, total, var
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Extent,
    Kernel,
    Literal,
    Op,
    Permissions,
    Reduce,
    Role,
    Statement,
    Variable,
)
from isamap.ir.statements import (
    accesses,
    bind_lengths,
    read_indices,
    substitute_expr,
    zero_based,
)
from isamap.lower.nodes import Call, Operand, Window
from isamap.rewrite.build import normal


class UnservedError(ValueError):
    """A call is no kernel; the message says why."""


@dataclass(frozen=True, slots=True)
class Called:
    """A call as a kernel.

    ``pointers`` are the operands that its arrays stand for, in order, ``symbols`` the instruction's
    extents that are its symbols, and ``apart`` says that no two of its arrays lie in one.
    """

    kernel: Kernel
    pointers: tuple[str, ...]
    symbols: tuple[str, ...]
    apart: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    """A dense array in which an operand lies: ``shape``, and how an index of the operand becomes
    one of the array; ``whole`` says that the operand is all of it."""

    shape: tuple[Index, ...]
    factors: tuple[tuple[tuple[int, Index], ...], ...]
    whole: bool = False

    def indices(self, own: Sequence[Index]) -> tuple[Index, ...]:
        """Return where the array has an element of the operand."""
        return tuple(total(own[d] * factor for d, factor in index) for index in self.factors)


def called(call: Call, entry: Entry, lent: Mapping[str, str], permissions: Permissions) -> Called:
    """Return a call as a kernel that is named as the instruction.

    ``lent`` says which array lies where another one does.  Sums may be reordered, and values are
    taken to be finite, where ``permissions`` say so.  UnservedError where there is no such kernel.
    """
    return _Reader(call, entry, lent).kernel(permissions)


class _Reader:
    """Makes the kernel of one call."""

    def __init__(self, call: Call, entry: Entry, lent: Mapping[str, str]) -> None:
        self.extents = {n: i for n, i in call.symbols if i.constant is not None}
        self.instruction = bind_lengths(entry.instruction)
        self.places = dict(call.operands)
        self.lent = lent
        self.buffers: dict[str, Buffer] = {}
        self.layouts: dict[str, _Layout] = {}
        self.before: list[Statement] = []
        self.after: list[Statement] = []
        self.literals: dict[str, Literal] = {}
        self.renamed: dict[str, str] = {}
        self.turned: dict[str, tuple[int | None, ...]] = {}
        self.statements = [self._bound(zero_based(s)) for s in self.instruction.statements]

    def _bound(self, statement: Statement) -> Statement:
        """Return a statement of the call's extents, without variables of one value."""
        sizes = {v.name: v.extent.substitute(self.extents) for v in statement.variables}
        values = {**self.extents, **{n: const(0) for n, e in sizes.items() if e == const(1)}}
        target = substitute_expr(statement.target, values)
        assert isinstance(target, Access)
        value = substitute_expr(statement.value, values)
        rest = tuple(Variable(n, const(0), e) for n, e in sizes.items() if e != const(1))
        return Statement(target, statement.reduction, value, rest)

    def kernel(self, permissions: Permissions) -> Called:
        """Return the kernel and what its arrays and symbols stand for."""
        groups = self._groups()
        for group in groups:
            self._operand(group)
        for operand in self.instruction.operands:
            if operand.role in ("local", "table"):
                shape = tuple(e.substitute(self.extents) for e in operand.shape)
                self.buffers[operand.name] = replace(operand, shape=shape)
        body = [self._moved(statement) for statement in self.statements]
        statements = (*self.before, *body, *self.after)
        known = [e.name for e in self.instruction.extents if e.value is None]
        symbols = tuple(n for n in known if n in _names(self.buffers.values(), statements))
        own = Permissions(permissions.reassociate, permissions.finite)
        extents = tuple(Extent(name) for name in symbols)
        buffers = tuple(self.buffers.values())
        made = Kernel(self.instruction.name, extents, own, buffers, (), statements)
        pointers = tuple(b.name for b in buffers if b.role not in ("local", "table"))
        return Called(normal(made), pointers, symbols, self._apart(groups))

    # --- the operands ---------------------------------------------------------------------------
    def _groups(self) -> list[list[Buffer]]:
        """Return the operands, those that are one place together."""
        found: dict[object, list[Buffer]] = {}
        for operand in self.instruction.places:
            place = self._place(self.places[operand.name])
            key = ("alone", operand.name) if place is None else ("at", place)
            found.setdefault(key, []).append(operand)
        return [
            part
            for group in found.values()
            for part in ([group] if _written(group) else [[operand] for operand in group])
        ]

    def _place(self, place: Operand) -> object:
        match place:
            case Window(buffer, offset):
                return Window(self.lent.get(buffer, buffer), offset)
            case Literal() | Index():
                return None
            case _:
                return place.name

    def _apart(self, groups: Sequence[Sequence[Buffer]]) -> bool:
        """Return whether each array is another one, where some are written."""
        places = [self._place(self.places[group[0].name]) for group in groups]
        arrays = [p.buffer if isinstance(p, Window) else p for p in places if p is not None]
        return len(set(arrays)) == len(arrays)

    def _operand(self, group: Sequence[Buffer]) -> None:
        """Declare the array of operands that are one place."""
        last = next((o for o in group if o.role != "in"), group[0])
        place = self.places[last.name]
        if isinstance(place, Literal):
            self.literals[last.name] = place
            return
        shape = tuple(e.substitute(self.extents) for e in last.shape)
        strides = _strides(last, self.extents)
        for other in group:
            extents = tuple(e.substitute(self.extents) for e in other.shape)
            turned = _along(extents, _strides(other, self.extents), shape, strides)
            if turned is None:
                text = f"operands {last.name} and {other.name} lie in one place, differently"
                raise UnservedError(text)
            self.renamed[other.name] = last.name
            self.turned[other.name] = turned
        role: Role = "inout" if len(group) > 1 else last.role
        layout = _dense(shape, strides) or _nested(shape, strides, sure=role != "in")
        if layout is None and role == "in":
            layout = _flat(shape, strides)
        if layout is None:
            raise UnservedError(f"the elements of operand {last.name} lie in no rows")
        leaves = last.pad is not None and self._leaves(last.name, shape)
        own = Buffer(last.name, role, last.dtype, layout.shape, values=last.values)
        if layout.whole or not leaves:
            own = replace(own, pad=last.pad if leaves else None)
        elif role == "in":
            self._apart_first(own, shape, layout, last.pad)
            return
        else:
            raise UnservedError(f"operand {last.name} is read outside its shape, and written")
        if role == "out" and not layout.whole:
            own = replace(own, role="inout")
            if not self._assigned(last.name):
                self._apart_last(own, shape, layout)
                return
        self.buffers[last.name] = own
        self.layouts[last.name] = layout

    def _apart_first(
        self, own: Buffer, shape: tuple[Index, ...], layout: _Layout, pad: Literal | None
    ) -> None:
        """Read an operand outside of which there is a padding value from a dense copy."""
        copy, source, variables = self._copied(own, shape, layout)
        self.buffers[copy.buffer] = Buffer(copy.buffer, "local", own.dtype, shape, pad=pad)
        self.before.append(Statement(copy, "=", source, variables))

    def _apart_last(self, own: Buffer, shape: tuple[Index, ...], layout: _Layout) -> None:
        """Compute what begins with an identity in a dense local, and copy it to its place."""
        copy, target, variables = self._copied(own, shape, layout)
        self.buffers[copy.buffer] = Buffer(copy.buffer, "local", own.dtype, shape)
        self.after.append(Statement(target, "=", copy, variables))

    def _copied(
        self, own: Buffer, shape: tuple[Index, ...], layout: _Layout
    ) -> tuple[Access, Access, tuple[Variable, ...]]:
        """Return an operand's element in its dense copy and in its place, and their variables."""
        names = [f"{own.name}_{d}" for d in range(len(shape))]
        variables = tuple(Variable(n, const(0), e) for n, e in zip(names, shape, strict=True))
        at = tuple(map(var, names))
        copy = f"{own.name}_dense"
        self.buffers[own.name] = own
        self.renamed[own.name] = copy
        place = Access(own.name, layout.indices(at), own.dtype)
        return Access(copy, at, own.dtype), place, variables

    def _assigned(self, name: str) -> bool:
        """Return whether an operand is written once and read by nothing."""
        writers = [s for s in self.statements if s.target.buffer == name]
        read = {a.buffer for s in self.statements for a in accesses(s.value)}
        return name not in read and [s.reduction for s in writers] == ["="]

    def _leaves(self, name: str, shape: tuple[Index, ...]) -> bool:
        """Return whether some statement may read an operand outside its shape."""
        for statement in self.statements:
            own = {v.name: v for v in statement.variables}
            for access in accesses(statement.value):
                if access.buffer != name:
                    continue
                for index, extent in zip(access.indices, shape, strict=True):
                    alone = own.get(index.name or "")
                    if alone is not None and alone.extent == extent:
                        continue
                    sizes = {n: v.extent.constant for n, v in own.items()}
                    ends = {n: (0, size - 1) for n, size in sizes.items() if size is not None}
                    bounds = index.bounds(ends)
                    if bounds is None or extent.constant is None:
                        return True
                    if bounds[0] < 0 or bounds[1] >= extent.constant:
                        return True
        return False

    # --- the statements -------------------------------------------------------------------------
    def _moved(self, statement: Statement) -> Statement:
        target = self._expr(statement.target)
        assert isinstance(target, Access)
        return replace(statement, target=target, value=self._expr(statement.value))

    def _expr(self, expr: Expr) -> Expr:
        match expr:
            case Access(buffer, indices, _):
                if buffer in self.literals:
                    return self.literals[buffer]
                name = self.renamed.get(buffer, buffer)
                if buffer in self.turned:
                    order = self.turned[buffer]
                    indices = tuple(const(0) if d is None else indices[d] for d in order)
                layout = self.layouts.get(name)
                own = indices if layout is None else layout.indices(indices)
                return replace(expr, buffer=name, indices=own)
            case Op(_, args, _):
                return replace(expr, args=tuple(self._expr(arg) for arg in args))
            case Reduce(_, _, body, _):
                return replace(expr, body=self._expr(body))
            case Literal() | Coordinate():
                return expr


def _written(group: Sequence[Buffer]) -> bool:
    return any(operand.role != "in" for operand in group)


def _strides(operand: Buffer, values: Mapping[str, Index]) -> tuple[Index, ...]:
    """Return the pitches of an operand, 0 along dimensions of one element."""
    found = operand.strides if operand.strides is not None else row_major(operand.shape)
    return tuple(
        const(0) if extent.substitute(values) == const(1) else pitch.substitute(values)
        for extent, pitch in zip(operand.shape, found, strict=True)
    )


def _along(
    extents: Sequence[Index],
    pitches: Sequence[Index],
    shape: Sequence[Index],
    strides: Sequence[Index],
) -> tuple[int | None, ...] | None:
    """Return the dimension of an operand along each of another one in the same place.

    None along those of one element; None at all if the two have their elements differently.
    """
    if (tuple(extents), tuple(pitches)) == (tuple(shape), tuple(strides)):
        return tuple(range(len(shape)))
    rest = [d for d, extent in enumerate(extents) if extent != const(1)]
    found: list[int | None] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == const(1):
            found.append(None)
        elif rest and (extents[rest[0]], pitches[rest[0]]) == (extent, stride):
            found.append(rest.pop(0))
        else:
            return None
    return None if rest else tuple(found)


def _dense(shape: tuple[Index, ...], strides: tuple[Index, ...]) -> _Layout | None:
    """Return the operand itself, where its elements lie row by row with nothing in between."""
    rows = row_major(shape)
    if any(strides[d] != rows[d] for d, extent in enumerate(shape) if extent != const(1)):
        return None
    return _Layout(shape, tuple(((d, const(1)),) for d in range(len(shape))), whole=True)


def _nested(shape: tuple[Index, ...], strides: tuple[Index, ...], sure: bool) -> _Layout | None:
    """Return the dense array of which an operand is a part of each row; None if there is none.

    Elements that are told apart by their indices must be others in memory; where that is not
    known, it is to be ``sure`` from elsewhere.
    """
    dims = [d for d, extent in enumerate(shape) if extent != const(1)]
    if any(strides[d] == const(0) for d in dims):
        return None
    if all(strides[d].constant is not None for d in dims):
        dims.sort(key=lambda d: (-(strides[d].constant or 0), d))
    sizes: list[Index] = []
    for n, d in enumerate(dims):
        if n == 0:
            sizes.append(shape[d])
            continue
        ratio = _ratio(strides[dims[n - 1]], strides[d])
        if ratio is None or not (_holds(ratio, shape[d]) or (sure and _unknown(ratio, shape[d]))):
            return None
        sizes.append(ratio)
    factors: list[tuple[tuple[int, Index], ...]] = [((d, const(1)),) for d in dims]
    last = strides[dims[-1]] if dims else const(1)
    if last != const(1):
        sizes.append(last)
        factors.append(())
    return _Layout(tuple(sizes), tuple(factors))


def _ratio(outer: Index, inner: Index) -> Index | None:
    """Return how many steps of one pitch another one is."""
    if inner == const(1):
        return outer
    if outer.constant is None or inner.constant is None or outer.constant % inner.constant:
        return None
    return const(outer.constant // inner.constant)


def _holds(room: Index, extent: Index) -> bool:
    if room == extent:
        return True
    return not _unknown(room, extent) and (room.constant or 0) >= (extent.constant or 0)


def _unknown(room: Index, extent: Index) -> bool:
    return room.constant is None or extent.constant is None


def _flat(shape: tuple[Index, ...], strides: tuple[Index, ...]) -> _Layout:
    """Return the memory from an operand's first element to its last, in which it may overlap."""
    size = total((n - 1) * pitch for n, pitch in zip(shape, strides, strict=True)) + 1
    return _Layout((size,), (tuple(enumerate(strides)),))


def _names(buffers: Iterable[Buffer], statements: Iterable[Statement]) -> frozenset[str]:
    """Return the names that buffers and statements use."""
    found: set[str] = set()
    for buffer in buffers:
        found.update(*(extent.names for extent in buffer.shape))
    for statement in statements:
        found.update(
            *(index.names for a in (statement.target, statement.value) for index in read_indices(a))
        )
        found.update(*(variable.extent.names for variable in statement.variables))
    return frozenset(found)
