"""How each operand reaches its instruction: straight, through a padded copy, or packed."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from math import prod

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const
from isamap.ir.nodes import Access, Buffer, Expr, Literal, Permissions
from isamap.ir.printer import print_expr
from isamap.mapping.fragments.fit import Fit, fit_or_why
from isamap.mapping.fragments.fragment import Aside, Fragment, Reference
from isamap.mapping.fragments.layout import PackedLayout, direct, lying, padded
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.steps import Step
from isamap.mapping.fragments.unreachable import missing
from isamap.mapping.laws.filler import fillers_of
from isamap.mapping.laws.problem import Problem, problem
from isamap.mapping.matching import Mapping, Matching, Needle
from isamap.mapping.tiles.operand import dense_fragment, fragment, packed, taken_access
from isamap.mapping.tiles.shared import accesses_of, brought, gathered
from isamap.schedule.pitches import spread_rows
from isamap.schedule.schedule import Treatment


def inputs(mapping: Mapping) -> tuple[tuple[str, Access], ...]:
    """Return the operands and the accesses in them, in the order of a schedule's treatments."""
    own = mapping.matching
    return own.answer(
        "inputs",
        lambda: tuple(
            (operand, access) for operand, _ in brought(own) for access in accesses_of(own, operand)
        ),
    )


def by_operand(mapping: Mapping, chosen: Sequence[Treatment]) -> dict[str, tuple[Treatment, ...]]:
    """Return the treatments of each operand's accesses; ``chosen`` are as :func:`inputs` are."""
    found: dict[str, tuple[Treatment, ...]] = {name: () for name, _ in brought(mapping.matching)}
    for (operand, _), kind in zip(inputs(mapping), chosen, strict=True):
        found[operand] += (kind,)
    return found


BOUNDED = frozenset(("padded", "bordered"))
"""Treatments of operands that leave their buffer: what stays inside is read where it lies."""

KINDS: tuple[Treatment, ...] = ("direct", "padded", "bordered", "packed", "repeated")
"""All treatments, in the order in which they are tried."""

PACKED: tuple[Treatment, ...] = ("packed", "repeated")
"""Those that make packed fragments."""

COPIED: tuple[Treatment, ...] = ("padded", *PACKED)
"""Those that make copies."""


ASSUMED_EXTENT = 256
"""What a symbolic extent is taken for."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the mappings of one statement share: each is found once.

    ``unpacked`` says where accesses find their elements if they are not packed; ``problems`` are
    those of needles with their operands, by the needle's identity.
    """

    unpacked: dict[tuple[Access, Treatment], Reference | None] = field(default_factory=dict)
    problems: dict[tuple[int, tuple[tuple[str, Expr], ...]], tuple[Needle, Problem]] = field(
        default_factory=dict
    )

    def problem(self, matching: Matching, permissions: Permissions) -> Problem:
        """Return the problem of which a matching is a solution."""
        needle = matching.needle
        key = (id(needle), matching.operands)
        if key not in self.problems:
            found = problem(matching.statement, needle, matching.operands, permissions)
            self.problems[key] = needle, found  # The needle is kept, so that its id stays its own.
        return self.problems[key][1]


