"""Finding the instructions that bring a fragment into its storage.

A fragment of an access is loaded by movement instructions, one of an operation is computed by
instructions whose operands are fragments in turn, one of a constant comes from an immediate.  All
three are one question, answered by one search: which instruction's statement, read backwards, gives
the wanted elements?
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, TypeVar

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Literal, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses, names
from isamap.mapping.fit import fit
from isamap.mapping.fragment import Fragment, Reference
from isamap.mapping.pattern import bindings
from isamap.mapping.steps import (
    FromImmediate,
    FromMemory,
    FromRegister,
    Move,
    Source,
    Step,
    Store,
)
from isamap.mapping.views import seen_as

_T = TypeVar("_T")

MEMORY_KINDS = ("memory", "cache")

_STORED = Access("", (), DTYPES["bool"])


Kind: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Storage, type and shape of a fragment."""

Places: TypeAlias = Mapping[Access, Reference | Fragment]
"""Where accesses have their elements: in memory, or in a register as a fragment."""


@dataclass(frozen=True, slots=True)
class Producer:
    """An entry read as ``target = value``, one target element for each point of its axes."""

    entry: Entry
    target: str
    value: Expr
    axes: tuple[str, ...]
    tied: str | None


class Producers:
    """The producers and stores of a machine, indexed by the fragment that they make or take."""

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self._kinds = {s.name: s.kind for s in accelerator.storages}
        self._making: dict[tuple[str, str, tuple[int, ...]], list[Producer]] = {}
        self._storing: dict[tuple[str, str, tuple[int, ...]], list[Producer]] = {}
        self._made: dict[
            tuple[Expr, Fragment, frozenset[Kind], int],
            tuple[Places, Step | FromRegister | None],
        ] = {}
        self._views: dict[tuple[str, str, int], list[tuple[int, ...]]] = {}
        for entry in accelerator.entries:
            if (producer := _read_producer(entry)) is None:
                continue
            if any(extent.least is not None for extent in entry.instruction.extents):
                continue  # What it moves depends on a number that the description leaves open.
            target = entry.instruction.operand(producer.target)
            if self.is_memory(entry.storage(producer.target)):
                if isinstance(producer.value, Access):
                    source = entry.instruction.operand(producer.value.buffer)
                    if (shape := _fixed(source)) is not None and source.storage is not None:
                        key = (source.storage, source.dtype.name, shape)
                        self._storing.setdefault(key, []).append(producer)
            elif (shape := _fixed(target)) is not None and target.storage is not None:
                key = (target.storage, target.dtype.name, shape)
                self._making.setdefault(key, []).append(producer)
        for table in (self._making, self._storing):
            for (storage, dtype, shape), producers in table.items():
                self._views.setdefault((storage, dtype, prod(shape)), []).append(shape)
                producers.sort(key=lambda p: (p.entry.throughput, len(p.entry.instruction.extents)))

    def is_memory(self, storage: str) -> bool:
        """Return whether operands in ``storage`` are C pointers."""
        return self._kinds[storage] in MEMORY_KINDS

    def is_immediate(self, storage: str) -> bool:
        """Return whether operands in ``storage`` are constants of the instruction."""
        return self._kinds[storage] == "immediate"

    # --- making a fragment ----------------------------------------------------------------------
    def making(self, fragment: Fragment) -> tuple[Producer, ...]:
        """Return what writes fragments of this storage, type and shape, the fastest first."""
        key = (fragment.storage, fragment.dtype.name, fragment.shape)
        return tuple(self._making.get(key, ()))

    def make(
        self, expr: Expr, fragment: Fragment, references: Mapping[Access, Reference]
    ) -> Step | None:
        """Return the cheapest way found to make a fragment of ``expr``, or None.

        Where nothing makes its shape, it may be made as another shape of as many elements.
        """
        step = self._search(expr, fragment, references, frozenset())
        assert not isinstance(step, FromRegister)
        return step

    def finish(
        self,
        expr: Expr,
        fragment: Fragment,
        references: Mapping[Access, Reference],
        result: Access,
        held: Fragment,
    ) -> Step | FromRegister | None:
        """Return the cheapest way to make a fragment of ``expr`` while ``result`` is in a register.

        ``held`` says which elements of ``result`` the register holds, and how.
        """
        return self._search(expr, fragment, {**references, result: held}, frozenset())

    def _search(
        self, expr: Expr, fragment: Fragment, places: Places, visited: frozenset[Kind]
    ) -> Step | FromRegister | None:
        """Return the cheapest way to make a fragment.

        ``visited`` are the kinds of fragment of this same expression that are being made already.
        """
        outermost = not self._made
        # The same part of an expression is asked for once for each way to read what is around it.
        key = (expr, fragment, visited, id(places))
        try:
            if key not in self._made:
                self._made[key] = places, None  # Kept alive, so that its id stays its own.
                self._made[key] = places, self._cheapest(expr, fragment, places, visited)
            return self._made[key][1]
        finally:
            if outermost:
                self._made.clear()

    def _cheapest(
        self, expr: Expr, fragment: Fragment, places: Places, visited: frozenset[Kind]
    ) -> Step | FromRegister | None:
        if isinstance(expr, Access) and _lies_in(places.get(expr), fragment):
            return FromRegister(expr)
        best = self._make(expr, fragment, places, visited)
        if best is not None:
            return best
        memory = {a: place for a, place in places.items() if isinstance(place, Reference)}
        held = {a: place for a, place in places.items() if isinstance(place, Fragment)}
        for shape in self._shapes(fragment):
            if (view := seen_as(fragment, shape, memory)) is None:
                continue
            step = self._make(expr, view[0], {**view[1], **held}, visited)
            if step and (best is None or step.cost < best.cost):
                best = step
        return best

    def _shapes(self, fragment: Fragment) -> tuple[tuple[int, ...], ...]:
        """Return the other shapes of a fragment that some instruction makes or stores."""
        key = (fragment.storage, fragment.dtype.name, prod(fragment.shape))
        found = dict.fromkeys(self._views.get(key, ()))
        return tuple(shape for shape in found if shape != fragment.shape)

    def _make(
        self,
        expr: Expr,
        fragment: Fragment,
        places: Places,
        visited: frozenset[Kind],
    ) -> Step | None:
        """Return the cheapest way to make a fragment in its own shape, or None."""
        key = (fragment.storage, fragment.dtype.name, fragment.shape)
        if key in visited:
            return None
        best: Step | None = None
        for producer in self._making.get(key, ()):
            if best is not None and producer.entry.throughput >= best.cost:
                break
            # A literal that is converted is the same number still.
            same = isinstance(producer.value, Access) or isinstance(expr, Literal)
            inner = visited | {key} if same else frozenset()
            for bound in bindings(producer.value, expr):
                shared = [bound[name] for name in producer.entry.same if name in bound]
                if any(other != shared[0] for other in shared[1:]):
                    continue
                step = self._step(producer, bound, fragment, places, inner)
                if step is not None and (best is None or step.cost < best.cost):
                    best = step
        return best

    def _step(
        self,
        producer: Producer,
        bound: Mapping[str, Expr],
        fragment: Fragment,
        places: Places,
        visited: frozenset[Kind],
    ) -> Step | None:
        entry = producer.entry
        inputs: list[tuple[str, Source]] = []
        limits: dict[str, int] = {}
        pitches: dict[str, Index] = {}
        cost = entry.throughput
        guarded: Reference | None = None
        for name, expr in bound.items():
            operand = entry.instruction.operand(name)
            assert operand.storage is not None
            access = access_of(producer.value, name)
            if self.is_immediate(operand.storage):
                if not _is_constant(expr, fragment) or operand.shape:
                    return None
                # A constant is what its dead elements hold, too.
                same = fragment.filler == expr
                if not same and any(fragment.has_dead(d) for d in fragment.filled):
                    return None
                assert isinstance(expr, Literal | Coordinate)
                inputs.append((name, FromImmediate(expr)))
            elif self.is_memory(operand.storage):
                reference = places.get(expr) if isinstance(expr, Access) else None
                if not isinstance(reference, Reference):
                    return None
                filler = self.filler(producer, fragment)
                found = fit(entry, operand, access, producer.axes, fragment, reference, filler)
                if found is None or not _merge(limits, found.limits):
                    return None
                if not _merge(pitches, found.pitches):
                    return None
                if reference.guards:
                    if guarded is not None or any(_depends(reference, fragment)):
                        return None
                    guarded = reference
                inputs.append((name, FromMemory(reference)))
            else:
                wanted = self.operand_fragment(producer, operand, access, fragment, expr)
                step = wanted and self._search(expr, wanted, places, visited)
                if not step:
                    return None
                if name == producer.tied and isinstance(step, FromRegister):
                    return None  # It would be overwritten, and others may need it.
                cost += step.cost
                inputs.append((name, step))
        otherwise = None
        if guarded is not None:
            otherwise = self._otherwise(producer, guarded, fragment)
            if otherwise is None:
                return None
        if not _bind_rest(entry, limits, pitches, fragment):
            return None
        return Step(
            entry,
            producer.target,
            fragment,
            tuple(inputs),
            tuple(sorted(limits.items())),
            tuple(sorted(pitches.items())),
            producer.tied,
            cost,
            otherwise,
        )

    def filler(self, producer: Producer, fragment: Fragment) -> Literal | None:
        """Return what a pad must be for dead elements to come out as the fragment's filler."""
        filler = fragment.filler
        if filler is None or isinstance(producer.value, Access):
            return filler
        match producer.value:
            case Op("cast", (Access(_, _, dtype),), _) if _is_zero(filler):
                return Literal("0.0" if dtype.is_float else "0", dtype)
        return None

    def operand_fragment(
        self,
        producer: Producer,
        operand: Buffer,
        access: Access,
        fragment: Fragment,
        expr: Expr,
    ) -> Fragment | None:
        """Return the fragment that an input must be, or None if it cannot be said.

        A dimension that the input lacks must not matter to ``expr``.
        """
        assert operand.storage is not None
        if (shape := _fixed(operand)) is None:
            return None
        dims = []
        filled: set[int] = set()
        for position, index in enumerate(access.indices):
            axis = index.name
            if axis is None or axis not in producer.axes:
                return None
            dim = producer.axes.index(axis)
            if fragment.shape[dim] != shape[position]:
                return None
            dims.append(fragment.dims[dim])
            if dim in fragment.filled:
                filled.add(position)
        kept = {digit.variable for dim in dims for digit in dim}
        if (_laid(fragment) - kept) & names(expr):
            return None
        filler = None
        if any(fragment.has_dead(d) for d in fragment.filled):
            filler = self.filler(producer, fragment)
            if filler is None or len(filled) != len(fragment.filled):
                return None
        return Fragment(
            operand.storage,
            operand.dtype,
            shape,
            tuple(dims),
            fragment.partial,
            frozenset(filled) if filler else frozenset(),
            filler,
        )

    def _otherwise(
        self, producer: Producer, reference: Reference, fragment: Fragment
    ) -> Step | None:
        """Return how to fill the fragment with the padding value."""
        assert reference.pad is not None
        pad = reference.pad
        match producer.value:
            case Access():
                value = pad
            case Op("cast", (Access(),), dtype) if _is_zero(pad):
                value = Literal("0.0" if dtype.is_float else "0", dtype)
            case _:
                return None
        dead = any(fragment.has_dead(d) for d in fragment.filled)
        if dead and (fragment.filler is None or fragment.filler.text != value.text):
            return None
        bare = Fragment(fragment.storage, fragment.dtype, fragment.shape, fragment.dims)
        return self.make(value, bare, {})

    # --- storing a fragment ---------------------------------------------------------------------
    def store(self, fragment: Fragment, reference: Reference, depth: int = 3) -> "Store | None":
        """Return the cheapest chain of movements from a fragment to memory, or None."""
        best = self._store(fragment, reference, depth)
        if best is None:
            for shape in self._shapes(fragment):
                # Any access stands for the one that is stored.
                if view := seen_as(fragment, shape, {_STORED: reference}):
                    store = self._store(view[0], view[1][_STORED], depth)
                    if store and (best is None or store.cost < best.cost):
                        best = store
        return best

    def _store(self, fragment: Fragment, reference: Reference, depth: int) -> "Store | None":
        """Return the cheapest chain of movements for a fragment in its own shape, or None."""
        key = (fragment.storage, fragment.dtype.name, fragment.shape)
        best: Store | None = None
        for producer in self._storing.get(key, ()):
            entry = producer.entry
            assert isinstance(producer.value, Access)
            axes = tuple(i.name or "" for i in producer.value.indices)
            target = entry.instruction.operand(producer.target)
            access = entry.instruction.statements[0].target
            found = fit(entry, target, access, axes, fragment, reference, None, storing=True)
            if found is None:
                continue
            limits, pitches = dict(found.limits), dict(found.pitches)
            if not _bind_rest(entry, limits, pitches, fragment):
                continue
            cost = entry.throughput
            if best is None or cost < best.cost:
                best = Store(
                    fragment,
                    (),
                    entry,
                    producer.target,
                    producer.value.buffer,
                    tuple(sorted(limits.items())),
                    tuple(sorted(pitches.items())),
                    cost,
                )
        if depth and best is None:
            best = self._store_through(fragment, reference, depth)
        return best

    def _store_through(
        self, fragment: Fragment, reference: Reference, depth: int
    ) -> "Store | None":
        """Return a store that first moves the fragment to another storage."""
        best: Store | None = None
        for producers in self._making.values():
            for producer in producers:
                entry = producer.entry
                if not isinstance(producer.value, Access) or producer.tied:
                    continue
                source = entry.instruction.operand(producer.value.buffer)
                target = entry.instruction.operand(producer.target)
                same = source.storage == fragment.storage and source.dtype == fragment.dtype
                axes = tuple(i.name or "" for i in producer.value.indices)
                if not same or _fixed(source) != fragment.shape or axes != producer.axes:
                    continue
                if target.storage == fragment.storage or target.storage is None:
                    continue
                moved = Fragment(
                    target.storage, target.dtype, fragment.shape, fragment.dims, fragment.partial
                )
                rest = self.store(moved, reference, depth - 1)
                if rest is None or any(e.value is None for e in entry.instruction.extents):
                    continue
                cost = entry.throughput + rest.cost
                if best is None or cost < best.cost:
                    via = Move(entry, producer.target, producer.value.buffer, moved)
                    best = Store(
                        fragment,
                        (via, *rest.moves),
                        rest.entry,
                        rest.target,
                        rest.source,
                        rest.limits,
                        rest.pitches,
                        cost,
                    )
        return best


