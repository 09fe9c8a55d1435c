"""Finding the instructions that bring a fragment into its storage.

A fragment of an access is loaded by movement instructions, one of an operation is computed by
instructions whose operands are fragments in turn, one of a constant comes from an immediate.  All
three are one question, answered by one search: which instruction's statement, read backwards, gives
the wanted elements?
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias, TypeVar

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Literal, Op
from isamap.ir.statements import accesses, names
from isamap.mapping.fragments.cut import cut_out, guards_of, laid_out
from isamap.mapping.fragments.dead import comes_through, is_zero
from isamap.mapping.fragments.fit import fit
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import lying
from isamap.mapping.fragments.producer import (
    MEMORY_KINDS,
    Kind,
    Producer,
    access_of,
    bind_rest,
    kind_of,
    read_tables,
)
from isamap.mapping.fragments.steps import (
    FromImmediate,
    FromMemory,
    FromRegister,
    Source,
    Step,
    Store,
)
from isamap.mapping.fragments.storing import Beside, Stores
from isamap.mapping.fragments.views import seen_as
from isamap.mapping.needles.pattern import bindings, may_read, root

_T = TypeVar("_T")

REMEMBERED = 1 << 16
"""Fragments of which it is remembered how they are made."""


Places: TypeAlias = Mapping[Access, Reference | Fragment]
"""Where accesses have their elements: in memory, or in a register as a fragment."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Where accesses have their elements, and a number that equal ones share.

    The register of the one that is ``spent`` may be overwritten.
    """

    places: Places
    number: int
    spent: Access | None = None


class Producers:
    """The producers and stores of a machine, indexed by the fragment that they make or take."""

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self._kinds = {s.name: s.kind for s in accelerator.storages}
        self._tables = read_tables(accelerator)
        self._stores = Stores(self._tables)
        self._fitting: dict[tuple[Kind, object], tuple[Producer, ...]] = {}
        self._numbers = count()
        self._without: dict[str, Producers] = {}
        self._known: dict[tuple[object, ...], _Known] = {}
        self._made: dict[
            tuple[Expr, Fragment, frozenset[Kind], int], Step | FromRegister | None
        ] = {}

    def is_memory(self, storage: str) -> bool:
        """Return whether operands in ``storage`` are C pointers."""
        return self._kinds[storage] in MEMORY_KINDS

    def is_immediate(self, storage: str) -> bool:
        """Return whether operands in ``storage`` are constants of the instruction."""
        return self._kinds[storage] == "immediate"

    def without(self, name: str) -> "Producers":
        """Return those of the machine without one of its instructions."""
        if name not in self._without:
            entries = tuple(e for e in self.accelerator.entries if e.name != name)
            self._without[name] = Producers(replace(self.accelerator, entries=entries))
        return self._without[name]

    # --- making a fragment ----------------------------------------------------------------------
    def making(self, fragment: Fragment) -> tuple[Producer, ...]:
        """Return what writes fragments of this storage, type and shape, the fastest first."""
        return tuple(self._tables.making.get(kind_of(fragment), ()))

    def storing(self, fragment: Fragment) -> tuple[Producer, ...]:
        """Return what takes fragments of this storage, type and shape to memory by itself."""
        return tuple(self._tables.storing.get(kind_of(fragment), ()))

    def store(self, fragment: Fragment, reference: Reference) -> Store | None:
        """Return the cheapest chain of movements from a fragment to memory, or None."""
        return self._stores.store(fragment, reference)

    def computing_stores(
        self, expr: Expr, like: Fragment, reference: Reference
    ) -> Iterator[tuple[Store, Expr, tuple[Beside, ...]]]:
        """Yield stores that compute ``expr`` on the way, each with what it takes as a fragment.

        That has the elements of ``like``.  With it come the operands that it takes besides.
        """
        return self._stores.computing(expr, like, reference)

    def make(
        self, expr: Expr, fragment: Fragment, references: Mapping[Access, Reference]
    ) -> Step | None:
        """Return the cheapest way found to make a fragment of ``expr``, or None.

        It may be made as another shape of as many elements, where that is cheaper.
        """
        step = self._start(expr, fragment, references)
        assert not isinstance(step, FromRegister)
        return step

    def finish(
        self,
        expr: Expr,
        fragment: Fragment,
        references: Mapping[Access, Reference],
        result: Access,
        held: Fragment,
        spent: bool = False,
    ) -> Step | FromRegister | None:
        """Return the cheapest way to make a fragment of ``expr`` while ``result`` is in a register.

        ``held`` says which elements of ``result`` the register holds, and how.  It may be
        overwritten where it is ``spent``: nothing needs it but ``expr``.
        """
        once = sum(access == result for access in accesses(expr)) == 1
        own = result if spent and once else None
        return self._start(expr, fragment, {**references, result: held}, own)

    def _start(
        self, expr: Expr, fragment: Fragment, places: Places, spent: Access | None = None
    ) -> Step | FromRegister | None:
        if len(self._made) >= REMEMBERED:
            self._made.clear()
            self._known.clear()
        return self._search(expr, fragment, self._know(places, spent), frozenset())

    def _search(
        self, expr: Expr, fragment: Fragment, known: _Known, visited: frozenset[Kind]
    ) -> Step | FromRegister | None:
        """Return the cheapest way to make a fragment, which is looked for once.

        The same part of an expression is asked for once for each way to read what is around it, and
        again for each of the mappings and treatments that are compared.  ``visited`` are the kinds
        of fragment of this same expression that are being made already.
        """
        key = (expr, fragment, visited, known.number)
        if key not in self._made:
            self._made[key] = self._cheapest(expr, fragment, known, visited)
        return self._made[key]

    def _cheapest(
        self, expr: Expr, fragment: Fragment, known: _Known, visited: frozenset[Kind]
    ) -> Step | FromRegister | None:
        places = known.places
        if isinstance(expr, Access) and _lies_in(places.get(expr), fragment):
            return FromRegister(expr)
        best = self._make(expr, fragment, known, visited)
        memory = {a: place for a, place in places.items() if isinstance(place, Reference)}
        held = {a: place for a, place in places.items() if isinstance(place, Fragment)}
        for shape in self._tables.shapes(fragment):
            kind = (fragment.storage, fragment.dtype.name, shape)
            faster = self._candidates(kind, expr)[:1]
            if not faster or (best is not None and faster[0].entry.throughput >= best.cost):
                continue
            if (view := seen_as(fragment, shape, memory)) is None:
                continue
            if not _keeps_filler(expr, fragment, view[0]):
                continue
            seen = self._know({**view[1], **held}, known.spent)
            step = self._make(expr, view[0], seen, visited)
            if step and (best is None or step.cost < best.cost):
                best = step
        if best is None and isinstance(expr, Literal):
            # Nothing sets a register to it: it is brought from a table.
            best = self._make(expr, fragment, known, visited, tables=True)
        return best

    def _know(self, places: Places, spent: Access | None) -> _Known:
        """Return places with their number, equal ones with the same."""
        key = (spent, *places.items())
        if key not in self._known:
            # A copy: where operands are packed inside loops the caller's places change.
            self._known[key] = _Known(dict(places), next(self._numbers), spent)
        return self._known[key]

    def _make(
        self,
        expr: Expr,
        fragment: Fragment,
        known: _Known,
        visited: frozenset[Kind],
        tables: bool = False,
    ) -> Step | None:
        """Return the cheapest way to make a fragment in its own shape, or None.

        A constant may be read from memory if there may be ``tables``.
        """
        key = kind_of(fragment)
        if key in visited:
            return None
        best: Step | None = None
        for producer in self._candidates(key, expr):
            if best is not None and producer.entry.throughput >= best.cost:
                break
            # A literal that is converted is the same number still.
            same = isinstance(producer.value, Access) or isinstance(expr, Literal)
            inner = visited | {key} if same else frozenset()
            for bound in bindings(producer.value, expr):
                shared = [bound[name] for name in producer.entry.same if name in bound]
                if any(other != shared[0] for other in shared[1:]):
                    continue
                step = self._step(producer, expr, bound, fragment, known, inner, tables)
                if step is not None and (best is None or step.order < best.order):
                    best = step
        return best

    def _candidates(self, kind: Kind, expr: Expr) -> tuple[Producer, ...]:
        """Return what makes a kind of fragment and may read as an expression, the fastest first."""
        key = (kind, root(expr))
        if key not in self._fitting:
            made = self._tables.making.get(kind, ())
            self._fitting[key] = tuple(p for p in made if may_read(p.value, expr))
        return self._fitting[key]

    def _step(
        self,
        producer: Producer,
        whole: Expr,
        bound: Mapping[str, Expr],
        fragment: Fragment,
        known: _Known,
        visited: frozenset[Kind],
        tables: bool,
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
                filler = self.filler(producer, fragment)
                for place in lying(expr, fragment, known.places, tables):
                    reference = place.begun(fragment)
                    found = fit(entry, operand, access, producer.axes, fragment, reference, filler)
                    if found is not None:
                        break
                else:
                    return None
                if not _merge(limits, found.limits):
                    return None
                if not _merge(pitches, found.pitches):
                    return None
                if reference.guards:
                    if guarded is not None:
                        return None
                    guarded = reference
                inputs.append((name, FromMemory(reference)))
            else:
                wanted = self.operand_fragment(producer, operand, access, fragment, expr)
                step = wanted and self._search(expr, wanted, known, visited)
                if not step:
                    return None
                is_held = name == producer.tied and isinstance(step, FromRegister)
                if is_held and expr != known.spent:
                    return None  # It would be overwritten, and others may need it.
                cost += step.cost
                inputs.append((name, step))
        otherwise = aside = None
        if guarded is not None:
            cutting, leaving = guards_of(guarded, fragment)
            if cutting:
                aside = self._aside(whole, guarded, fragment) if len(bound) == 1 else None
            if leaving:
                otherwise = self._otherwise(producer, guarded, fragment)
            if (cutting and aside is None) or (leaving and otherwise is None):
                return None
        bind_rest(entry, limits, pitches)
        return Step(
            entry,
            producer.target,
            whole,
            fragment,
            tuple(inputs),
            tuple(sorted(limits.items())),
            tuple(sorted(pitches.items())),
            producer.tied,
            cost,
            otherwise,
            aside,
        )

    def filler(self, producer: Producer, fragment: Fragment) -> Literal | None:
        """Return what a pad must be for dead elements to come out as the fragment's filler."""
        filler = fragment.filler
        if filler is None or isinstance(producer.value, Access):
            return filler
        match producer.value:
            case Op("cast", (Access(_, _, dtype),), _) if is_zero(filler):
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
        if (found := producer.along(access)) is None:
            return None
        axes, shape = found
        dims = []
        filled: set[int] = set()
        for position, axis in enumerate(axes):
            if axis not in producer.axes:
                return None
            dim = producer.axes.index(axis)
            if fragment.shape[dim] != shape[position]:
                return None
            dims.append(fragment.dims[dim])
            if dim in fragment.filled:
                filled.add(position)
        kept = {v for dim in dims for digit in dim for v in digit.variables}
        if (laid_out(fragment) - kept) & names(expr):
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

    def _aside(self, expr: Expr, reference: Reference, fragment: Fragment) -> Step | None:
        """Return how to make the fragment of an expression from what is copied aside for it."""
        if (aside := reference.aside) is None:
            return None
        layout = cut_out(aside, fragment)
        if layout is None:
            return None
        # It ends with the last element in use, as buffers do.
        place = replace(layout.reference(), roomy=False)
        step = self._start(expr, fragment, {aside.access: place})
        return step if isinstance(step, Step) else None

    def _otherwise(
        self, producer: Producer, reference: Reference, fragment: Fragment
    ) -> Step | None:
        """Return how to fill the fragment with the padding value."""
        assert reference.pad is not None
        pad = reference.pad
        match producer.value:
            case Access():
                value = pad
            case Op("cast", (Access(),), dtype) if is_zero(pad):
                value = Literal("0.0" if dtype.is_float else "0", dtype)
            case _:
                return None
        dead = any(fragment.has_dead(d) for d in fragment.filled)
        if dead and (fragment.filler is None or fragment.filler.text != value.text):
            return None
        bare = Fragment(fragment.storage, fragment.dtype, fragment.shape, fragment.dims)
        return self.make(value, bare, {})


def producers_of(accelerator: Accelerator) -> Producers:
    """Return the producers and stores of a machine, made once: they remember what they found."""
    return accelerator.answer("producers", lambda: Producers(accelerator))


def _keeps_filler(expr: Expr, wanted: Fragment, view: Fragment) -> bool:
    """Return whether an expression leaves in dead elements what they must hold, seen as a view that
    has whole fragments of what it reads, dead elements and all."""
    filler = wanted.filler
    if filler is None or view.filler is not None or isinstance(expr, Access):
        return True
    return not any(map(wanted.has_dead, wanted.filled)) or comes_through(expr, filler)


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


def _is_constant(expr: Expr, fragment: Fragment) -> bool:
    match expr:
        case Literal():
            return True
        case Coordinate(index, _):
            return not index.names & laid_out(fragment)
    return False