class Treatments:
    """Answers which treatments of an operand the machine has instructions for.

    Those of all mappings of one statement in one kernel may share what is ``shared``.
    """

    def __init__(
        self,
        mapping: Mapping,
        producers: Producers,
        buffers: Dict[str, Buffer],
        permissions: Permissions,
        shared: Shared | None = None,
    ) -> None:
        shared = Shared() if shared is None else shared
        self.mapping = mapping
        self.producers = producers
        self.buffers = buffers
        self.extents = {v.name: v.extent for v in mapping.matching.statement.variables}
        self.fillers = fillers_of(shared.problem(mapping.matching, permissions), mapping.matching)
        self._unpacked = shared.unpacked
        self._packed: dict[tuple[str, Access, Treatment], PackedLayout | None] = {}
        self._fragments: dict[tuple[str, frozenset[str], bool], Fragment | None] = {}
        self._costs: dict[tuple[str, Treatment], float | None] = {}
        self.ragged = frozenset(
            v for v, tile in mapping.tile.items() if (self.extents[v] % tile).constant != 0
        )

    def feasible(self, operand: str) -> tuple[Treatment, ...] | None:
        """Return the cheapest treatments of an operand's accesses with which it can be made.

        None if there are none: the mapping cannot be lowered.  Every access of one operand is
        treated alike, 'direct' before 'padded' before 'packed'.  An operand of constants alone is
        copied ahead, and so treated in the way that makes its fragments cheapest; but packing may
        make it larger, and then it must be cheaper by as much.
        """
        found = accesses_of(self.mapping.matching, operand)
        costs: dict[Treatment, float] = {}
        for kind in KINDS:
            if (cost := self.cost(operand, kind)) is not None:
                costs[kind] = cost
                if not self.is_constant(operand):
                    break
        if not costs:
            return None
        chosen = next(iter(costs))
        if len(costs) > 1:
            sizes = {k: sum(self.elements(operand, a, k) for a in found) for k in costs}
            chosen = min(costs, key=lambda kind: costs[kind] * sizes[kind])
        return (chosen,) * len(found)

    def is_constant(self, operand: str) -> bool:
        """Return whether an operand is read from constants alone."""
        found = accesses_of(self.mapping.matching, operand)
        return bool(found) and all(self.buffers[a.buffer].role == "const" for a in found)

    def is_gathered(self, operand: str) -> bool:
        """Return whether an operand is packed from what several places want of it."""
        return bool(gathered(self.mapping.matching, operand))

    def elements(self, operand: str, access: Access, kind: Treatment) -> int:
        """Return how many elements an access goes through under a feasible treatment."""
        layout = self._layout(operand, access, kind) if kind in PACKED else None
        if layout is None:
            shape = self.buffers[access.buffer].shape
            return prod(numeric(extent, ASSUMED_EXTENT) for extent in shape)
        return numeric(layout.size(), ASSUMED_EXTENT)

    def packed_elements(
        self, operand: str, access: Access, kind: Treatment, extents: Dict[str, int]
    ) -> int | None:
        """Return the elements of the packed copy of what so many iterations read, None without."""
        sizes = {v: const(extent) for v, extent in extents.items()}
        layout = self._lay(operand, access, kind == "repeated", sizes)
        return layout.size().constant if layout else None

    def lacking(self, operand: str) -> str:
        """Return what the machine lacks to make an operand that no treatment can make."""
        matching = self.mapping.matching
        places = gathered(matching, operand)
        if not all(isinstance(expr, Access) for _, expr in places):
            computed = next(expr for _, expr in places if not isinstance(expr, Access))
            return (
                f"at its places it is several things, and {print_expr(computed)} is not in memory"
            )
        found = "its elements have no order that packing can give"
        for kind in reversed(KINDS):
            read = accesses_of(matching, operand)
            references = {a: self.reference(operand, a, kind) for a in read}
            known = {a: r for a, r in references.items() if r is not None}
            if len(known) < len(references):
                continue
            for partial in (frozenset[str](), self.ragged):
                wanted = self._fragment(operand, partial, kind)
                wanted = wanted or dense_fragment(self.mapping, operand)
                if wanted is not None and self._cost(operand, wanted, known) is None:
                    return self._lack(operand, wanted, known)
        return found

    def _lack(self, operand: str, wanted: Fragment, references: Dict[Access, Reference]) -> str:
        expr = self.mapping.matching.bound(operand)
        if self.producers.is_immediate(wanted.storage):
            return f"{print_expr(expr)} is no constant, and it lies in {wanted.storage}"
        if not self.producers.is_memory(wanted.storage):
            return missing(self.producers, expr, wanted, references)
        places = lying(expr, wanted, references)
        if not places:
            return f"it reads memory, where {print_expr(expr)} is not"
        if places[0].guards:
            return f"it reads memory, and {print_expr(expr)} leaves its buffer"
        why = self._fit_or_why(operand, wanted, places[0])
        return why if isinstance(why, str) else ""

    def stores(self, result: Fragment, place: Reference) -> bool:
        """Return whether an instruction that writes memory writes a result to a place."""
        target = self.mapping.matching.needle.target.buffer
        return isinstance(self._fit_or_why(target, result, place, storing=True), Fit)

    def _fit_or_why(
        self, operand: str, wanted: Fragment, place: Reference, storing: bool = False
    ) -> Fit | str:
        """Return how an operand in memory takes what lies at a place, or why it does not."""
        matching, filler = self.mapping.matching, self.fillers.get(operand)
        access, axes = taken_access(matching, operand)
        declared, entry = matching.needle.operand(operand), matching.needle.entry
        return fit_or_why(entry, declared, access, axes, wanted, place, filler, storing)

    def own_cost(self, operand: str, kinds: tuple[Treatment, ...]) -> float:
        """Return the cycles of one fragment under treatments that :meth:`feasible` gave."""
        cost = self.cost(operand, kinds[0] if kinds else "direct")
        assert cost is not None
        return cost

    def mean_cost(self, operand: str, kinds: tuple[Treatment, ...]) -> float:
        """Return the cycles of one fragment on average: those at the end of a variable's iterations
        may be ragged and cost more than whole ones.
        """
        kind = kinds[0] if kinds else "direct"
        worst = self.own_cost(operand, kinds)
        whole = self.whole_cost(operand, kind)
        wanted = self._fragment(operand, self.ragged, kind)
        if whole is None or wanted is None:
            return worst
        tiles = (
            -(-numeric(self.extents[v], ASSUMED_EXTENT) // self.mapping.tile.get(v, 1))
            for v in wanted.partial
        )
        return worst + (whole - worst) * prod(1 - 1 / max(1, n) for n in tiles)

    def cost(self, operand: str, kind: Treatment) -> float | None:
        """Return the cycles of making one fragment of an operand, or None if it cannot be made."""
        if (operand, kind) not in self._costs:
            both = {frozenset[str](), self.ragged}
            self._costs[operand, kind] = self._worst(operand, kind, both)
        return self._costs[operand, kind]

    def busy(self, operand: str, kinds: tuple[Treatment, ...]) -> dict[str, float]:
        """Return the cycles for which making one whole fragment occupies each unit."""
        step = self._step(operand, kinds)
        return {} if step is None else step.busy

    def instructions(self, operand: str, kinds: tuple[Treatment, ...]) -> int:
        """Return how many machine instructions make one whole fragment."""
        step = self._step(operand, kinds)
        return 0 if step is None else step.instructions

    def entries(self, operand: str, kinds: tuple[Treatment, ...]) -> tuple[Entry, ...]:
        """Return the instructions that make one whole fragment."""
        step = self._step(operand, kinds)
        return () if step is None else step.entries

    def _step(self, operand: str, kinds: tuple[Treatment, ...]) -> Step | None:
        """Return what makes a whole fragment, None for one that is used where it lies."""
        kind = kinds[0] if kinds else "direct"
        references = self._read(operand, kind)
        wanted = self._fragment(operand, frozenset(), kind)
        wanted = wanted or dense_fragment(self.mapping, operand)
        if wanted is None or references is None or self._is_in_place(wanted):
            return None
        made = self.producers.make(self.mapping.matching.bound(operand), wanted, references)
        return made if isinstance(made, Step) else None

    def whole_cost(self, operand: str, kind: Treatment) -> float | None:
        """Return the cycles of making one whole fragment, or None if some cannot be made."""
        if self.cost(operand, kind) is None:
            return None
        return self._worst(operand, kind, {frozenset[str]()})

    def _worst(
        self, operand: str, kind: Treatment, ragged: AbstractSet[frozenset[str]]
    ) -> float | None:
        """Return the cycles of the dearest of fragments that are ragged along these variables."""
        references = self._read(operand, kind)
        if references is None:
            return None
        worst = 0.0
        for partial in ragged:
            wanted = self._fragment(operand, partial, kind)
            if wanted is None:
                if kind not in PACKED or not references:
                    return None
                wanted = dense_fragment(self.mapping, operand)
            if wanted is None:
                return None
            own = self._cost(operand, wanted, references)
            if own is None:
                return None
            worst = max(worst, own)
        return worst

    def _read(self, operand: str, kind: Treatment) -> dict[Access, Reference] | None:
        """Return where each access of an operand finds its elements, None if one finds none."""
        references: dict[Access, Reference] = {}
        for access in accesses_of(self.mapping.matching, operand):
            reference = self.reference(operand, access, kind)
            if reference is None:
                return None
            references[access] = reference
        bounded = kind not in BOUNDED or any(map(self._leaves, references))
        return references if bounded else None

    def _leaves(self, access: Access) -> bool:
        """Return whether an access leaves its buffer for some iterations."""
        found = self._in_order(access, "direct")
        return found is not None and bool(found.guards)

    def _is_in_place(self, wanted: Fragment) -> bool:
        """Return whether an instruction reads a fragment itself, as a constant or from memory."""
        storage = wanted.storage
        return self.producers.is_immediate(storage) or self.producers.is_memory(storage)

    def _fragment(self, operand: str, partial: frozenset[str], kind: Treatment) -> Fragment | None:
        is_packed = kind in PACKED
        key = (operand, partial, is_packed)
        if key not in self._fragments:
            filler = self.fillers.get(operand)
            self._fragments[key] = fragment(self.mapping, operand, partial, filler, is_packed)
        return self._fragments[key]

    def _cost(
        self, operand: str, wanted: Fragment, references: Dict[Access, Reference]
    ) -> float | None:
        expr = self.mapping.matching.bound(operand)
        if self.producers.is_immediate(wanted.storage):
            return 0.0 if isinstance(expr, Literal) and not wanted.shape else None
        if self.producers.is_memory(wanted.storage):
            for place in lying(expr, wanted, references):
                begun = place.begun(wanted)
                found = None if place.guards else self._fit_or_why(operand, wanted, begun)
                if isinstance(found, Fit):
                    return 0.0
            return None
        step = self.producers.make(expr, wanted, references)
        return None if step is None else float(step.cost)

    def reference(self, operand: str, access: Access, kind: Treatment) -> Reference | None:
        """Return where an access finds its elements under a treatment, if it can have it."""
        if kind in PACKED:
            layout = self._layout(operand, access, kind)
            return layout.reference() if layout else None
        return None if gathered(self.mapping.matching, operand) else self._in_order(access, kind)

    def _layout(self, operand: str, access: Access, kind: Treatment) -> PackedLayout | None:
        """Return how an access is packed under a treatment, if it can be."""
        key = (operand, access, kind)
        if key not in self._packed:
            self._packed[key] = self._pack(operand, access, kind == "repeated")
        return self._packed[key]

    def _in_order(self, access: Access, kind: Treatment) -> Reference | None:
        """Return where an access finds its elements in its buffer, or in a padded copy of it."""
        if (access, kind) not in self._unpacked:
            self._unpacked[access, kind] = self._unpack(access, kind)
        return self._unpacked[access, kind]

    def row(self, access: Access) -> int | None:
        """Return how long rows of a padded copy are; None without one, or if it is not known."""
        layout = padded(access.buffer, access, self.extents)
        return layout.shape[-1].constant if layout and layout.shape else None

    def pitch(self, access: Access) -> int:
        """Return how far apart rows of a padded copy begin by the rules; 0 if they are not."""
        length = self.row(access)
        if length is None:
            return 0
        return spread_rows(length, access.dtype.bytes, self.producers.accelerator)

    def pitches(self, mapping: Mapping, kinds: Sequence[Treatment]) -> tuple[int, ...]:
        """Return that of each access that is treated so; nothing where all are 0."""
        pairs = zip(inputs(mapping), kinds, strict=True)
        found = tuple(
            self.pitch(a) if kind == "padded" and self._leaves(a) else 0 for (_, a), kind in pairs
        )
        return found if any(found) else ()

    def _unpack(self, access: Access, kind: Treatment) -> Reference | None:
        buffer = self.buffers[access.buffer]
        found = direct(buffer, access, self.extents, self.buffers)
        if kind == "direct" or not found.guards:
            return found
        if kind == "bordered":
            return replace(found, aside=Aside(access, access.buffer))
        layout = padded(access.buffer, access, self.extents)
        return replace(layout, pitch=self.pitch(access)).reference() if layout else None

    def _pack(self, operand: str, access: Access, repeat: bool) -> PackedLayout | None:
        straight = self._in_order(access, "direct")
        assert straight is not None, "every access can be read where it is"
        if straight.guards and self._in_order(access, "padded") is None:
            return None
        dense = self._lay(operand, access, repeat, self.extents)
        if dense is not None and repeat and not self._repeats(operand, access):
            return None  # it is what 'packed' is
        return dense

    def _lay(
        self, operand: str, access: Access, repeat: bool, extents: Dict[str, Index]
    ) -> PackedLayout | None:
        name, filler, order = access.buffer, self.fillers.get(operand), tuple(self.extents)
        return packed(
            name, self.mapping, operand, access, filler, extents, {}, order, repeat, self.extents
        )

    def _repeats(self, operand: str, access: Access) -> bool:
        once = self.reference(operand, access, "packed")
        return once is not None and bool(once.repeated)


def numeric(index: Index, assumed: int) -> int:
    """Return the value of an extent or stride, with ``assumed`` for each symbol in it."""
    return int(index.evaluate({name: assumed for name in index.names}))
