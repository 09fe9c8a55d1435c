"""Finding the instructions that take a fragment from its storage to memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Entry
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Access, Coordinate, Expr, Literal
from isamap.mapping.fragments.fit import Fit, fit, fit_or_why
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.producer import (
    Producer,
    Tables,
    access_of,
    bind_rest,
    fixed_shape,
    kind_of,
)
from isamap.mapping.fragments.steps import Move, Store
from isamap.mapping.fragments.views import seen_as
from isamap.mapping.needles.pattern import bindings, may_read

REMEMBERED = 1 << 14
"""Fragments of which it is remembered how they are stored."""

MOVES = 3
"""Movements on the way to memory at most."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A fragment that a store takes besides the one that it is for, and what that holds."""

    operand: str
    value: Expr
    fragment: Fragment


_STORED = Access("", (), DTYPES["bool"])


class Stores:
    """The ways of a machine to take fragments to memory."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: dict[tuple[Fragment, Reference, int], Store | None] = {}

    def store(self, fragment: Fragment, reference: Reference, moves: int = MOVES) -> Store | None:
        """Return the cheapest chain of movements from a fragment to memory, or None."""
        key = (fragment, reference, moves)
        if key not in self._found:
            found = self._cheapest(fragment, reference, moves)
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            self._found[key] = found
        return self._found[key]

    def computing(
        self, expr: Expr, like: Fragment, reference: Reference
    ) -> Iterator[tuple[Store, Expr, tuple[Beside, ...]]]:
        """Yield stores that compute ``expr`` on the way, each with what it takes as a fragment.

        That has the elements of ``like``.  With it come the operands that it takes besides.
        """
        for producer in self._tables.computing:
            if not may_read(producer.value, expr):
                continue
            for bound in bindings(producer.value, expr):
                for source in bound:
                    found = _computing(producer, bound, source, like, reference)
                    if found is not None:
                        store, besides = found
                        yield store, bound[source], besides

    def _cheapest(self, fragment: Fragment, reference: Reference, moves: int) -> Store | None:
        best = self._store(fragment, reference, moves)
        if best is None:
            for shape in self._tables.shapes(fragment):
                # Any access stands for the one that is stored.
                if view := seen_as(fragment, shape, {_STORED: reference}):
                    store = self._store(view[0], view[1][_STORED], moves)
                    if store and (best is None or store.cost < best.cost):
                        best = store
        return best

    def _store(self, fragment: Fragment, reference: Reference, moves: int) -> Store | None:
        """Return the cheapest chain of movements for a fragment in its own shape, or None."""
        best: Store | None = None
        for producer in self._tables.storing.get(kind_of(fragment), ()):
            entry = producer.entry
            assert isinstance(producer.value, Access)
            found = taken_or_why(producer, fragment, reference)
            if isinstance(found, str):
                continue
            limits, pitches = dict(found.limits), dict(found.pitches)
            bind_rest(entry, limits, pitches)
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
        if moves and best is None:
            best = self._store_through(fragment, reference, moves)
        return best

    def _store_through(self, fragment: Fragment, reference: Reference, moves: int) -> Store | None:
        """Return a store that first moves the fragment to another storage."""
        best: Store | None = None
        for producer in self._tables.moving.get(kind_of(fragment), ()):
            entry = producer.entry
            assert isinstance(producer.value, Access)
            moved = Fragment(
                entry.storage(producer.target),
                entry.instruction.operand(producer.target).dtype,
                fragment.shape,
                fragment.dims,
                fragment.partial,
            )
            rest = self.store(moved, reference, moves - 1)
            if rest is None:
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


def taken_or_why(producer: Producer, fragment: Fragment, reference: Reference) -> Fit | str:
    """Return how a store takes a fragment to where a reference lies, or why it does not."""
    entry = producer.entry
    assert isinstance(producer.value, Access)
    along = producer.along(producer.value)
    assert along is not None, "its kind is known"
    target, access = entry.instruction.operand(producer.target), producer.written
    return fit_or_why(entry, target, access, along[0], fragment, reference, None, storing=True)


def _computing(
    producer: Producer, bound: Mapping[str, Expr], source: str, like: Fragment, reference: Reference
) -> tuple[Store, tuple[Beside, ...]] | None:
    """Return the store that an instruction is with its operands bound, or None.

    ``source`` is a fragment with the elements of ``like``; all others are constants, or fragments
    that lie along the same axes.
    """
    entry = producer.entry
    operand = entry.instruction.operand(source)
    if not operand.shape or fixed_shape(operand) != like.shape:
        return None
    taken = replace(
        like,
        storage=entry.storage(source),
        dtype=operand.dtype,
        filled=frozenset(),
        filler=None,
    )
    axes = tuple(index.name or "" for index in access_of(producer.value, source).indices)
    constants: dict[str, Literal | Coordinate] = {}
    besides: list[Beside] = []
    for name, value in bound.items():
        other = entry.instruction.operand(name)
        if name == source:
            continue
        if other.shape:
            along = tuple(index.name or "" for index in access_of(producer.value, name).indices)
            beside = _beside(name, value, entry, along, axes, taken)
            if beside is None:
                return None
            besides.append(beside)
        elif isinstance(value, Literal | Coordinate):
            constants[name] = value
        else:
            return None
    target, access = entry.instruction.operand(producer.target), entry.instruction.statements[0]
    found = fit(entry, target, access.target, axes, taken, reference, None, storing=True)
    if found is None:
        return None
    limits, pitches = dict(found.limits), dict(found.pitches)
    bind_rest(entry, limits, pitches)
    store = Store(
        taken,
        (),
        entry,
        producer.target,
        source,
        tuple(sorted(limits.items())),
        tuple(sorted(pitches.items())),
        entry.throughput,
        tuple(sorted(constants.items())),
    )
    return store, tuple(besides)


def _beside(
    name: str,
    value: Expr,
    entry: Entry,
    along: tuple[str, ...],
    axes: tuple[str, ...],
    taken: Fragment,
) -> Beside | None:
    """Return what an operand holds that lies along some axes of what is stored, or None."""
    operand = entry.instruction.operand(name)
    dims = [axes.index(axis) for axis in along if axis in axes]
    shape = tuple(taken.shape[dim] for dim in dims)
    if len(dims) != len(along) or "" in along or fixed_shape(operand) != shape:
        return None
    laid = tuple(taken.dims[dim] for dim in dims)
    variables = {v for dim in laid for digit in dim for v in digit.variables}
    partial = frozenset(taken.partial & variables)
    fragment = Fragment(entry.storage(name), operand.dtype, shape, laid, partial)
    return Beside(name, value, fragment)