def _bind_rest(
    entry: Entry, limits: dict[str, int], pitches: dict[str, Index], fragment: Fragment
) -> bool:
    """Give every extent of the instruction that is still free a value that does no harm."""
    for extent in entry.instruction.extents:
        if extent.value is not None or extent.name in limits or extent.name in pitches:
            continue
        pitches[extent.name] = const(extent.range[1] - 1 if extent.range else 0)
    return True


def _lies_in(place: Reference | Fragment | None, wanted: Fragment) -> bool:
    """Return whether what is in a register is a wanted fragment, its dead elements apart."""
    if not isinstance(place, Fragment) or wanted.filler is not None:
        return False
    return (place.storage, place.dtype, place.shape, place.dims) == (
        wanted.storage,
        wanted.dtype,
        wanted.shape,
        wanted.dims,
    )


def _merge(into: dict[str, _T], pairs: Iterable[tuple[str, _T]]) -> bool:
    """Add ``pairs``; return False if one contradicts what is there."""
    return all(into.setdefault(name, value) == value for name, value in pairs)


def _depends(reference: Reference, fragment: Fragment) -> list[str]:
    """Return the fragment's variables on which a guard depends."""
    used = {name for guard in reference.guards for name in guard.names}
    return [d.variable for dim in fragment.dims for d in dim if d.tile > 1 and d.variable in used]


