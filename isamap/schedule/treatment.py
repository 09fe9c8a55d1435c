"""How each operand reaches its instruction: straight, through a padded copy, or packed."""

from collections.abc import Mapping as Dict

from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Literal, Permissions
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses
from isamap.mapping.filler import fillers
from isamap.mapping.fit import fit, fit_or_why
from isamap.mapping.fragment import Fragment, Reference
from isamap.mapping.layout import direct, padded
from isamap.mapping.matching import Mapping
from isamap.mapping.operand import dense_fragment, fragment, needle_access, packed
from isamap.mapping.produce import Producers
from isamap.mapping.unreachable import missing
from isamap.schedule.schedule import Treatment


def inputs(mapping: Mapping) -> tuple[tuple[str, Access], ...]:
    """Return the operands and the accesses in them, in the order of a schedule's treatments."""
    pairs = []
    for operand, expr in mapping.matching.fed:
        pairs += [(operand, access) for access in dict.fromkeys(accesses(expr))]
    return tuple(pairs)


class Treatments:
    """Answers which treatments of an operand the machine has instructions for."""

    def __init__(
        self,
        mapping: Mapping,
        producers: Producers,
        buffers: Dict[str, Buffer],
        permissions: Permissions,
    ) -> None:
        self.mapping = mapping
        self.producers = producers
        self.buffers = buffers
        self.extents = {v.name: v.extent for v in mapping.matching.statement.variables}
        self.fillers = fillers(mapping.matching, permissions)
        self._references: dict[tuple[str, Access, Treatment], Reference | None] = {}
        self._costs: dict[tuple[str, Treatment], float | None] = {}
        self.ragged = frozenset(
            v for v, tile in mapping.tile.items() if (self.extents[v] % tile).constant != 0
        )

    def feasible(self, operand: str) -> tuple[Treatment, ...] | None:
        """Return the cheapest treatments of an operand's accesses with which it can be made.

        None if there are none: the mapping cannot be lowered.  Every access of one operand is
        treated alike, 'direct' before 'padded' before 'packed'.
        """
        expr = self.mapping.matching.bound(operand)
        found = tuple(dict.fromkeys(accesses(expr)))
        kinds: tuple[Treatment, ...] = ("direct", "padded", "packed")
        for kind in kinds:
            if self.cost(operand, kind) is not None:
                return (kind,) * len(found)
        return None

    def lacking(self, operand: str) -> str:
        """Return what the machine lacks to make an operand that no treatment can make."""
        expr = self.mapping.matching.bound(operand)
        found = "its elements have no order that packing can give"
        kinds: tuple[Treatment, ...] = ("packed", "padded", "direct")
        for kind in kinds:
            references = {a: self.reference(operand, a, kind) for a in accesses(expr)}
            known = {a: r for a, r in references.items() if r is not None}
            if len(known) < len(references):
                continue
            for partial in (frozenset[str](), self.ragged):
                wanted = fragment(self.mapping, operand, partial, self.fillers.get(operand))
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
        if not isinstance(expr, Access):
            return f"it reads memory, where {print_expr(expr)} is not"
        if references[expr].guards:
            return f"it reads memory, and {print_expr(expr)} leaves its buffer"
        entry = self.mapping.matching.needle.entry
        access = needle_access(self.mapping.matching, operand)
        axes = tuple(index.name or "" for index in access.indices)
        declared = entry.instruction.operand(operand)
        filler = self.fillers.get(operand)
        why = fit_or_why(entry, declared, access, axes, wanted, references[expr], filler)
        return why if isinstance(why, str) else ""

    def own_cost(self, operand: str, kinds: tuple[Treatment, ...]) -> float:
        """Return the cycles of one fragment under treatments that :meth:`feasible` gave."""
        cost = self.cost(operand, kinds[0] if kinds else "direct")
        assert cost is not None
        return cost

    def cost(self, operand: str, kind: Treatment) -> float | None:
        """Return the cycles of making one fragment of an operand, or None if it cannot be made."""
        if (operand, kind) not in self._costs:
            self._costs[operand, kind] = self._worst(operand, kind)
        return self._costs[operand, kind]

    def _worst(self, operand: str, kind: Treatment) -> float | None:
        """Return the cycles of the dearest of whole and ragged fragments."""
        expr = self.mapping.matching.bound(operand)
        references: dict[Access, Reference] = {}
        for access in accesses(expr):
            reference = self.reference(operand, access, kind)
            if reference is None:
                return None
            references[access] = reference
        worst = 0.0
        for partial in {frozenset[str](), self.ragged}:
            wanted = fragment(self.mapping, operand, partial, self.fillers.get(operand))
            if wanted is None:
                if kind != "packed" or not references:
                    return None
                wanted = dense_fragment(self.mapping, operand)
            if wanted is None:
                return None
            own = self._cost(operand, wanted, references)
            if own is None:
                return None
            worst = max(worst, own)
        return worst

    def _cost(
        self, operand: str, wanted: Fragment, references: Dict[Access, Reference]
    ) -> float | None:
        expr = self.mapping.matching.bound(operand)
        entry = self.mapping.matching.needle.entry
        if self.producers.is_immediate(wanted.storage):
            return 0.0 if isinstance(expr, Literal) and not wanted.shape else None
        if self.producers.is_memory(wanted.storage):
            if not isinstance(expr, Access) or references[expr].guards:
                return None
            access = needle_access(self.mapping.matching, operand)
            axes = tuple(index.name or "" for index in access.indices)
            declared = entry.instruction.operand(operand)
            filler = self.fillers.get(operand)
            fits = fit(entry, declared, access, axes, wanted, references[expr], filler)
            return None if fits is None else 0.0
        step = self.producers.make(expr, wanted, references)
        return None if step is None else float(step.cost)

    def reference(self, operand: str, access: Access, kind: Treatment) -> Reference | None:
        """Return where an access finds its elements under a treatment, if it can have it."""
        key = (operand, access, kind)
        if key not in self._references:
            self._references[key] = self._refer(operand, access, kind)
        return self._references[key]

    def _refer(self, operand: str, access: Access, kind: Treatment) -> Reference | None:
        buffer = self.buffers[access.buffer]
        found = direct(buffer, access, self.extents, self.buffers)
        if kind == "direct":
            return found
        layout = padded(access.buffer, access, self.extents) if found.guards else None
        if found.guards and layout is None:
            return None
        if kind == "padded":
            return layout.reference() if layout else None
        order = tuple(self.extents)
        block: dict[str, int] = {}
        filler = self.fillers.get(operand)
        dense = packed(
            access.buffer, self.mapping, operand, access, filler, self.extents, block, order
        )
        return dense.reference() if dense else None


def numeric(index: Index, assumed: int) -> int:
    """Return the value of an extent or stride, with ``assumed`` for each symbol in it."""
    return int(index.evaluate({name: assumed for name in index.names}))
