"""Finding the instructions that take a fragment from its storage to memory."""

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Access
from isamap.mapping.fragments.fit import fit
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.producer import Tables, bind_rest, kind_of
from isamap.mapping.fragments.steps import Move, Store
from isamap.mapping.fragments.views import seen_as

REMEMBERED = 1 << 14
"""Fragments of which it is remembered how they are stored."""

MOVES = 3
"""Movements on the way to memory at most."""

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
            axes = tuple(i.name or "" for i in producer.value.indices)
            target = entry.instruction.operand(producer.target)
            access = entry.instruction.statements[0].target
            found = fit(entry, target, access, axes, fragment, reference, None, storing=True)
            if found is None:
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
