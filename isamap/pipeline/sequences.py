"""Which instructions compute a tile in sequence: the one mapped to, and those before it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op
from isamap.ir.statements import accesses, bind_extents
from isamap.mapping.compose.composed import parts_of
from isamap.mapping.fragments.fragment import Reference
from isamap.mapping.fragments.produce import Producers, producers_of
from isamap.mapping.fragments.steps import Step
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.operand import dense_fragment, fragment
from isamap.mapping.tiles.shared import brought
from isamap.schedule.treatment import PACKED, Treatments


@dataclass(slots=True)
class Sequences:
    """Names mappings of a kernel's statements by all instructions that compute them."""

    kernel: Kernel
    machine: Accelerator
    _producers: Producers | None = None
    _buffers: dict[str, Buffer] = field(default_factory=dict)
    _names: dict[object, tuple[str, ...]] = field(default_factory=dict)

    def name(self, mapping: Mapping) -> str:
        """Return ``vmul + vadd`` where ``vadd`` takes what ``vmul`` computes before it.

        Loads that only move are not named.  What cannot be computed is not named either.  Mappings
        of one instruction may take different ones before it: those whose last tile is short, say.
        """
        return " + ".join((*self._fed(mapping), mapping.matching.needle.name))

    def by(self, mapping: Mapping) -> tuple[str, ...]:
        """Return those instructions, the parts of a composition each by itself."""
        return (*self._fed(mapping), *parts_of(mapping.matching.needle))

    def _fed(self, mapping: Mapping) -> tuple[str, ...]:
        """Return what computes operands of the instruction that is mapped to."""
        matching = mapping.matching
        tile = tuple(sorted(mapping.tile.items()))
        key = matching.needle.name, matching.operands, matching.placements, tile
        if key not in self._names:
            self._names[key] = tuple(
                name
                for operand, expr in matching.fed
                if isinstance(expr, Op)
                for name in self._before(mapping, operand, expr)
            )
        return self._names[key]

    def lacking(self, mapping: Mapping) -> str:
        """Return why an operand cannot reach the instruction on this machine, or ''."""
        treatments = self._treatments(mapping)
        for operand, _ in brought(mapping.matching):
            if treatments.feasible(operand) is None:
                needle = mapping.matching.needle
                name, owner = needle.name, needle.owner(operand)
                lacks = treatments.lacking(operand)
                return f"operand '{owner}' of {name} cannot be brought to it: {lacks}"
        return ""

    def _treatments(self, mapping: Mapping) -> Treatments:
        if self._producers is None:
            self._producers = producers_of(self.machine)
            self._buffers = {b.name: b for b in bind_extents(self.kernel).buffers}
        return Treatments(mapping, self._producers, self._buffers, self.kernel.permissions)

    def _before(self, mapping: Mapping, operand: str, expr: Expr) -> Iterator[str]:
        """Yield the instructions that compute an operand, the first one first."""
        treatments = self._treatments(mapping)
        kinds = treatments.feasible(operand)
        if kinds is None:
            return
        filler = treatments.fillers.get(operand)
        is_packed = all(kind in PACKED for kind in kinds)
        wanted = fragment(mapping, operand, frozenset(), filler, is_packed)
        wanted = wanted or dense_fragment(mapping, operand)
        if wanted is None:
            return
        references: dict[Access, Reference] = {}
        for access, kind in zip(dict.fromkeys(accesses(expr)), kinds, strict=True):
            reference = treatments.reference(operand, access, kind)
            assert reference is not None, "the treatment is feasible"
            references[access] = reference
        assert self._producers is not None
        step = self._producers.make(expr, wanted, references)
        if step is not None:
            yield from _computing(step)


def _computing(step: Step) -> Iterator[str]:
    for _, source in step.inputs:
        if isinstance(source, Step):
            yield from _computing(source)
    if not _moves(step.entry):
        yield step.entry.name


def _moves(entry: Entry) -> bool:
    """Return whether an instruction leaves elements as they are."""
    return all(isinstance(s.value, Access) for s in entry.instruction.statements)


def axes_text(mapping: Mapping) -> str:
    """Return what lies on the axes of the instruction, digits of extent 1 left out, or -."""
    inside = {name for name, size in mapping.tile.items() if size > 1}
    placed = []
    for axis in mapping.matching.needle.axes:
        forms = [str(f) for f in mapping.matching.on_axis(axis.name) if f.names & inside]
        if forms:
            told = forms[0] if len(forms) == 1 else f"[{', '.join(forms)}]"
            placed.append(f"{axis.name}<-{told}")
    return ", ".join(placed) or "-"


def tile_text(mapping: Mapping) -> str:
    """Return the tile of a mapping, variables of extent 1 left out."""
    return ", ".join(f"{n}={size}" for n, size in mapping.tile.items() if size > 1) or "1"
