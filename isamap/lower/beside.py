"""Results that are finished in their register, and what they are finished with.

A bias or a residual is taken as it lies where an instruction does that.  Where none does, because
it takes whole and aligned fragments only, a copy has one for each fragment of results.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.ir.statements import accesses
from isamap.lower.fault import bad
from isamap.lower.finish import Finish, Finished, Finishing, ways_to_finish
from isamap.lower.in_registers import instead
from isamap.lower.packing import packing_copies
from isamap.lower.statement import StatementLowering
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import PackedLayout, PlacedDigit, direct
from isamap.mapping.tiles.operand import dense_fragment, zero_of
from isamap.schedule.overlap import overlapped


@dataclass(frozen=True, slots=True)
class ResultTiles:
    """How the results of a statement lie in fragments.

    ``shape`` is that of a fragment and ``digits`` what lies along each of its dimensions; ``order``
    are the statement's variables, outermost first, with their ``extents``, tiles and blocks.
    """

    shape: tuple[int, ...]
    digits: tuple[tuple[PlacedDigit, ...], ...]
    order: Sequence[str]
    extents: Mapping[str, Index]
    tile: Mapping[str, int]
    block: Mapping[str, int]

    def beside(self, access: Access) -> PackedLayout:
        """Return the layout that has what an access reads for each fragment of results."""
        used = access.names
        used |= {v for dim in self.digits for digit in dim for v in digit.form.names}
        variables = tuple(v for v in self.order if v in used)
        return PackedLayout(
            f"{access.buffer}_packed",
            access,
            self.shape,
            self.digits,
            variables,
            tuple((v, self.extents[v]) for v in variables),
            tuple((v, self.tile[v]) for v in variables),
            tuple((v, self.block[v]) for v in variables),
            zero_of(access.dtype),
            self.shape,
        )


class FinishedResults:
    """How the results of one statement are finished in their register, found once."""

    def __init__(self, at: StatementLowering, after: Finishing) -> None:
        """``after`` says what becomes of them."""
        self._at = at
        self._after = after
        self._packed: dict[Access, Reference] = {}
        self._found: dict[frozenset[str], tuple[Finished, ...]] = {}

    @property
    def kept(self) -> bool:
        """Whether the results themselves go to their buffer, too."""
        return self._after.kept

    @property
    def any(self) -> bool:
        """Whether something is made of them."""
        return bool(self._after.finishes)

    @property
    def ways(self) -> tuple[Finished, ...]:
        """All that was asked for so far: whole fragments and cut ones may be finished in ways of
        their own."""
        return tuple(one for found in self._found.values() for one in found)

    @property
    def first(self) -> Reference:
        """Where results go, or what is made of them first."""
        at, finishes = self._at, self._after.finishes
        if self.kept or not finishes:
            return at.output
        target = finishes[0].target
        return direct(at.context.buffers[target.buffer], target, at.extents, at.context.buffers)

    def of(self, partial: frozenset[str]) -> tuple[Finished, ...]:
        """Return how results are finished, one entry a buffer that is written.

        ``partial`` are the variables of which the block is cut.  ScheduleError if no instructions
        do it.
        """
        if partial not in self._found:
            self._found[partial] = tuple(self._finish(f, partial) for f in self._after.finishes)
        return self._found[partial]

    def _finish(self, finish: Finish, partial: frozenset[str]) -> Finished:
        at = self._at
        held, name = at.result(partial), finish.target.buffer
        if held is None:
            raise bad(f"{name}: the results of {at.needle.name} lie in no plain order")
        buffers = at.context.buffers
        target = direct(buffers[name], finish.target, at.extents, buffers)
        loose = overlapped(at.schedule)
        target = replace(target, guards=(), pad=None, loose=loose)
        taken = [access for access in accesses(finish.value) if access != finish.result]
        references = {
            a: replace(direct(buffers[a.buffer], a, at.extents, buffers), loose=loose)
            for a in taken
        }
        found = self._best(finish, held, references, target)
        dense = dense_fragment(at.mapping, at.needle.target.buffer)
        if found is None and dense is not None and not self._is_made_here(taken):
            own = at.extents, at.tile, at.block
            tiles = ResultTiles(dense.shape, at.result_digits(), at.order, *own)
            layouts = {access: tiles.beside(access) for access in references}
            if any(access.names & loose for access in layouts):
                raise bad(f"no instructions make {name} of what overlaps")
            references = {access: layout.reference() for access, layout in layouts.items()}
            if self._best(finish, held, references, target) is not None:
                references = self._pack(layouts)
                found = self._best(finish, held, references, target)
        if found is None:
            raise bad(f"no instructions make {name} of what {at.needle.name} leaves in a register")
        return found

    def _best(
        self,
        finish: Finish,
        held: Fragment,
        references: Mapping[Access, Reference],
        target: Reference,
    ) -> Finished | None:
        """Return the cheapest way to finish a fragment that has what is asked for, if one has."""
        after, producers = self._after, self._at.context.producers
        machine, spent = producers.accelerator, not after.kept and len(after.finishes) == 1
        ways = ways_to_finish(finish, held, references, target, producers, spent)
        first = next(iter(ways), None)
        if first is None or not after.by:
            return first
        for way in ways:
            if not instead(after, way, machine):
                return way
        # One that is cheaper, or does more at once, hides what is asked for.
        for name in instead(after, first, machine):
            fewer = producers.without(name)
            for way in ways_to_finish(finish, held, references, target, fewer, spent):
                if not instead(after, way, machine):
                    return way
        return first

    def _is_made_here(self, taken: Iterable[Access]) -> bool:
        """Return whether something that is finished beside others is an input of one of them."""
        made = {finish.target.buffer for finish in self._after.finishes}
        return any(access.buffer in made for access in taken)

    def _pack(self, layouts: Mapping[Access, PackedLayout]) -> dict[Access, Reference]:
        """Pack accesses for results that are finished, and return where they are then."""
        at = self._at
        for access, layout in layouts.items():
            if access not in self._packed:
                buffers = at.context.buffers
                found = direct(buffers[access.buffer], access, at.extents, buffers)
                source = at.operands.unguarded(access, found)
                array = at.context.workspace(layout.array, access.dtype, layout.size())
                own = replace(layout, array=array)
                at.operands.copies += packing_copies(at.context, own, source)
                self._packed[access] = own.reference()
        return {access: self._packed[access] for access in layouts}