def _laid(fragment: Fragment) -> frozenset[str]:
    """Return the variables that move along a fragment."""
    return frozenset(d.variable for dim in fragment.dims for d in dim if d.tile > 1)


def _is_constant(expr: Expr, fragment: Fragment) -> bool:
    match expr:
        case Literal():
            return True
        case Coordinate(index, _):
            return not index.names & _laid(fragment)
    return False


def _is_zero(literal: Literal) -> bool:
    return literal.text in ("0", "0.0", "false")


def _fixed(buffer: Buffer) -> tuple[int, ...] | None:
    """Return a buffer's shape if it is made of numbers."""
    shape = [extent.constant for extent in buffer.shape]
    return tuple(e for e in shape if e is not None) if None not in shape else None


def access_of(value: Expr, operand: str) -> Access:
    """Return the access of an operand in a producer's value."""
    match value:
        case Access(name, _, _) if name == operand:
            return value
        case Op(_, args, _):
            for arg in args:
                if operand in _operand_names(arg):
                    return access_of(arg, operand)
    raise AssertionError(f"{operand} is no operand of the body")


def _operand_names(value: Expr) -> frozenset[str]:
    match value:
        case Access(name, _, _):
            return frozenset((name,))
        case Op(_, args, _):
            return frozenset().union(*map(_operand_names, args))
    return frozenset()


