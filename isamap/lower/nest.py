"""The loop nest of one statement: levels, tails, and where accumulators live."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil

from isamap.ir.index import Index, const, var
from isamap.lower.again import check_again, whole_tiles
from isamap.lower.calls import Block, Tile
from isamap.lower.early import early_results
from isamap.lower.emitter import Emitter
from isamap.lower.fault import bad
from isamap.lower.finish import KEPT, Finishing
from isamap.lower.later import Later, between, check_later
from isamap.lower.nodes import Guard, Loop, Node, Register, Scope
from isamap.lower.position import Position
from isamap.lower.results import Results
from isamap.lower.statement import StatementLowering
from isamap.schedule.schedule import Level
from isamap.schedule.treatment import ASSUMED_EXTENT, numeric

CALLS_IN_PARTS = 64
"""Calls that compute between which results of the block before are finished one by one, at most."""

CALLS_IN_BODIES = 128
"""Calls that innermost loops which differ in the conditions they may take for given have in all."""

FEW_BLOCKS, SHORT_BLOCK = 8, 32
"""Blocks of a loop, at most, of which the last one hands its results on to the next iteration of
the loop around, too, and calls that compute one: code doubles, and of more blocks, or of long ones,
few results are finished with nothing beside them.
"""


def hoisted(loop: Loop) -> list[Node]:
    """Return a loop; conditions of all that it does and that do not change in it are around it."""
    match loop.body:
        case (Guard(conditions, body, ()),) if not loop.parallel:
            around = tuple(c for c in conditions if loop.counter not in c.names)
            inside = tuple(c for c in conditions if loop.counter in c.names)
            if around:
                body = (Guard(inside, body),) if inside else body
                return [Guard(around, (replace(loop, body=body),))]
    return [loop]


def cases(position: Position, conditions: Sequence[Index]) -> Iterator[Position]:
    """Yield the position for each way in which conditions hold or fail, first where all hold."""
    for n, condition in enumerate(conditions):
        left = position.undecided((condition,))
        if left:
            yield from cases(position.where((condition,)), conditions[n + 1 :])
            yield from cases(position.where((-condition - 1,)), conditions[n + 1 :])
            return
    yield position


def decided(
    position: Position, conditions: Sequence[Index], make: Callable[[Position], list[Node]]
) -> list[Node]:
    """Return nodes that are made for each of the :func:`cases`, and what decides between them."""
    for n, condition in enumerate(conditions):
        if position.undecided((condition,)):
            rest = conditions[n + 1 :]
            holds = tuple(decided(position.where((condition,)), rest, make))
            fails = tuple(decided(position.where((-condition - 1,)), rest, make))
            if not holds:
                return [Guard((-condition - 1,), fails)] if fails else []
            return [Guard((condition,), holds, fails)]
    return make(position)


class Nest:
    """Makes the nodes of one statement; see :meth:`build`."""

    def __init__(self, lowering: StatementLowering, after: Finishing = KEPT) -> None:
        """``after`` says what becomes of results while they are in registers."""
        self.at = lowering
        self.results = Results(lowering, after)
        self.block = Block(lowering, self.results)
        self.context = lowering.context
        self.statement = lowering.statement
        self.levels = lowering.schedule.levels
        outputs = lowering.output_variables
        last = [n for n, level in enumerate(self.levels) if level.variable in outputs]
        # Accumulators live inside the last loop over a variable of the target.
        self.accumulate_at = last[-1] + 1 if last else 0
        self.shared = 0  # loops around that threads share
        if self.results.finished.any:
            self._check_complete()
        if lowering.schedule.later and self.results.finished.any:
            check_later(lowering, self.accumulate_at)
        check_again(lowering, after, self.accumulate_at)

    def _check_complete(self) -> None:
        """Refuse to finish results that are not complete when they leave their register."""
        if self.at.result_in_memory:
            raise bad(f"{self.at.needle.name} leaves its results in memory, not in registers")
        for level in self.levels[: self.accumulate_at]:
            if level.variable not in self.at.output_variables:
                raise bad(f"the results are in parts: '{level.variable}' has a loop outside them")

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
        packed = self.at.copied_inside(depth, position)
        if depth == self.accumulate_at:
            return [*packed, *self._accumulate(depth, position, first)]
        return [*packed, *self._split(depth, position, first, None)]

    def _inner(self, depth: int, position: Position, results: dict[Tile, Register]) -> list[Node]:
        """Return what is inside the accumulators: reduction levels, then the block."""
        packed = self.at.copied_inside(depth, position) if depth > self.accumulate_at else ()
        if depth == len(self.levels):
            return [*packed, *self.block.nodes(position, results)]
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

        nodes: list[Node] = []
        full = self._count(level, position)
        rest = position.live[v] % step
        begun = False
        if full != const(0):
            if results is None and self._is_later(depth, position):
                nodes += self._later_pass(depth, position)
            else:
                nodes += self._pass(depth, position, full, step, first, outer, begun, results)
            begun = True
        if rest == const(0):
            return nodes
        origin = position.origin[v] + full * step
        if rest.constant is not None:
            if level.overlap:
                origin, rest = whole_tiles(position, v, self.at.tile[v], origin, rest.constant)
            later = self._later(first, outer, begun)
            return nodes + self._inside(depth, position.moved(v, origin, rest), later, results)
        return nodes + self._symbolic_tail(depth, position, origin, rest, first, outer, results)

    def _inside(
        self,
        depth: int,
        position: Position,
        first: tuple[Index, ...] | None,
        results: dict[Tile, Register] | None,
    ) -> list[Node]:
        """Return what is inside a level."""
        if results is None:
            return self._level(depth + 1, position, first)
        return self._inner(depth + 1, position, results)

    def _pass(
        self,
        depth: int,
        position: Position,
        count: Index,
        step: int,
        first: tuple[Index, ...] | None,
        outer: bool,
        begun: bool,
        results: dict[Tile, Register] | None,
    ) -> list[Node]:
        """Return ``count`` full iterations of ``step`` from the position on."""
        level = self.levels[depth]
        v = level.variable
        if count == const(1):
            inner = position.moved(v, position.origin[v], const(step))
            return self._inside(depth, inner, self._later(first, outer, begun), results)
        counter = self.context.unique(f"{v}_{len(position.ranges)}")
        moved = position.moved(v, position.origin[v] + var(counter) * step, const(step))
        conditions = first
        if outer:
            conditions = None if first is None or begun else (*first, -var(counter))

        def loop(where: Position) -> list[Node]:
            inside = self._inside(depth, where, conditions, results)
            return hoisted(Loop(counter, count, tuple(inside), level.parallel)) if inside else []

        here = moved.counting(counter, count)
        if results and depth + 1 == len(self.levels):
            return self._by_cases(here, counter, results, loop)
        self.shared += level.parallel
        made = loop(here)
        self.shared -= level.parallel
        return made

    def _by_cases(
        self,
        position: Position,
        counter: str,
        results: dict[Tile, Register],
        loop: Callable[[Position], list[Node]],
    ) -> list[Node]:
        """Return an innermost loop for each case of what its calls do under conditions.

        Those that do not change in it are decided before it, one loop for each way in which they
        hold or fail; where that is too much code, one for where all of them hold, and another one.
        """
        calls = self.block.undecided(position, results)
        if not calls:
            return loop(position)
        own = [frozenset(c for c in left if counter not in c.names) for left in calls]
        common = frozenset.intersection(*own)
        conditions = tuple(dict.fromkeys(c for left in calls for c in left))
        always = tuple(c for c in conditions if c in common)
        if always:
            return [
                Guard(always, tuple(self._by_cases(position.where(always), counter, results, loop)))
            ]
        parting = [c for c in conditions if any(c in left for left in own)]
        most = CALLS_IN_BODIES // len(calls)
        if len(list(islice(cases(position, parting), most + 1))) <= most:
            return decided(position, parting, loop)
        whole = tuple(loop(position.where(parting)))
        return [Guard(tuple(parting), whole, tuple(loop(position)))]

    def _symbolic_tail(
        self,
        depth: int,
        position: Position,
        origin: Index,
        rest: Index,
        first: tuple[Index, ...] | None,
        outer: bool,
        results: dict[Tile, Register] | None,
    ) -> list[Node]:
        """Return the tail of a range that is known at run time only: whole tiles, then a part."""
        level = self.levels[depth]
        v = level.variable
        tile = self.at.tile[v]
        later = self.levels[depth + 1 :]
        if any(inner.variable == v for inner in later):
            conditions = (*first, -origin) if outer and first is not None else first
            inside = self._inside(depth, position.moved(v, origin, rest), conditions, results)
            return [Guard((rest - 1,), tuple(inside))]
        # Whether the full iterations ran is not known here, so a first pass is told by position.
        conditions = None if first is None else (*first, -origin) if outer else first
        nodes: list[Node] = []
        start = position.moved(v, origin, rest)
        whole = rest // tile
        if level.step > tile:
            nodes += self._pass(depth, start, whole, tile, conditions, outer, False, results)
        part = rest % tile
        if part != const(0):
            at = origin + whole * tile if level.step > tile else origin
            late = conditions
            if outer and conditions is not None:
                late = (*(first or ()), -at)
            inner = start.moved(v, at, part)
            nodes.append(Guard((part - 1,), tuple(self._inside(depth, inner, late, results))))
        return nodes

    @staticmethod
    def _later(
        first: tuple[Index, ...] | None, outer: bool, begun: bool
    ) -> tuple[Index, ...] | None:
        return None if outer and begun else first

    # --- results that are finished later --------------------------------------------------------
    def _is_later(self, depth: int, position: Position) -> bool:
        """Return whether blocks inside a level hand results on: one thread does several in turn.

        It is the innermost level over results, or the one around it that has few blocks.
        """
        inner = self.levels[depth : self.accumulate_at]
        wanted = self.at.schedule.later and self.results.finished.any
        if not wanted or not 1 <= len(inner) <= 2:
            return False
        for number, level in enumerate(inner):
            count = self._count(level, position).constant
            if (level.parallel and not self.shared) or count is None or count < 2:
                return False
            rest = position.live[level.variable] % level.step
            if number and (count > FEW_BLOCKS or rest != const(0)):
                return False
            position = self._iteration(level, position, const(0))
        return len(inner) == 1 or self._is_short(position)

    def _is_short(self, block: Position) -> bool:
        """Return whether few calls compute a block; those under conditions count, too."""
        calls = len(list(self.block.tiles(block, self.at.output_variables)))
        for v in self.at.extents:
            if v not in self.at.output_variables:
                live = block.live[v].constant
                if live is None:
                    return False
                calls *= ceil(live / self.at.tile[v])
        return calls <= SHORT_BLOCK

    @staticmethod
    def _count(level: Level, position: Position) -> Index:
        """Return the full iterations of a level."""
        return position.live[level.variable] // level.step

    @staticmethod
    def _iteration(level: Level, position: Position, number: Index) -> Position:
        """Return the position of one full iteration of a level."""
        v, step = level.variable, level.step
        return position.moved(v, position.origin[v] + number * step, const(step))

    def _last(self, depth: int, position: Position) -> Position:
        """Return where the last block stands inside some levels."""
        for level in self.levels[depth : self.accumulate_at]:
            position = self._iteration(level, position, self._count(level, position) - 1)
        return position

    def _later_pass(self, depth: int, position: Position) -> list[Node]:
        """Return full iterations of the innermost loops over results, which hand these on."""
        first = position
        for level in self.levels[depth : self.accumulate_at]:
            first = self._iteration(level, first, const(0))
        tiles = self.block.tiles(first, self.at.output_variables)
        places = {tile: self.block.position_of(first, tile) for tile in tiles}
        later = Later(self.results, places, "left")
        nodes = self._in_turn(depth, position, None, later)
        nodes += [n for unit in self._finished(later, self._last(depth, position)) for n in unit]
        return [Scope(later.registers, tuple(nodes))]

    def _in_turn(
        self, depth: int, position: Position, before: Position | None, later: Later
    ) -> list[Node]:
        """Return full iterations of a level whose blocks each finish the results of the one before.

        The block before the first one stands at ``before``; None if there is none.
        """
        level = self.levels[depth]

        def inside(where: Position, before: Position | None) -> list[Node]:
            packed = self.at.copied_inside(depth + 1, where)
            if depth + 1 < self.accumulate_at:
                return [*packed, *self._in_turn(depth + 1, where, before, later)]
            units = [] if before is None else self._finished(later, before)
            return [*packed, *self._accumulate(depth + 1, where, (), later, units)]

        nodes = inside(self._iteration(level, position, const(0)), before)
        counter = self.context.unique(f"{level.variable}_{len(position.ranges)}")
        again = self._count(level, position) - 1

        def at(number: Index) -> Position:
            return self._iteration(level, position, number).counting(counter, again)

        done = self._last(depth + 1, at(var(counter)))
        loop = Loop(counter, again, tuple(inside(at(var(counter) + 1), done)))
        return [*nodes, *hoisted(loop)]

    def _finished(self, later: Later, where: Position) -> list[tuple[Node, ...]]:
        """Return what finishes the results of a block, for each tile that it has."""
        tiles = self.block.tiles(where, self.at.output_variables)
        return [later.finish(self.block.position_of(where, tile), tile) for tile in tiles]

    def _parts(
        self, depth: int, position: Position, results: dict[Tile, Register], wanted: int
    ) -> list[list[Node]]:
        """Return what is inside the accumulators in several parts, one after the other."""
        level = self.levels[depth]
        v, live = level.variable, position.live[level.variable].constant
        full = 1 if live is None else max(1, live // level.step)
        number = max(1, min(wanted, full))
        # Steps stand alone where that is not much code: what finishes results goes between them.
        calls = full * len(results) * max(1, level.step // self.at.tile[v])
        alone = depth + 1 == len(self.levels) and calls <= CALLS_IN_PARTS
        steps = full if alone else number
        parts: list[list[Node]] = [[] for _ in range(number)]
        for n in range(steps):
            first, last = n * full // steps, (n + 1) * full // steps
            inner = position
            if steps > 1:
                assert live is not None
                end = live if n == steps - 1 else last * level.step
                origin = position.origin[v] + first * level.step
                inner = position.moved(v, origin, const(end - first * level.step))
            parts[n * number // steps] += self._inner(depth, inner, results)
        return parts

    # --- accumulators ---------------------------------------------------------------------------
    def _accumulate(
        self,
        depth: int,
        position: Position,
        first: tuple[Index, ...] | None,
        later: Later | None = None,
        units: Sequence[tuple[Node, ...]] = (),
    ) -> list[Node]:
        """Return the code that makes, fills and stores the results of one register block.

        Where blocks hand results on to ``later`` ones, ``units`` finish those of the one before.
        """
        early = early_results(self.at, position, self.results.places)
        if self.at.result_in_memory or self.statement.reduction == "=":
            return [*early, *self._inner(depth, position, {})]
        emitter = Emitter(self.context, [*early], places=self.at.schedule.places(None))
        results: dict[Tile, Register] = {}
        for tile in self.block.tiles(position, self.at.output_variables):
            here = self.block.position_of(position, tile)
            if not results:
                self.results.check_stored(here)
            register = emitter.register(self.results.fragment(here), "acc")
            results[tile] = register
            self.results.start(emitter, here, register, first)
        if later is None:
            emitter.nodes += self._inner(depth, position, results)
        else:
            parts = self._parts(depth, position, results, len(units))
            emitter.nodes += between(parts, units)
        for tile, register in self._line_by_line(results):
            here = self.block.position_of(position, tile)
            if later is None:
                self.results.finish(emitter, here, register)
            else:
                later.leave(emitter, here, tile, register)
        return list(emitter.scope())

    def _line_by_line(self, results: Mapping[Tile, Register]) -> list[tuple[Tile, Register]]:
        """Return the results of a block in the order in which they go to memory.

        Where a register's elements go to several rows, and the next one's beside them, those of the
        same rows follow each other: there may be more rows than a cache keeps lines of.
        """
        found = list(results.items())
        offset = self.results.finished.first.offset
        names = [v for v, _ in found[0][0]] if found else []
        if not offset.is_linear_in(names):
            return found
        steps = {v: abs(numeric(offset.coefficient(v), ASSUMED_EXTENT)) for v in names}
        by_step = sorted((v for v in names if steps[v]), key=lambda v: -steps[v])
        if not by_step or self.at.tile[by_step[-1]] > 1:
            return found
        return sorted(found, key=lambda item: [dict(item[0])[v] for v in by_step])
