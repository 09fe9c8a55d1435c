"""One statement under its schedule: what must be known before its loops are made."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Entry
from isamap.ir.index import var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses
from isamap.lower.blocks import check_scatter, innermost_last, register_block, target_variables
from isamap.lower.context import Context
from isamap.lower.fault import bad
from isamap.lower.nodes import Copy
from isamap.lower.operands import Operands
from isamap.lower.position import Position
from isamap.mapping.fragments.fit import Fit, fit_or_why
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import (
    PlacedDigit,
    direct,
    lying,
)
from isamap.mapping.fragments.steps import FromImmediate, FromMemory, Source, Step, Store
from isamap.mapping.fragments.unreachable import missing
from isamap.mapping.laws.filler import fillers
from isamap.mapping.tiles.moved import moved_store
from isamap.mapping.tiles.operand import (
    dense_fragment,
    fragment,
    operand_digits,
    taken_access,
)
from isamap.schedule.overlap import overlapped
from isamap.schedule.schedule import StatementSchedule


@dataclass(frozen=True, slots=True)
class RootInput:
    """An operand of the root instruction in memory or an immediate: no register is made for it."""

    source: Source
    fit: Fit | None


class StatementLowering:
    """Answers how each operand of the root instruction is made, and remembers the answers."""

    def __init__(
        self,
        context: Context,
        schedule: StatementSchedule,
        initialise: str,
    ) -> None:
        """``initialise`` is 'identity' (start from it) or 'load' (from the buffer's content)."""
        self.context = context
        self.schedule = schedule
        self.mapping = schedule.mapping
        self.matching = schedule.mapping.matching
        self.needle = self.matching.needle
        self.statement: Statement = self.matching.statement
        self.initialise = initialise
        self.extents = {v.name: v.extent for v in self.statement.variables}
        self.tile = {v: self.mapping.tile.get(v, 1) for v in self.extents}
        self.order = innermost_last(schedule, self.extents)
        self.block = register_block(schedule, self.extents, self.tile)
        self.fillers = fillers(self.matching, context.kernel.permissions)
        self.operands = Operands(
            context, schedule, self.extents, self.tile, self.block, self.order, self.fillers
        )
        self.output = self._output()
        check_scatter(self.statement, schedule, self.tile, self.block)
        self._steps: dict[tuple[str, frozenset[str]], Step | RootInput] = {}
        self._stores: dict[frozenset[str], Store | None] = {}

    # --- the loops ------------------------------------------------------------------------------
    @property
    def entry(self) -> Entry:
        """The root instruction."""
        return self.needle.entry

    @property
    def output_variables(self) -> frozenset[str]:
        """The variables that the statement's target uses."""
        return target_variables(self.statement)

    # --- the operands ---------------------------------------------------------------------------
    @property
    def references(self) -> Mapping[str, Mapping[Access, Reference]]:
        """Where the accesses of each operand find their elements, as far as the loops are made."""
        return self.operands.references

    def copied_inside(self, depth: int, here: Position) -> tuple[Copy, ...]:
        """Return the copies that are made of operands inside so many loops, of what is alive there.

        From then on the operands are found in these copies.
        """
        copies, moved = self.operands.copied_inside(depth, here)
        self._steps = {key: step for key, step in self._steps.items() if key[0] not in moved}
        return copies

    def input(self, operand: str, partial: frozenset[str]) -> Step | RootInput:
        """Return how an input of the root instruction is made where ``partial`` tiles are cut."""
        key = (operand, partial)
        if key not in self._steps:
            self._steps[key] = self._input(operand, partial)
        return self._steps[key]

    def _input(self, operand: str, partial: frozenset[str]) -> Step | RootInput:
        expr = self.matching.bound(operand)
        buffer = self.needle.operand(operand)
        producers = self.context.producers
        assert buffer.storage is not None
        if producers.is_immediate(buffer.storage):
            if isinstance(expr, Literal | Coordinate) and not buffer.shape:
                return RootInput(FromImmediate(expr), None)
            raise bad(f"operand '{operand}' of {self.needle.name} takes only a constant")
        references = self.references[operand]
        wanted = self.fragment(operand, partial, references.values())
        if producers.is_memory(buffer.storage):
            return self._memory_input(operand, expr, wanted)
        step = producers.make(expr, wanted, references)
        if step is None:
            raise bad(
                f"operand '{operand}' of {self.needle.name} cannot be brought to it: "
                + missing(producers, expr, wanted, references)
            )
        return step

    def _memory_input(self, operand: str, expr: Expr, wanted: Fragment) -> RootInput:
        places = [p.begun(wanted) for p in lying(expr, wanted, self.references[operand])]
        for place in places:
            found = None if place.guards else self._fit(operand, wanted, place, storing=False)
            if found is not None:
                return RootInput(FromMemory(place), found)
        if not places:
            raise bad(f"operand '{operand}' of {self.needle.name} must be in memory")
        raise bad(
            f"{print_expr(expr)} does not lie as operand '{operand}' wants it: "
            + self._misfit(operand, wanted, places[0])
        )

    def _misfit(self, operand: str, wanted: Fragment, reference: Reference) -> str:
        if reference.guards:
            return "it is read outside its shape"
        found = self._fit_or_why(operand, wanted, reference, storing=False)
        return found if isinstance(found, str) else ""

    def _fit(
        self, operand: str, wanted: Fragment, reference: Reference, storing: bool
    ) -> Fit | None:
        found = self._fit_or_why(operand, wanted, reference, storing)
        return None if isinstance(found, str) else found

    def _fit_or_why(
        self, operand: str, wanted: Fragment, reference: Reference, storing: bool
    ) -> Fit | str:
        access, axes = taken_access(self.matching, operand)
        return fit_or_why(
            self.entry,
            self.needle.operand(operand),
            access,
            axes,
            wanted,
            reference,
            self.fillers.get(operand),
            storing,
        )

    def fragment(
        self, operand: str, partial: frozenset[str], references: Collection[Reference]
    ) -> Fragment:
        """Return the fragment that an operand takes, that of packed elements without an order."""
        is_packed = all(r.dense is not None for r in references)
        filler = self.fillers.get(operand)
        found = fragment(self.mapping, operand, partial, filler, is_packed)
        if found is not None:
            return found
        dense = dense_fragment(self.mapping, operand)
        if dense is None or not is_packed:
            raise bad(
                f"the placements make operand '{operand}' of {self.needle.name} irregular: "
                "it must be packed"
            )
        return dense

    # --- the result -----------------------------------------------------------------------------
    def _output(self) -> Reference:
        buffers = self.context.buffers
        target = self.statement.target
        found = direct(buffers[target.buffer], target, self.extents, buffers)
        return replace(found, guards=(), pad=None, loose=overlapped(self.schedule))

    def placed_first(self) -> tuple[Copy, ...]:
        """Return the copy that puts an operand where an instruction that overwrites it finds it.

        An assignment whose operand and result are one place in memory needs its operand there.
        """
        tied, target = self.needle.tied, self.statement.target
        if tied is None or not self.result_in_memory or self.statement.reduction != "=":
            return ()
        expr = self.matching.bound(tied)
        if expr == target:
            return ()
        others = [e for operand, e in self.matching.fed if operand != tied]
        if any(a.buffer == target.buffer for e in (expr, *others) for a in accesses(e)):
            raise bad(f"operand '{tied}' of {self.needle.name} would overwrite what is read")
        if not isinstance(expr, Access):
            raise bad(f"operand '{tied}' of {self.needle.name} must be an access")
        buffers = self.context.buffers
        source = direct(buffers[expr.buffer], expr, self.extents, buffers)
        names = {v: self.context.unique(f"{target.buffer}_{v}") for v in self.extents}
        here = {v: var(name) for v, name in names.items()}
        copy = Copy(
            tuple((names[v], extent) for v, extent in self.extents.items()),
            target.buffer,
            self.output.offset.substitute(here),
            source.array,
            source.offset.substitute(here),
            tuple(guard.substitute(here) for guard in source.guards),
            source.pad if source.guards else None,
        )
        return (copy,)

    @property
    def result_in_memory(self) -> bool:
        """Whether the root instruction writes memory itself."""
        return self.context.producers.is_memory(self.entry.storage(self.needle.target.buffer))

    def result(self, partial: frozenset[str]) -> Fragment | None:
        """Return the fragment of the result, or None if it is not simple."""
        return fragment(self.mapping, self.needle.target.buffer, partial, None)

    def store(self, partial: frozenset[str]) -> Store | None:
        """Return how a result goes straight to its buffer; None if it must be staged."""
        if partial not in self._stores:
            wanted = self.result(partial)
            self._stores[partial] = (
                self.context.producers.store(wanted, self.output) if wanted else None
            )
        return self._stores[partial]

    def store_fit(self, partial: frozenset[str], place: Reference | None = None) -> Fit | None:
        """Return how a root instruction that writes memory takes the result's elements.

        They lie at ``place``, or in their own buffer.
        """
        wanted = self.result(partial)
        if wanted is None:
            return None
        return self._fit(self.needle.target.buffer, wanted, place or self.output, storing=True)

    def other_store(self, partial: frozenset[str]) -> Store | None:
        """Return what stores in place of a root instruction that only moves.

        None where that instruction takes the elements as they lie, or nothing else does.
        """
        if not self.result_in_memory or self.store_fit(partial) is not None:
            return None
        return moved_store(self.context.producers, self.mapping, partial, self.output)

    def store_misfit(self, partial: frozenset[str]) -> str:
        """Return why :meth:`store_fit` has no answer."""
        wanted = self.result(partial)
        if wanted is None:
            return "its elements are not one block of plain digits"
        found = self._fit_or_why(self.needle.target.buffer, wanted, self.output, storing=True)
        return found if isinstance(found, str) else ""

    def result_digits(self) -> tuple[tuple[PlacedDigit, ...], ...]:
        """Return the digits along each dimension of the result."""
        digits = operand_digits(self.mapping, self.needle.target.buffer)
        assert digits is not None
        return digits