def _read_producer(entry: Entry) -> Producer | None:
    """Read an entry as a producer, or return None if it is none."""
    if len(entry.instruction.statements) != 1:
        return None
    statement: Statement = entry.instruction.statements[0]
    axes = tuple(index.name or "" for index in statement.target.indices)
    variables = {v.name for v in statement.variables}
    if set(axes) != variables or len(set(axes)) != len(axes):
        return None
    if any(v.lower.constant != 0 for v in statement.variables):
        return None
    if any(entry.instruction.operand(a.buffer).contents for a in accesses(statement.value)):
        return None  # what a table holds is matched with a tile of a whole statement only
    if _has_two_places(accesses(statement.value)):
        return None  # one fragment would have to be what each place wants
    operand = entry.instruction.operand(statement.target.buffer)
    if statement.reduction == "=" and operand.role == "out":
        own = entry.overwritten
        return Producer(entry, operand.name, statement.value, axes, own)
    if statement.reduction != "=" and operand.role == "inout":
        # ``c += a*b`` makes ``c0 + a*b`` of a register that holds c0.
        op = REDUCTION_OPERATIONS[statement.reduction]
        value = Op(op, (statement.target, statement.value), operand.dtype)
        return Producer(entry, operand.name, value, axes, operand.name)
    return None


def _has_two_places(found: Iterable[Access]) -> bool:
    """Return whether some operand is read at two places (``a[i, j] * a[j, i]``)."""
    known: dict[str, Access] = {}
    return any(known.setdefault(a.buffer, a).indices != a.indices for a in found)
