"""One statement under its schedule: what must be known before its loops are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses
from isamap.lower.beside import ResultTiles
from isamap.lower.context import Context
from isamap.lower.finish import KEPT, Finish, Finished, Finishing, finish_fragment
from isamap.lower.nodes import Copy
from isamap.lower.packing import gathering_copies, packing_copies, padded_copy
from isamap.lower.position import Position
from isamap.mapping.fragments.fit import Fit, fit_or_why
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import PackedLayout, PlacedDigit, direct, padded
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
        after: Finishing = KEPT,
    ) -> None:
        """``initialise`` is 'identity' (start from it) or 'load' (from the buffer's content)."""
        self.after = after
        self.context = context
        self.schedule = schedule
        self.mapping = schedule.mapping
        self.matching = schedule.mapping.matching
        self.needle = self.matching.needle
        self.statement: Statement = self.matching.statement
        self.initialise = initialise
        self.extents = {v.name: v.extent for v in self.statement.variables}
        self.tile = {v: self.mapping.tile.get(v, 1) for v in self.extents}
        self.order = self._order()
        self.block = self._block()
        self.fillers = fillers(self.matching, context.kernel.permissions)
        self.copies: list[Copy] = []
        self._later: list[tuple[int, str, Access]] = []
        self._kinds: dict[tuple[str, Access], Treatment] = {}
        self._rooms: dict[tuple[str, Access], str] = {}
        self.references = self._references()
        self.output = self._output()
        self._check_scatter()
        self._steps: dict[tuple[str, frozenset[str]], Step | RootInput] = {}
        self._stores: dict[frozenset[str], Store | None] = {}
        self._beside: dict[Access, Reference] = {}
        self._finished: dict[frozenset[str], tuple[Finished, ...]] = {}

    # --- the loops ------------------------------------------------------------------------------
    @property
    def entry(self) -> Entry:
        """The root instruction."""
        return self.needle.entry

    @property
    def output_variables(self) -> frozenset[str]:
        """The variables that the statement's target uses."""
        return frozenset().union(*(i.names for i in self.statement.target.indices)) & set(
            self.extents
        )

    def _order(self) -> tuple[str, ...]:
        """Return the variables by their innermost level; those without a level come last."""
        last = {level.variable: n for n, level in enumerate(self.schedule.levels)}
        names = list(self.extents)
        return tuple(sorted(names, key=lambda v: (last.get(v, len(last) + 99), names.index(v))))

    def _block(self) -> dict[str, int]:
        """Return the iterations of each variable in a register block, a multiple of its tile."""
        block: dict[str, int] = {}
        for level in self.schedule.levels:
            if level.step % self.tile[level.variable] or level.step < 1:
                raise _bad(
                    f"the step {level.step} of '{level.variable}' is no multiple of its tile "
                    f"{self.tile[level.variable]}"
                )
            outer = block.get(level.variable)
            if outer is not None and (outer % level.step or outer <= level.step):
                raise _bad(f"the steps of '{level.variable}' must decrease and divide")
            block[level.variable] = level.step
        for v, extent in self.extents.items():
            if v in block:
                continue
            if extent.constant is None:
                raise _bad(f"'{v}' has an extent known at run time only and needs a level")
            block[v] = -(-max(1, extent.constant) // self.tile[v]) * self.tile[v]
        return block

    def _check_scatter(self) -> None:
        """Refuse blocks in which two tiles would write one element."""
        shared = scattered(self.statement)
        for v in shared:
            if self.block[v] != self.tile[v]:
                raise _bad(f"iterations of '{v}' write the same elements: its block is one tile")
        for level in self.schedule.levels:
            if level.parallel and level.variable in shared | (
                self.extents.keys() - self.output_variables
            ):
                raise _bad(f"iterations of '{level.variable}' depend on each other: not parallel")

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
                    raise _bad(f"operand '{places[0][0]}' is gathered from several places: packed")
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
            raise _bad(f"{access.buffer} has a pitch between rows, and is {treatment}")
        return pitch

    def _reference(self, operand: str, access: Access, treatment: str, pitch: int) -> Reference:
        found = direct(
            self.context.buffers[access.buffer], access, self.extents, self.context.buffers
        )
        if treatment == "direct":
            return found
        own = operand if treatment == "padded" else None
        found = self._unguarded(access, found, own, pitch)
        if treatment == "padded" or (operand, access) in {(o, a) for _, o, a in self._later}:
            return found
        return self._packed(operand, access, found)

    def _check_inside(
        self, operand: str, access: Access, treatment: str, depth: int, is_gathered: bool
    ) -> None:
        """Refuse to pack inside loops what is not packed, or where there are not as many."""
        if treatment not in ("packed", "repeated") or is_gathered:
            raise _bad(f"{access.buffer} is packed inside loops, and operand '{operand}' is not")
        if not 0 < depth <= len(self.schedule.levels):
            count = len(self.schedule.levels)
            raise _bad(f"{access.buffer} is packed inside {depth} loops, and there are {count}")

    def packs(self, depth: int, here: Position) -> tuple[Copy, ...]:
        """Return the copies that pack operands inside so many loops, of what is alive there.

        From then on the operands are found in these copies.
        """
        copies: list[Copy] = []
        for at, operand, access in self._later:
            if at == depth:
                copies += self._packed_here(operand, access, depth, here)
        return tuple(copies)

    def _packed_here(
        self, operand: str, access: Access, depth: int, here: Position
    ) -> tuple[Copy, ...]:
        unpacked = self._unpacked[operand, access]
        layout = self._packed_layout(operand, access, here.live)
        if layout is None:
            raise _bad(f"{access.buffer} cannot be packed for operand '{operand}'")
        layout = replace(layout, array=self._room(operand, access, depth))
        moved = {v: here.origin[v] + var(v) for v in self.extents}
        source = replace(unpacked, offset=unpacked.offset.substitute(moved))
        found = layout.reference()
        back = {v: var(v) - here.origin[v] for v in self.extents}
        found = replace(found, offset=found.offset.substitute(back))
        self.references[operand][access] = found
        self._steps = {key: step for key, step in self._steps.items() if key[0] != operand}
        return packing_copies(self.context, layout, source)

    def _room(self, operand: str, access: Access, depth: int) -> str:
        """Return the array for what is packed inside so many loops: each thread's own if threads
        share one of them.
        """
        if (operand, access) not in self._rooms:
            outer = self.schedule.levels[:depth]
            steps = {level.variable: level.step for level in outer}
            extents = {
                v: extent if v not in steps else const(min(steps[v], extent.constant or steps[v]))
                for v, extent in self.extents.items()
            }
            layout = self._packed_layout(operand, access, extents)
            assert layout is not None, "it was packed already"
            private = any(level.parallel for level in outer)
            name = self.context.workspace(layout.array, access.dtype, layout.size(), private)
            self._rooms[operand, access] = name
        return self._rooms[operand, access]

    def _unguarded(
        self, access: Access, found: Reference, operand: str | None = None, pitch: int = 0
    ) -> Reference:
        """Return where an access finds its elements without leaving its buffer.

        Whole fragments of an ``operand`` may be read there; ``pitch`` is that of a padded copy.
        """
        buffer = self.context.buffers[access.buffer]
        if found.guards:
            layout = padded(f"{buffer.name}_padded", access, self.extents)
            if layout is None:
                raise _bad(f"the reach of {buffer.name} has no closed form: it cannot be padded")
            length = layout.shape[-1].constant if layout.shape else None
            if pitch and (length is None or length > pitch):
                raise _bad(f"rows of {buffer.name}_padded are longer than {pitch} elements")
            layout = replace(layout, pitch=pitch)
            size = product(layout.room)
            if operand is not None:
                size += spare_rows(self.mapping, operand, layout.reference(), self.extents)
            layout = replace(layout, array=self.context.workspace(layout.array, access.dtype, size))
            self.copies.append(padded_copy(self.context, layout))
            found = layout.reference()
        return found

    def _gathered(self, operand: str, places: Sequence[tuple[str, Expr]]) -> Reference:
        """Return where an operand lies that is packed from what several places want."""
        layouts: list[PackedLayout] = []
        sources: list[Reference] = []
        for place, expr in places:
            layout = self._packed_layout(place, expr) if isinstance(expr, Access) else None
            if layout is None or not isinstance(expr, Access):
                raise _bad(f"{print_expr(expr)} cannot be packed for operand '{operand}'")
            buffers = self.context.buffers
            found = direct(buffers[expr.buffer], expr, self.extents, buffers)
            layouts.append(layout)
            sources.append(self._unguarded(expr, found))
        first = layouts[0]
        array = self.context.workspace(first.array, first.access.dtype, first.size())
        layouts = [replace(layout, array=array) for layout in layouts]
        self.copies += gathering_copies(self.context, layouts, sources)
        return layouts[0].reference()

    def _packed(self, operand: str, access: Access, source: Reference) -> Reference:
        layout = self._packed_layout(operand, access)
        if layout is None:
            raise _bad(f"{access.buffer} cannot be packed for operand '{operand}'")
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
            raise _bad(f"operand '{operand}' of {self.needle.name} takes only a constant")
        references = self.references[operand]
        wanted = self.fragment(operand, partial, references.values())
        if producers.is_memory(buffer.storage):
            return self._memory_input(operand, expr, wanted)
        step = producers.make(expr, wanted, references)
        if step is None:
            raise _bad(
                f"operand '{operand}' of {self.needle.name} cannot be brought to it: "
                + missing(producers, expr, wanted, references)
            )
        return step

    def _memory_input(self, operand: str, expr: Expr, wanted: Fragment) -> RootInput:
        if not isinstance(expr, Access):
            raise _bad(f"operand '{operand}' of {self.needle.name} must be an access")
        reference = self.references[operand][expr]
        found = None
        if not reference.guards:
            found = self._fit(operand, wanted, reference, storing=False)
        if found is None:
            raise _bad(
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
            raise _bad(
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
            raise _bad(f"operand '{tied}' of {self.needle.name} would overwrite what is read")
        if not isinstance(expr, Access):
            raise _bad(f"operand '{tied}' of {self.needle.name} must be an access")
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

    def finished(self, partial: frozenset[str]) -> tuple[Finished, ...]:
        """Return how results are finished in their register, one entry a buffer that is written."""
        if partial not in self._finished:
            self._finished[partial] = tuple(
                self._finish(finish, partial) for finish in self.after.finishes
            )
        return self._finished[partial]

    def _finish(self, finish: Finish, partial: frozenset[str]) -> Finished:
        held, name = self.result(partial), finish.target.buffer
        if held is None:
            raise _bad(f"{name}: the results of {self.needle.name} lie in no plain order")
        producers = self.context.producers
        spent = not self.after.kept and len(self.after.finishes) == 1
        buffers = self.context.buffers
        target = direct(buffers[name], finish.target, self.extents, buffers)
        target = replace(target, guards=(), pad=None)
        taken = [access for access in accesses(finish.value) if access != finish.result]
        references = {a: direct(buffers[a.buffer], a, self.extents, buffers) for a in taken}
        found = finish_fragment(finish, held, references, target, producers, spent)
        dense = dense_fragment(self.mapping, self.needle.target.buffer)
        if found is None and dense is not None and not self._is_made_here(taken):
            own = self.extents, self.tile, self.block
            tiles = ResultTiles(dense.shape, self.result_digits(), self.order, *own)
            layouts = {access: tiles.beside(access) for access in references}
            references = {access: layout.reference() for access, layout in layouts.items()}
            if finish_fragment(finish, held, references, target, producers, spent) is not None:
                references = self._pack_beside(layouts)
                found = finish_fragment(finish, held, references, target, producers, spent)
        if found is None:
            text = f"no instructions make {name} of what {self.needle.name} leaves in a register"
            raise _bad(text)
        return found

    def _is_made_here(self, taken: Iterable[Access]) -> bool:
        """Return whether something that is finished beside others is an input of one of them."""
        made = {finish.target.buffer for finish in self.after.finishes}
        return any(access.buffer in made for access in taken)

    def _pack_beside(self, layouts: Mapping[Access, PackedLayout]) -> dict[Access, Reference]:
        """Pack accesses for results that are finished, and return where they are then."""
        buffers = self.context.buffers
        for access, layout in layouts.items():
            if access not in self._beside:
                found = direct(buffers[access.buffer], access, self.extents, buffers)
                source = self._unguarded(access, found)
                array = self.context.workspace(layout.array, access.dtype, layout.size())
                own = replace(layout, array=array)
                self.copies += packing_copies(self.context, own, source)
                self._beside[access] = own.reference()
        return {access: self._beside[access] for access in layouts}

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


def scattered(statement: Statement) -> frozenset[str]:
    """Return the variables of the target of which different values may write one element.

    A variable is free of that if it is alone in some index, with a number as coefficient.
    """
    names = {v.name for v in statement.variables}
    alone: set[str] = set()
    for index in statement.target.indices:
        used = index.names & names
        if len(used) == 1 and index.is_linear_in(used):
            (name,) = used
            if index.coefficient(name).constant:
                alone.add(name)
    used_anywhere = frozenset().union(*(i.names for i in statement.target.indices))
    return frozenset((used_anywhere & names) - alone)


def _bad(message: str) -> ScheduleError:
    return ScheduleError(Diagnostic("E401", message))
