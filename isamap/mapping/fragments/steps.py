"""What a search for a fragment finds: steps that make it, stores that take it to memory."""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Literal
from isamap.mapping.fragments.fragment import Fragment, Reference


@dataclass(frozen=True, slots=True)
class FromMemory:
    """An operand that an instruction reads from, or writes to, memory itself."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class FromImmediate:
    """An operand written into the instruction: a literal, or the value of an index expression."""

    value: Literal | Coordinate


@dataclass(frozen=True, slots=True)
class FromRegister:
    """An operand that is in a register already: a fragment of the elements of ``access``."""

    access: Access
    cost: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction that makes a fragment of the elements of ``value``.

    ``limits`` binds extents of the instruction to the live extent of a dimension of the fragment,
    ``pitches`` binds free pitches.  ``tied`` is the input that shares the target's register.
    ``otherwise`` makes the fragment where a guard of a reference in ``inputs`` fails, and ``aside``
    where one fails for some of its elements only: from its :class:`Aside`, in which the statement's
    first iteration is that of the fragment.  ``cost`` is in cycles, those of the inputs included.
    """

    entry: Entry
    target: str
    value: Expr = field(compare=False)
    fragment: Fragment
    inputs: tuple[tuple[str, "Source"], ...]
    limits: tuple[tuple[str, int], ...]
    pitches: tuple[tuple[str, Index], ...]
    tied: str | None
    cost: Fraction
    otherwise: "Step | None" = None
    aside: "Step | None" = None

    @property
    def order(self) -> tuple[Fraction, bool]:
        """What the best way to make a fragment has least of.

        Of those that cost the same, one is worse that overwrites what is made for it alone: what
        several steps take is made once.
        """
        return self.cost, self._spoils

    @property
    def _spoils(self) -> bool:
        source = dict(self.inputs)[self.tied] if self.tied is not None else None
        return isinstance(source, Step) and (source.tied is None or source._spoils)

    @property
    def declared(self) -> Buffer:
        """The operand that its instruction writes, as it is declared there."""
        return self.entry.instruction.operand(self.target)

    @property
    def guarded(self) -> bool:
        """Whether it, or what makes its inputs, reads memory under guards."""
        return any(
            source.guarded if isinstance(source, Step) else bool(source.reference.guards)
            for _, source in self.inputs
            if isinstance(source, Step | FromMemory)
        )

    @property
    def busy(self) -> dict[str, float]:
        """The cycles for which it and what makes its inputs occupy units, if no guard fails."""
        found = {unit: float(cycles) for unit, cycles in self.entry.busy.items()}
        for _, source in self.inputs:
            if isinstance(source, Step):
                for unit, cycles in source.busy.items():
                    found[unit] = found.get(unit, 0.0) + cycles
        return found

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its instruction, and those that make its inputs, if no guard fails."""
        before = [source.entries for _, source in self.inputs if isinstance(source, Step)]
        return (self.entry, *chain.from_iterable(before))

    @property
    def instructions(self) -> int:
        """The machine instructions that it and what makes its inputs consist of."""
        before = (source.instructions for _, source in self.inputs if isinstance(source, Step))
        return self.entry.length + sum(before)


Source: TypeAlias = Step | FromMemory | FromImmediate | FromRegister


@dataclass(frozen=True, slots=True)
class Move:
    """A movement between two storages of the machine; ``fragment`` is what it makes."""

    entry: Entry
    target: str
    source: str
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class Store:
    """Movements that take ``fragment`` to memory: ``moves`` on the way, then ``entry``.

    Where ``entry`` computes what it stores, ``constants`` are its immediate operands.
    """

    fragment: Fragment
    moves: tuple[Move, ...]
    entry: Entry
    target: str
    source: str
    limits: tuple[tuple[str, int], ...]
    pitches: tuple[tuple[str, Index], ...]
    cost: Fraction
    constants: tuple[tuple[str, Literal | Coordinate], ...] = ()
