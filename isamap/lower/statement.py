"""One statement under its schedule: what must be known before its loops are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses
from isamap.lower.blocks import check_scatter, innermost_last, register_block, target_variables
from isamap.lower.context import Context
from isamap.lower.nodes import Copy
from isamap.lower.packing import gathering_copies, packing_copies, padded_at, padded_copy
from isamap.lower.position import Position
from isamap.mapping.fragments.fit import Fit, fit_or_why
from isamap.mapping.fragments.fragment import Aside, Fragment, Reference
from isamap.mapping.fragments.layout import (
    PackedLayout,
    PaddedLayout,
    PlacedDigit,
    direct,
    padded,
)
from isamap.mapping.fragments.steps import FromImmediate, FromMemory, Source, Step, Store
from isamap.mapping.fragments.unreachable import missing
from isamap.mapping.laws.filler import fillers
from isamap.mapping.tiles.operand import (
    dense_fragment,
    fragment,
    operand_digits,
    packed,
    spare_rows,
    taken_access,
)
from isamap.mapping.tiles.shared import accesses_of, brought, gathered
from isamap.schedule.schedule import StatementSchedule, Treatment


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
        self.copies: list[Copy] = []
        self._later: list[tuple[int, str, Access]] = []
        self._kinds: dict[tuple[str, Access], Treatment] = {}
        self._rooms: dict[tuple[str, Access], str] = {}
        self._pitches: dict[tuple[str, Access], int] = {}
        self.references = self._references()
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
    def _references(self) -> dict[str, dict[Access, Reference]]:
        treatments = iter(self.schedule.operands)
        table: dict[str, dict[Access, Reference]] = {}
        number = 0
        for operand, _ in brought(self.matching):
            own = accesses_of(self.matching, operand)
            wanted: dict[Access, Treatment] = {a: next(treatments, "direct") for a in own}
            places = gathered(self.matching, operand)
            self._kinds |= {(operand, access): kind for access, kind in wanted.items()}
            pitches: dict[Access, int] = {}
            for access in own:
                pitches[access] = self._pitch(access, wanted[access], number)
                if depth := self.schedule.packed_inside(number):
                    self._check_inside(operand, access, wanted[access], depth, bool(places))
                    self._later.append((depth, operand, access))
                number += 1
            if places:
                if set(wanted.values()) != {"packed"}:
                    raise bad(f"operand '{places[0][0]}' is gathered from several places: packed")
                table[operand] = dict.fromkeys(own, self._gathered(operand, places))
                continue
            table[operand] = {
                a: self._reference(operand, a, kind, pitches[a]) for a, kind in wanted.items()
            }
        self._unpacked = {(o, a): table[o][a] for _, o, a in self._later}
        return table

    def _pitch(self, access: Access, treatment: str, number: int) -> int:
        """Return how far apart rows of an access's padded copy begin; 0 if they are not."""
        pitch = self.schedule.pitch(number)
        if pitch and treatment != "padded":
            raise bad(f"{access.buffer} has a pitch between rows, and is {treatment}")
        return pitch

    def _reference(self, operand: str, access: Access, treatment: str, pitch: int) -> Reference:
        found = direct(
            self.context.buffers[access.buffer], access, self.extents, self.context.buffers
        )
        if treatment == "direct":
            return found
        if treatment == "bordered":
            return self._bordered(operand, access, found)
        later = (operand, access) in {(o, a) for _, o, a in self._later}
        if treatment == "padded" and later and found.guards:
            self._pitches[operand, access] = pitch
            return self._padding(access, pitch).reference()
        own = operand if treatment == "padded" else None
        found = self.unguarded(access, found, own, pitch)
        if treatment == "padded" or later:
            return found
        return self._packed(operand, access, found)

    def _bordered(self, operand: str, access: Access, found: Reference) -> Reference:
        """Return the reference of an access whose fragments are copied aside where they are cut."""
        if not found.guards:
            return found
        extents = {v: const(self.tile[v]) for v in self.extents}
        layout = self._padding(access, 0, extents)
        size = product(layout.room) + self._spare(operand, layout)
        name = f"{access.buffer}_aside"
        array = self.context.workspace(name, access.dtype, size, private=True)
        return replace(found, aside=Aside(access, array))

    def _check_inside(
        self, operand: str, access: Access, treatment: str, depth: int, is_gathered: bool
    ) -> None:
        """Refuse to copy inside loops what is not copied, or where there are not as many."""
        if treatment in ("direct", "bordered") or is_gathered:
            raise bad(f"{access.buffer} is copied inside loops, and operand '{operand}' is not")
        if not 0 < depth <= len(self.schedule.levels):
            count = len(self.schedule.levels)
            raise bad(f"{access.buffer} is copied inside {depth} loops, and there are {count}")

    def packs(self, depth: int, here: Position) -> tuple[Copy, ...]:
        """Return the copies that are made of operands inside so many loops, of what is alive there.

        From then on the operands are found in these copies.
        """
        copies: list[Copy] = []
        for at, operand, access in self._later:
            if at != depth:
                continue
            if self._kinds[operand, access] == "padded":
                copies += self._padded_here(operand, access, depth, here)
            else:
                copies += self._packed_here(operand, access, depth, here)
        return tuple(copies)

    def _packed_here(
        self, operand: str, access: Access, depth: int, here: Position
    ) -> tuple[Copy, ...]:
        unpacked = self._unpacked[operand, access]
        layout = self._packed_layout(operand, access, here.live)
        if layout is None:
            raise bad(f"{access.buffer} cannot be packed for operand '{operand}'")
        layout = replace(layout, array=self._room(operand, access, depth))
        moved = {v: here.origin[v] + var(v) for v in self.extents}
        source = replace(unpacked, offset=unpacked.offset.substitute(moved))
        found = layout.reference()
        back = {v: var(v) - here.origin[v] for v in self.extents}
        self._found_here(
            operand, access, replace(found, offset=found.offset.substitute(back))
        )
        return packing_copies(self.context, layout, source)

    def _padded_here(
        self, operand: str, access: Access, depth: int, here: Position
    ) -> tuple[Copy, ...]:
        if (operand, access) not in self._pitches:
            return ()  # it never leaves its buffer
        layout = padded_at(self._room(operand, access, depth), access, here, here.live)
        if layout is None:
            raise bad(f"the reach of {access.buffer} inside {depth} loops has no closed form")
        layout = replace(layout, pitch=self._pitches[operand, access])
        self._found_here(operand, access, layout.reference())
        return (padded_copy(self.context, layout, here.is_nonnegative),)

    def _found_here(self, operand: str, access: Access, reference: Reference) -> None:
        """From now on an operand's access finds its elements there."""
        self.references[operand][access] = reference
        self._steps = {key: step for key, step in self._steps.items() if key[0] != operand}

    def _room(self, operand: str, access: Access, depth: int) -> str:
        """Return the array for what is copied inside so many loops: each thread's own if threads
        share one of them.
        """
        if (operand, access) not in self._rooms:
            outer = self.schedule.levels[:depth]
            steps = {level.variable: level.step for level in outer}
            extents = {
                v: extent if v not in steps else const(min(steps[v], extent.constant or steps[v]))
                for v, extent in self.extents.items()
            }
            array, size = self._copy_size(operand, access, extents)
            private = any(level.parallel for level in outer)
            name = self.context.workspace(array, access.dtype, size, private)
            self._rooms[operand, access] = name
        return self._rooms[operand, access]

    def _copy_size(
        self, operand: str, access: Access, extents: Mapping[str, Index]
    ) -> tuple[str, Index]:
        """Return the name of a copy for so many iterations of each variable, and its elements."""
        if self._kinds[operand, access] != "padded":
            packed_ = self._packed_layout(operand, access, extents)
            assert packed_ is not None, "it was packed already"
            return packed_.array, packed_.size()
        layout = self._padding(access, self._pitches[operand, access], extents)
        return layout.array, product(layout.room) + self._spare(operand, layout)

    def _spare(self, operand: str, layout: PaddedLayout) -> Index:
        return spare_rows(self.mapping, operand, layout.reference(), self.extents)

    def unguarded(
        self, access: Access, found: Reference, operand: str | None = None, pitch: int = 0
    ) -> Reference:
        """Return where an access finds its elements without leaving its buffer.

        Whole fragments of an ``operand`` may be read there; ``pitch`` is that of a padded copy.
        """
        if found.guards:
            layout = self._padding(access, pitch)
            size = product(layout.room)
            if operand is not None:
                size += self._spare(operand, layout)
            layout = replace(layout, array=self.context.workspace(layout.array, access.dtype, size))
            self.copies.append(padded_copy(self.context, layout))
            found = layout.reference()
        return found

    def _padding(
        self, access: Access, pitch: int, extents: Mapping[str, Index] | None = None
    ) -> PaddedLayout:
        """Return the padded copy for all iterations, or for so many of each variable."""
        array = f"{access.buffer}_padded"
        layout = padded(array, access, self.extents if extents is None else extents)
        if layout is None:
            raise bad(f"the reach of {access.buffer} has no closed form: it cannot be padded")
        length = layout.shape[-1].constant if layout.shape else None
        if pitch and (length is None or length > pitch):
            raise bad(f"rows of {array} are longer than {pitch} elements")
        return replace(layout, pitch=pitch)

    def _gathered(self, operand: str, places: Sequence[tuple[str, Expr]]) -> Reference:
        """Return where an operand lies that is packed from what several places want."""
        layouts: list[PackedLayout] = []
        sources: list[Reference] = []
        for place, expr in places:
            layout = self._packed_layout(place, expr) if isinstance(expr, Access) else None
            if layout is None or not isinstance(expr, Access):
                raise bad(f"{print_expr(expr)} cannot be packed for operand '{operand}'")
            buffers = self.context.buffers
            found = direct(buffers[expr.buffer], expr, self.extents, buffers)
            layouts.append(layout)
            sources.append(self.unguarded(expr, found))
        first = layouts[0]
        array = self.context.workspace(first.array, first.access.dtype, first.size())
        layouts = [replace(layout, array=array) for layout in layouts]
        self.copies += gathering_copies(self.context, layouts, sources)
        return layouts[0].reference()

    def _packed(self, operand: str, access: Access, source: Reference) -> Reference:
        layout = self._packed_layout(operand, access)
        if layout is None:
            raise bad(f"{access.buffer} cannot be packed for operand '{operand}'")
        array = self.context.workspace(layout.array, access.dtype, layout.size())
        layout = replace(layout, array=array)
        self.copies += packing_copies(self.context, layout, source)
        return layout.reference()

    def _packed_layout(
        self, operand: str, access: Access, extents: Mapping[str, Index] | None = None
    ) -> PackedLayout | None:
        return packed(
            f"{access.buffer}_packed",
            self.mapping,
            operand,
            access,
            self.fillers.get(operand),
            self.extents if extents is None else dict(extents),
            self.block,
            self.order,
            self._kinds.get((operand, access)) == "repeated",
        )

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
        if not isinstance(expr, Access):
            raise bad(f"operand '{operand}' of {self.needle.name} must be an access")
        reference = self.references[operand][expr]
        found = None
        if not reference.guards:
            found = self._fit(operand, wanted, reference, storing=False)
        if found is None:
            raise bad(
                f"{expr.buffer} does not lie as operand '{operand}' wants it: "
                + self._misfit(operand, wanted, reference)
            )
        return RootInput(FromMemory(reference), found)

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
        self, operand: str, partial: frozenset[str], references: Iterable[Reference]
    ) -> Fragment:
        """Return the fragment that an operand takes; of packed elements if it is not simple."""
        found = fragment(self.mapping, operand, partial, self.fillers.get(operand))
        if found is not None:
            return found
        dense = dense_fragment(self.mapping, operand)
        if dense is None or any(r.dense is None for r in references):
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
        return replace(found, guards=(), pad=None)

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


def bad(message: str) -> ScheduleError:
    """Return what is raised where a schedule cannot be lowered."""
    return ScheduleError(Diagnostic("E401", message))
