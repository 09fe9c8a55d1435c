"""The loop nest of one statement: levels, tails, accumulators, the register block."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.index import Index, const, row_major, total, var
from isamap.ir.nodes import Access
from isamap.ir.statements import accesses, identity
from isamap.lower.beside import FinishedResults
from isamap.lower.early import Place, early_inputs, early_results
from isamap.lower.emitter import Emitter, SharedRegister, bind
from isamap.lower.finish import KEPT, Finishing
from isamap.lower.nodes import Call, Copy, Guard, Loop, Node, Operand, Register, Window
from isamap.lower.position import Position
from isamap.lower.statement import RootInput, StatementLowering
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import whole_alignment
from isamap.mapping.fragments.steps import FromMemory, Step
from isamap.mapping.fragments.unreachable import kind_of, missing
from isamap.mapping.tiles.operand import dense_fragment
from isamap.mapping.tiles.shared import brought
from isamap.schedule.schedule import Level
from isamap.schedule.treatment import inputs

Tile = tuple[tuple[str, int], ...]
"""A tile of the register block: the number of the tile along each variable."""

Body = Callable[[Position, tuple[Index, ...] | None], list[Node]]
"""What is inside a level, for a position and the conditions of a first pass."""


class Nest:
    """Makes the nodes of one statement; see :meth:`build`."""

    def __init__(self, lowering: StatementLowering, after: Finishing = KEPT) -> None:
        """``after`` says what becomes of results while they are in registers."""
        self.at = lowering
        self.finished = FinishedResults(lowering, after)
        self.context = lowering.context
        self.statement = lowering.statement
        self.levels = lowering.schedule.levels
        outputs = lowering.output_variables
        last = [n for n, level in enumerate(self.levels) if level.variable in outputs]
        # Accumulators live inside the last loop over a variable of the target.
        self.accumulate_at = last[-1] + 1 if last else 0
        self.stages: dict[str, str] = {}
        self.past = lowering.schedule.bypass is True
        if self.finished.any:
            self._check_complete()

    def _check_complete(self) -> None:
        """Refuse to finish results that are not complete when they leave their register."""
        if self.at.result_in_memory:
            raise _bad(f"{self.at.needle.name} leaves its results in memory, not in registers")
        for level in self.levels[: self.accumulate_at]:
            if level.variable not in self.at.output_variables:
                raise _bad(f"the results are in parts: '{level.variable}' has a loop outside them")

    def build(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[Node, ...]:
        """Return the loop nest.  ``ranges`` are the ends of the kernel's symbols."""
        origin = {v: const(0) for v in self.at.extents}
        position = Position(origin, dict(self.at.extents), dict(ranges))
        return tuple(self._level(0, position, ()))

    # --- loops and tails ------------------------------------------------------------------------
    def _level(self, depth: int, position: Position, first: tuple[Index, ...] | None) -> list[Node]:
        """Return everything inside the first ``depth`` levels.

        ``first`` are the conditions under which this is the first pass over the reduction levels
        outside the accumulators; None if it never is.
        """
        packed = self.at.packs(depth, position)
        if depth == self.accumulate_at:
            return [*packed, *self._accumulate(depth, position, first)]
        return [*packed, *self._split(depth, position, first, None)]

    def _inner(self, depth: int, position: Position, results: dict[Tile, Register]) -> list[Node]:
        """Return what is inside the accumulators: reduction levels, then the block."""
        packed = self.at.packs(depth, position) if depth > self.accumulate_at else ()
        if depth == len(self.levels):
            return [*packed, *self._block(position, results)]
        return [*packed, *self._split(depth, position, (), results)]

    def _split(
        self,
        depth: int,
        position: Position,
        first: tuple[Index, ...] | None,
        results: dict[Tile, Register] | None,
    ) -> list[Node]:
        """Return the full iterations of a level and, after them, its tail."""
        level = self.levels[depth]
        v, step = level.variable, level.step
        outer = depth < self.accumulate_at and v not in self.at.output_variables

        def body(inner: Position, conditions: tuple[Index, ...] | None) -> list[Node]:
            if results is None:
                return self._level(depth + 1, inner, conditions)
            return self._inner(depth + 1, inner, results)

        nodes: list[Node] = []
        full = position.live[v] // step
        rest = position.live[v] % step
        begun = False
        if full != const(0):
            nodes += self._pass(level, position, full, step, first, outer, begun, body)
            begun = True
        if rest == const(0):
            return nodes
        origin = position.origin[v] + full * step
        if rest.constant is not None:
            later = self._later(first, outer, begun)
            return nodes + body(position.moved(v, origin, rest), later)
        return nodes + self._symbolic_tail(level, position, origin, rest, first, outer, body)

    def _pass(
        self,
        level: Level,
        position: Position,
        count: Index,
        step: int,
        first: tuple[Index, ...] | None,
        outer: bool,
        begun: bool,
        body: Body,
    ) -> list[Node]:
        """Return ``count`` full iterations of ``step`` from the position on."""
        v = level.variable
        if count == const(1):
            inner = position.moved(v, position.origin[v], const(step))
            return body(inner, self._later(first, outer, begun))
        counter = self.context.unique(f"{v}_{len(position.ranges)}")
        moved = position.moved(v, position.origin[v] + var(counter) * step, const(step))
        conditions = first
        if outer:
            conditions = None if first is None or begun else (*first, -var(counter))
        inside = body(moved.counting(counter, count), conditions)
        return [Loop(counter, count, tuple(inside), level.parallel)]

    def _symbolic_tail(
        self,
        level: Level,
        position: Position,
        origin: Index,
        rest: Index,
        first: tuple[Index, ...] | None,
        outer: bool,
        body: Body,
    ) -> list[Node]:
        """Return the tail of a range that is known at run time only: whole tiles, then a part."""
        v = level.variable
        tile = self.at.tile[v]
        later = self.levels[self.levels.index(level) + 1 :]
        if any(inner.variable == v for inner in later):
            conditions = (*first, -origin) if outer and first is not None else first
            inside = body(position.moved(v, origin, rest), conditions)
            return [Guard((rest - 1,), tuple(inside))]
        # Whether the full iterations ran is not known here, so a first pass is told by position.
        conditions = None if first is None else (*first, -origin) if outer else first
        nodes: list[Node] = []
        start = position.moved(v, origin, rest)
        whole = rest // tile
        if level.step > tile:
            nodes += self._pass(level, start, whole, tile, conditions, outer, False, body)
        part = rest % tile
        if part != const(0):
            at = origin + whole * tile if level.step > tile else origin
            late = conditions
            if outer and conditions is not None:
                late = (*(first or ()), -at)
            inner = start.moved(v, at, part)
            nodes.append(Guard((part - 1,), tuple(body(inner, late))))
        return nodes

    @staticmethod
    def _later(
        first: tuple[Index, ...] | None, outer: bool, begun: bool
    ) -> tuple[Index, ...] | None:
        return None if outer and begun else first

    # --- accumulators ---------------------------------------------------------------------------
    def _accumulate(
        self, depth: int, position: Position, first: tuple[Index, ...] | None
    ) -> list[Node]:
        """Return the code that makes, fills and stores the results of one register block."""
        early = early_results(self.at, position, self._results)
        if self.at.result_in_memory or self.statement.reduction == "=":
            return [*early, *self._inner(depth, position, {})]
        emitter = Emitter(self.context, [*early], places=self.at.schedule.places(None))
        results: dict[Tile, Register] = {}
        for tile in self._tiles(position, self.at.output_variables):
            here = self._tile_position(position, tile)
            register = emitter.register(self._result_fragment(here), "acc")
            results[tile] = register
            self._start(emitter, here, register, first)
        emitter.nodes += self._inner(depth, position, results)
        for tile, register in results.items():
            self._finish(emitter, self._tile_position(position, tile), register)
        return list(emitter.scope())

    def _start(
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
                raise _bad(
                    f"no instruction sets a register of {register.storage} to {literal.text}"
                )
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
                raise _bad(f"the result's register cannot be loaded: {why}")
        emitter.make_into(step, here, register)

    def _results(self, position: Position) -> Iterator[Place]:
        """Yield where a block's results go, and their type."""
        if self.finished.kept:
            yield self.at.output, self.statement.target.dtype
        for finished in self.finished.of(position.partial(self.at.tile)):
            yield finished.reference, finished.finish.target.dtype

    def _finish(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Finish a result, and take it to its buffer if it is wanted there too."""
        for finished in self.finished.of(here.partial(self.at.tile)):
            emitter.held[finished.finish.result] = register
            made = emitter.source(finished.made, here, "f")
            assert isinstance(made, Register)
            finish, to = finished.finish, finished.reference
            if not finished.staged:
                emitter.store(finished.store, here, made, to, self.past)
                continue
            staged = self._stage_reference(finish.target, register.shape)
            emitter.store(finished.store, here, made, staged)
            emitter.nodes.append(self._stage_copy(here, finish.target, to))
        if self.finished.kept:
            self._store(emitter, here, register)

    def _store(self, emitter: Emitter, here: Position, register: Register) -> None:
        """Take a result to its buffer, through a stage if no instruction stores it directly."""
        store = self.at.store(here.partial(self.at.tile))
        if store is not None:
            emitter.store(store, here, register, self.at.output, self.past)
            return
        target = self.statement.target
        staged = self._stage_reference(target, register.shape)
        store = self.context.producers.store(self._dense(), staged)
        if store is None:
            raise _bad(
                f"no instruction takes {kind_of(self._dense())} from {register.storage} to memory"
            )
        emitter.store(store, here, register, staged)
        emitter.nodes.append(self._stage_copy(here, target, self.at.output))

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
        shape = self._result_fragment(here).shape
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

    def _result_fragment(self, here: Position) -> Fragment:
        return self.at.result(here.partial(self.at.tile)) or self._dense()

    def _dense(self) -> Fragment:
        found = dense_fragment(self.at.mapping, self.at.needle.target.buffer)
        if found is None:
            raise _bad(f"the result of {self.at.needle.name} has no fixed shape")
        return found

    def _bare(self, register: Register) -> Fragment:
        return Fragment(register.storage, register.dtype, register.shape, self._dense().dims)

    # --- the register block ---------------------------------------------------------------------
    def _tiles(self, position: Position, variables: frozenset[str]) -> Iterator[Tile]:
        """Yield the tiles of the block over some variables, in the order of the loops."""
        names = [v for v in self.at.order if v in variables]
        for numbers in product(*(range(self._count(position, v)) for v in names)):
            yield tuple(zip(names, numbers, strict=True))

    def _count(self, position: Position, variable: str) -> int:
        live = position.live[variable].constant
        return 1 if live is None else -(-live // self.at.tile[variable])

    def _tile_position(self, position: Position, tile: Tile) -> Position:
        """Return the position of one tile of the block."""
        for v, number in tile:
            live, extent = position.live[v], self.at.tile[v]
            if live.constant is not None:
                rest = const(min(extent, live.constant - number * extent))
                position = position.moved(v, position.origin[v] + number * extent, rest)
        return position

    def _block(self, position: Position, results: dict[Tile, Register]) -> list[Node]:
        """Return the calls of one register block."""
        emitter = Emitter(self.context)
        outputs = self.at.output_variables
        rest = frozenset(self.at.extents) - outputs
        calls = [
            (self._tile_position(self._tile_position(position, inner), outer), outer)
            for inner in self._tiles(position, rest)
            for outer in self._tiles(position, outputs)
        ]
        for here, outer in self._streamed(calls):
            self._call(emitter, here, results.get(outer))
        return [*early_inputs(self.at, position), *emitter.scope()]

    def _streamed(self, calls: list[tuple[Position, Tile]]) -> list[tuple[Position, Tile]]:
        """Return the calls in the order in which one operand lies in memory.

        Each of its fragments is then loaded once, used by all its calls, and dies; only those of
        the other operands stay in registers.  It is the one that the schedule names, or else the
        one with most fragments.
        """
        can_move = self.context.kernel.permissions.reassociate
        named = self.at.schedule.stream
        if named is None and not can_move:
            return calls
        if named is not None:
            most = self._places(inputs(self.at.mapping)[named][1], calls)
        else:
            most = []
            for _, expr in brought(self.at.matching):
                for access in accesses(expr)[:1]:
                    keys = self._places(access, calls)
                    if len(set(keys)) > len(set(most)):
                        most = keys
        if len(set(most)) <= 1:
            return calls
        order = sorted(range(len(calls)), key=lambda n: most[n])
        if not can_move and not _keeps_sums(order, [outer for _, outer in calls]):
            raise _bad("the order of the calls would change that of sums, which must keep theirs")
        return [calls[n] for n in order]

    @staticmethod
    def _places(access: Access, calls: list[tuple[Position, Tile]]) -> list[tuple[int, ...]]:
        return [tuple(here.at(index).offset for index in access.indices) for here, _ in calls]

    def _call(self, emitter: Emitter, here: Position, result: Register | None) -> None:
        """Emit the root instruction for one tile."""
        needle = self.at.needle
        partial = here.partial(self.at.tile)
        operands: list[tuple[str, Operand]] = []
        symbols: dict[str, Index] = {}
        same = SharedRegister(needle.entry.same)
        fed = brought(self.at.matching)
        if needle.entry.same:  # what is overwritten first: others may have to take its register
            fed = tuple(sorted(fed, key=lambda one: one[0] != needle.tied))
        for name, _ in fed:
            if name == needle.tied and self.at.result_in_memory:
                continue  # it lies where the result goes
            emitter.places = self._places_of(name)
            made = self.at.input(name, partial)
            owner = needle.owner(name)
            if name == needle.tied and isinstance(made, Step):
                assert result is None
                result = emitter.register(made.fragment, "r")
                emitter.make_into(made, here, result)
                same.noted(name, made, result)
                continue
            if isinstance(made, Step):
                operand = same.known(owner, made) or emitter.make(made, here, owner)
                operands.append((owner, same.noted(owner, made, operand)))
                continue
            operands.append((owner, emitter.source(made.source, here, owner)))
            self._join(symbols, self._symbols(made, name, here))
        emitter.places = self.at.schedule.places(None)
        target = needle.target.buffer
        staged: Copy | None = None
        if self.at.result_in_memory:
            window, staged = self._window(here, partial, symbols)
            tied = needle.tied or target
            operands += [(name, window) for name in dict.fromkeys((tied, target))]
        else:
            if result is None:
                result = emitter.register(self._result_fragment(here), "r")
            operands.append((target, result))
            if needle.tied is not None and needle.tied != target:
                operands.append((needle.tied, result))
        bound = {e.name for e in needle.entry.instruction.extents if e.value is None}
        for extent in needle.entry.instruction.extents:
            if extent.name in bound and extent.name not in symbols:
                symbols[extent.name] = const(extent.range[1] - 1 if extent.range else 0)
        emitter.nodes.append(Call(needle.name, tuple(operands), tuple(sorted(symbols.items()))))
        if staged is not None:
            emitter.nodes.append(staged)
        if self.statement.reduction == "=" and result is not None:
            self._finish(emitter, here, result)

    def _places_of(self, operand: str) -> int:
        """Return in how many places what is made for an operand lies in turn."""
        own = [n for n, (name, _) in enumerate(inputs(self.at.mapping)) if name == operand]
        return max((self.at.schedule.places(n) for n in own), default=1)

    def _symbols(self, made: RootInput, operand: str, here: Position) -> dict[str, Index]:
        if made.fit is None:
            return {}
        assert isinstance(made.source, FromMemory)
        references = (made.source.reference,)
        wanted = self.at.fragment(operand, here.partial(self.at.tile), references)
        dense = made.source.reference.dense is not None
        fit = made.fit
        return dict(bind(fit.limits, fit.pitches, wanted, here, dense, fit.counted))

    def _join(self, symbols: dict[str, Index], more: Mapping[str, Index]) -> None:
        """Add the extents that an operand asks for to those of the operands before it.

        Of an axis that one has all elements of, and another one less, the less are computed.
        """
        extents = self.at.needle.entry.instruction.extents
        most = {e.name: const(e.range[1] - 1) for e in extents if e.range is not None}
        for name, value in more.items():
            known = symbols.setdefault(name, value)
            if known == value or value == most.get(name):
                continue
            if known != most.get(name):
                raise _bad(f"operands of {self.at.needle.name} want {name} = {known} and {value}")
            symbols[name] = value

    def _window(
        self, here: Position, partial: frozenset[str], symbols: dict[str, Index]
    ) -> tuple[Window, Copy | None]:
        """Return where the root instruction writes, and the copy from there if that is a stage."""
        target = self.statement.target
        found = self.at.store_fit(partial)
        wanted = self.at.result(partial)
        if found is not None and wanted is not None:
            own = bind(found.limits, found.pitches, wanted, here, False)
            self._join(symbols, dict(own))
            return Window(self.at.output.array, here.at(self.at.output.offset)), None
        if wanted is not None and self.statement.reduction == "=" and self.at.needle.tied is None:
            stage = self._stage_reference(target, wanted.shape)
            if (found := self.at.store_fit(partial, stage)) is not None:
                own = bind(found.limits, found.pitches, wanted, here, True, found.counted)
                self._join(symbols, dict(own))
                copy = self._stage_copy(here, target, self.at.output)
                return Window(stage.array, stage.offset), copy
        raise _bad(
            f"{target.buffer} does not lie as {self.at.needle.name} writes it: "
            f"{self.at.store_misfit(partial)}"
        )


def _keeps_sums(order: list[int], results: list[Tile]) -> bool:
    """Return whether the calls that add to one result keep their order."""
    last: dict[Tile, int] = {}
    for number in order:
        if last.get(results[number], -1) > number:
            return False
        last[results[number]] = number
    return True


def _bad(message: str) -> ScheduleError:
    return ScheduleError(Diagnostic("E401", message))
