"""The results of one statement: how they begin, where they end, and what they pass through."""

from collections.abc import Iterator
from math import prod

from isamap.ir.index import Index, const, row_major, total, var
from isamap.ir.nodes import Access
from isamap.ir.statements import identity
from isamap.lower.beside import FinishedResults
from isamap.lower.early import Place
from isamap.lower.emitter import Emitter, bind
from isamap.lower.fault import bad
from isamap.lower.finish import Finished, Finishing
from isamap.lower.nodes import Copy, Guard, Node, Register, Window
from isamap.lower.position import Position
from isamap.lower.statement import StatementLowering
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import whole_alignment
from isamap.mapping.fragments.steps import Step, Store
from isamap.mapping.fragments.unreachable import missing, not_stored
from isamap.mapping.tiles.operand import dense_fragment


class Results:
    """Makes what comes before and after the calls that compute results."""

    def __init__(self, lowering: StatementLowering, after: Finishing) -> None:
        """``after`` says what becomes of results while they are in registers."""
        self.at = lowering
        self.finished = FinishedResults(lowering, after)
        self.context = lowering.context
        self.statement = lowering.statement
        self.stages: dict[str, str] = {}
        self.past = lowering.schedule.bypass is True

    def start(
        self, emitter: Emitter, here: Position, register: Register, first: tuple[Index, ...] | None
    ) -> None:
        """Give an accumulator its first content: the identity, or what the buffer holds."""
        start: list[Node] = []
        resume: list[Node] = []
        if self.at.initialise == "identity" and first is not None:
            other = Emitter(self.context, registers=emitter.registers)
            literal = identity(self.statement.reduction, register.dtype)
            bare = self._bare(register)
            step = self.context.producers.make(literal, bare, {})
            if step is None:
                what = f"a register of {register.storage} to {literal.text}"
                raise bad(f"no instruction sets {what}, or loads one")
            other.make_into(step, here, register)
            start = other.nodes
        if self.at.initialise == "load" or first is None or first:
            other = Emitter(self.context, registers=emitter.registers)
            self._load(other, here, register)
            resume = other.nodes
        if start and resume:
            emitter.nodes.append(Guard(first or (), tuple(start), tuple(resume)))
        else:
            emitter.nodes += start or resume

    def _load(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Bring the buffer's content into an accumulator."""
        target = self.statement.target
        wanted = self.at.result(here.partial(self.at.tile))
        step: Step | None = None
        if wanted is not None:
            step = self.context.producers.make(target, wanted, {target: self.at.output})
        if step is None:
            emitter.nodes.append(self._stage_copy(here, target, self.at.output, inward=True))
            staged = self._stage_reference(target, register.shape)
            step = self.context.producers.make(target, self._dense(), {target: staged})
            if step is None:
                why = missing(self.context.producers, target, self._dense(), {target: staged})
                raise bad(f"the result's register cannot be loaded: {why}")
        emitter.make_into(step, here, register)

    def check_stored(self, here: Position) -> None:
        """Look whether something takes a result to its buffer, before a block of them is made.

        ScheduleError if nothing does.
        """
        if self.finished.kept and self.at.store(here.partial(self.at.tile)) is None:
            self._staged_store()

    def places(self, position: Position) -> Iterator[Place]:
        """Yield where a block's results go, and their type."""
        if self.finished.kept:
            yield self.at.output, self.statement.target.dtype
        for finished in self.finished.of(position.partial(self.at.tile)):
            yield finished.reference, finished.finish.target.dtype

    def finish(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Finish a result, and take it to its buffer if it is wanted there too."""
        for finished in self.finished.of(here.partial(self.at.tile)):
            self.finish_one(emitter, here, finished, register)
        self.keep(emitter, here, register)

    def finish_one(
        self, emitter: Emitter, here: Position, finished: Finished, register: Register
    ) -> None:
        """Make one buffer's elements of a result, and store them."""
        emitter.held[finished.finish.result] = register
        made = emitter.source(finished.made, here, "f")
        assert isinstance(made, Register)
        besides = [(name, emitter.make(step, here, name)) for name, step in finished.besides]
        finish, to = finished.finish, finished.reference
        if not finished.staged:
            emitter.store(finished.store, here, made, to, self.past, besides)
            return
        staged = self._stage_reference(finish.target, register.shape)
        emitter.store(finished.store, here, made, staged, besides=besides)
        emitter.nodes.append(self._stage_copy(here, finish.target, to))

    def keep(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Take a result to its buffer if it is wanted there, too."""
        if self.finished.kept:
            self._store(emitter, here, register)

    def _store(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Take a result to its buffer, through a stage if no instruction stores it directly."""
        store = self.at.store(here.partial(self.at.tile))
        if store is not None:
            emitter.store(store, here, register, self.at.output, self.past)
            return
        store, staged = self._staged_store()
        emitter.store(store, here, register, staged)
        emitter.nodes.append(self._stage_copy(here, self.statement.target, self.at.output))

    def _staged_store(self) -> tuple[Store, Reference]:
        """Return what stores a whole fragment in a stage, and where that is."""
        dense = self._dense()
        staged = self._stage_reference(self.statement.target, dense.shape)
        store = self.context.producers.store(dense, staged)
        if store is None:
            raise bad(not_stored(self.context.producers, dense, staged))
        return store, staged

    def window(
        self, here: Position, partial: frozenset[str]
    ) -> tuple[Window, tuple[Copy, ...], dict[str, Index]]:
        """Return where the root instruction writes, and the copies if that is a stage.

        The last one is from there; one to there comes first where the instruction changes what it
        finds.  With them come the instruction's extents and pitches there.
        """
        target = self.statement.target
        found = self.at.store_fit(partial)
        wanted = self.at.result(partial)
        if found is not None and wanted is not None:
            own = bind(found.limits, found.pitches, wanted, here, False)
            return Window(self.at.output.array, here.at(self.at.output.offset)), (), dict(own)
        if wanted is not None:
            stage = self._stage_reference(target, wanted.shape)
            if (found := self.at.store_fit(partial, stage)) is not None:
                own = bind(found.limits, found.pitches, wanted, here, True, found.counted)
                copies = [self._stage_copy(here, target, self.at.output)]
                if self.statement.reduction != "=" or self.at.needle.tied is not None:
                    inward = self._stage_copy(here, target, self.at.output, inward=True)
                    copies.insert(0, inward)
                return Window(stage.array, stage.offset), tuple(copies), dict(own)
        raise bad(
            f"{target.buffer} does not lie as {self.at.needle.name} writes it: "
            f"{self.at.store_misfit(partial)}"
        )

    # --- staging --------------------------------------------------------------------------------
    def _stage_reference(self, target: Access, shape: tuple[int, ...]) -> Reference:
        """Return where whole fragments of what ``target`` writes lie on the way to their buffer."""
        stem = f"{target.buffer}_stage"
        if stem not in self.stages:
            self.stages[stem] = self.context.workspace(
                stem, target.dtype, const(prod(shape)), private=True
            )
        alignment = whole_alignment(target.dtype.bytes * prod(shape))
        return Reference(self.stages[stem], const(0), dense=shape, alignment=alignment)

    def _stage_copy(
        self, here: Position, target: Access, place: Reference, inward: bool = False
    ) -> Copy:
        """Return the copy between a staged result and its elements at their ``place``."""
        shape = self.fragment(here).shape
        stage = self._stage_reference(target, shape).array
        digits = self.at.result_digits()
        variables = sorted({v for dim in digits for digit in dim for v in digit.form.names})
        names = {v: self.context.unique(f"{stage}_{v}") for v in variables}
        within: dict[str, Index] = {v: var(name) for v, name in names.items()}
        at = total(
            (digit.form.substitute(within) - digit.low) * digit.weight * pitch
            for dim, pitch in zip(digits, row_major(shape), strict=True)
            for digit in dim
        )
        inside = {v: here.origin[v] + within.get(v, const(0)) for v in here.origin}
        offset = place.offset.substitute(inside)
        counters = tuple((names[v], here.live[v]) for v in variables)
        if inward:
            return Copy(counters, stage, at, place.array, offset)
        return Copy(counters, place.array, offset, stage, at)

    def fragment(self, here: Position) -> Fragment:
        """Return the fragment that holds the results at a position."""
        return self.at.result(here.partial(self.at.tile)) or self._dense()

    def _dense(self) -> Fragment:
        found = dense_fragment(self.at.mapping, self.at.needle.target.buffer)
        if found is None:
            raise bad(f"the result of {self.at.needle.name} has no fixed shape")
        return found

    def _bare(self, register: Register) -> Fragment:
        return Fragment(register.storage, register.dtype, register.shape, self._dense().dims)
