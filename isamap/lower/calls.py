"""The calls of one register block, in the order in which they need least registers."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, product

from isamap.hw.accelerator import Storage
from isamap.ir.index import Index, const
from isamap.ir.nodes import Access
from isamap.ir.statements import accesses
from isamap.lower.early import early_inputs
from isamap.lower.emitter import Emitter, SharedRegister, bind
from isamap.lower.fault import bad
from isamap.lower.nodes import Call, Copy, Guard, Node, Operand, Register
from isamap.lower.position import Position
from isamap.lower.results import Results
from isamap.lower.statement import RootInput, StatementLowering
from isamap.mapping.fragments.steps import FromMemory, Step
from isamap.mapping.tiles.counted import counted_axes
from isamap.mapping.tiles.shared import brought
from isamap.schedule.treatment import inputs

Tile = tuple[tuple[str, int], ...]
"""A tile of the register block: the number of the tile along each variable."""


class Block:
    """Makes the calls of a statement's instruction for the tiles of a register block."""

    def __init__(self, lowering: StatementLowering, results: Results) -> None:
        self.at = lowering
        self.results = results
        self.context = lowering.context
        self.statement = lowering.statement

    def tiles(self, position: Position, variables: frozenset[str]) -> Iterator[Tile]:
        """Yield the tiles of the block over some variables, in the order of the loops."""
        names = [v for v in self.at.order if v in variables]
        for numbers in product(*(range(self._count(position, v)) for v in names)):
            yield tuple(zip(names, numbers, strict=True))

    def _count(self, position: Position, variable: str) -> int:
        live = position.live[variable].constant
        return 1 if live is None else -(-live // self.at.tile[variable])

    def position_of(self, position: Position, tile: Tile) -> Position:
        """Return the position of one tile of the block."""
        origins, lives = {**position.origin}, {**position.live}
        for v, number in tile:
            live, extent = position.live[v].constant, self.at.tile[v]
            if live is not None:
                lives[v] = const(min(extent, live - number * extent))
                origins[v] += number * extent
        return Position(origins, lives, position.ranges, position.given)

    def nodes(self, position: Position, results: dict[Tile, Register]) -> list[Node]:
        """Return the calls of one register block."""
        emitter = Emitter(self.context)
        useful = self._useful(self._in_order(self._rounds(position)), results)
        if not useful:
            return [*early_inputs(self.at, position)]
        common = frozenset.intersection(*(frozenset(left) for _, _, left in useful))
        # An instruction that is several has registers of its own: compilers that run out of them
        # move sums from one to another where branches meet.
        is_one = self.at.needle.entry.length == 1
        for left, group in groupby(
            useful, lambda one: [c for c in one[2] if is_one and c not in common]
        ):
            own = [(here.where(common).where(left), results.get(outer)) for here, outer, _ in group]
            self._calls(emitter, own, tuple(left))
        made = emitter.scope()
        if common:
            made = (Guard(tuple(c for c in useful[0][2] if c in common), made),)
        return [*early_inputs(self.at, position), *made]

    def undecided(
        self, position: Position, results: Mapping[Tile, Register]
    ) -> list[tuple[Index, ...]]:
        """Return what must hold for each call of a block that may do something."""
        calls = [call for calls in self._rounds(position) for call in calls]
        return [left for _, _, left in self._useful(calls, results)]

    def _rounds(self, position: Position) -> list[list[tuple[Position, Tile]]]:
        """Return where the calls of a block are, those of each reduction step."""
        outputs = self.at.output_variables
        rest = frozenset(self.at.extents) - outputs
        outers = [*self.tiles(position, outputs)]
        steps = [self.position_of(position, inner) for inner in self.tiles(position, rest)]
        return [[(self.position_of(step, outer), outer) for outer in outers] for step in steps]

    def _useful(
        self, calls: Sequence[tuple[Position, Tile]], results: Mapping[Tile, Register]
    ) -> list[tuple[Position, Tile, tuple[Index, ...]]]:
        """Return the calls that may do something, each with what must hold for that."""
        conditions = self.at.operands.useful()
        found: list[tuple[Position, Tile, tuple[Index, ...]]] = []
        for here, outer in calls:
            is_added = outer in results and not self.at.needle.entry.same
            left = here.undecided(conditions) if is_added else ()
            if left is not None:
                found.append((here, outer, left))
        return found

    def _calls(
        self,
        emitter: Emitter,
        calls: Sequence[tuple[Position, Register | None]],
        conditions: tuple[Index, ...],
    ) -> None:
        """Emit calls that are done under conditions; what others may share is made before."""
        if not conditions:
            far = [inputs(self.at.mapping)[n] for n in self.at.schedule.past]
            far = [one for one in far if self._has_room(calls, *one)]
            for number, (here, result) in enumerate(calls):
                # What comes from farther away is asked for first, a fragment ahead.
                for operand, access in far:
                    self._bring(emitter, self._next(calls[number:], access), {operand})
                self._call(emitter, here, result)
            return
        self._bring(emitter, calls, {name for name, _ in brought(self.at.matching)})
        inner = emitter.inside()
        for here, result in calls:
            self._call(inner, here, result)
        emitter.nodes.append(Guard(conditions, inner.scope()))

    def _has_room(
        self,
        calls: Sequence[tuple[Position, Register | None]],
        operand: str,
        access: Access,
    ) -> bool:
        """Return whether registers are left for a fragment of an operand that is brought ahead."""
        machine = self.context.accelerator

        def file_of(name: str) -> tuple[Storage, int]:
            return machine.register_file(
                machine.storage(self.at.needle.operand(name).storage or "")
            )

        own, _ = file_of(operand)
        if own.count is None:
            return True
        results = len({result.name for _, result in calls if result is not None})
        file, each = file_of(self.at.needle.target.buffer)
        taken = results * each if file.name == own.name else 0
        for name, other in inputs(self.at.mapping):
            file, each = file_of(name)
            if file.name == own.name:
                fragments = len({self._place(other, here) for here, _ in calls})
                is_own = (name, other) == (operand, access)
                taken += (min(fragments, 2) if is_own else fragments) * each
        return taken <= own.count

    def _next(
        self, calls: Sequence[tuple[Position, Register | None]], access: Access
    ) -> list[tuple[Position, Register | None]]:
        """Return the first of some calls, and the first one that needs another fragment."""
        places = [self._place(access, here) for here, _ in calls]
        other = next((n for n, place in enumerate(places) if place != places[0]), 0)
        return [calls[0], calls[other]]

    def _bring(
        self,
        emitter: Emitter,
        calls: Sequence[tuple[Position, Register | None]],
        operands: AbstractSet[str],
    ) -> None:
        """Emit what makes some operands of calls, in the order in which these need them."""
        for here, _ in calls if operands else ():
            for name, _ in brought(self.at.matching):
                if name not in operands or name == self.at.needle.tied:
                    continue
                made = self.at.input(name, here.partial(self.at.tile))
                if isinstance(made, Step) and not made.guarded:
                    emitter.places = self._places_of(name)
                    emitter.make(made, here, self.at.needle.owner(name))

    def _in_order(self, rounds: list[list[tuple[Position, Tile]]]) -> list[tuple[Position, Tile]]:
        """Return the calls of a block, of which each round has those of one reduction step.

        Where rounds have no fragments in common, each follows the one before: what it needs dies
        with it.
        """
        if self.at.schedule.stream is None and not self._in_common(rounds):
            return [call for calls in rounds for call in self._streamed(calls)]
        return self._streamed([call for calls in rounds for call in calls])

    def _in_common(self, rounds: Sequence[list[tuple[Position, Tile]]]) -> bool:
        """Return whether two rounds use the same fragment of an input."""
        for _, access in inputs(self.at.mapping):
            places = [set(self._places(access, calls)) for calls in rounds]
            if len(set().union(*places)) < sum(map(len, places)):
                return True
        return False

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
            raise bad("the order of the calls would change that of sums, which must keep theirs")
        return [calls[n] for n in order]

    @classmethod
    def _places(cls, access: Access, calls: list[tuple[Position, Tile]]) -> list[tuple[int, ...]]:
        return [cls._place(access, here) for here, _ in calls]

    @staticmethod
    def _place(access: Access, here: Position) -> tuple[int, ...]:
        return tuple(here.at(index).offset for index in access.indices)

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
        if (other := self.at.other_store(partial)) is not None:
            ((_, moved),) = operands
            assert isinstance(moved, Register)
            emitter.store(other, here, moved, self.at.output, self.results.past)
            return
        target = needle.target.buffer
        staged: tuple[Copy, ...] = ()
        if self.at.result_in_memory:
            window, staged, bound_there = self.results.window(here, partial)
            self._join(symbols, bound_there)
            tied = needle.tied or target
            operands += [(name, window) for name in dict.fromkeys((tied, target))]
        else:
            if result is None:
                result = emitter.register(self.results.fragment(here), "r")
            operands.append((target, result))
            if needle.tied is not None and needle.tied != target:
                operands.append((needle.tied, result))
        counts = self._counts(here, partial)
        bound = {e.name for e in needle.entry.instruction.extents if e.value is None}
        for extent in needle.entry.instruction.extents:
            if extent.name in bound and extent.name not in symbols:
                most = const(extent.range[1] - 1 if extent.range else 0)
                symbols[extent.name] = counts.get(extent.name, most)
        emitter.nodes += staged[:-1]
        emitter.nodes.append(Call(needle.name, tuple(operands), tuple(sorted(symbols.items()))))
        emitter.nodes += staged[-1:]
        if self.statement.reduction == "=" and result is not None:
            self.results.finish(emitter, here, result)

    def _places_of(self, operand: str) -> int:
        """Return in how many places what is made for an operand lies in turn."""
        own = [n for n, (name, _) in enumerate(inputs(self.at.mapping)) if name == operand]
        return max((self.at.schedule.places(n) for n in own), default=1)

    def _counts(self, here: Position, partial: frozenset[str]) -> dict[str, Index]:
        """Return how far the instruction goes along the axes that its extents end."""
        counts: dict[str, Index] = {}
        for name, own in counted_axes(self.at.mapping).values():
            count = const(1)
            for digit in own:
                variable = digit.form.name
                assert variable is not None
                cut = variable in partial
                count *= here.live[variable] if cut else const(digit.extent)
            counts[name] = count
        return counts

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
                raise bad(f"operands of {self.at.needle.name} want {name} = {known} and {value}")
            symbols[name] = value


def _keeps_sums(order: list[int], results: list[Tile]) -> bool:
    """Return whether the calls that add to one result keep their order."""
    last: dict[Tile, int] = {}
    for number in order:
        if last.get(results[number], -1) > number:
            return False
        last[results[number]] = number
    return True
