"""The schedules around a few starting points, as a small number of categorical choices.

A choice is a name and its options; a point of the space is an option's number for each choice.  The
first option of every choice is what the rules chose, so that the all-zero point is the first
schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.mapping.fragments.produce import Producers
from isamap.schedule.early import EARLY, RULE, early_of
from isamap.schedule.first import blocks_for, first_early, order_levels
from isamap.schedule.flows import Flow
from isamap.schedule.inside import copied_inside
from isamap.schedule.lines import lengthened
from isamap.schedule.overlap import cut_tails, overlapped, overlapping
from isamap.schedule.rounds import rounds_of
from isamap.schedule.schedule import Early, Level, Schedule, StatementSchedule, Treatment
from isamap.schedule.shape import Shape, block_of, read_shape
from isamap.schedule.threads import share
from isamap.schedule.tilings import Tiling, levels_of, tilings
from isamap.schedule.treatment import KINDS, Treatments, inputs

BLOCKS = 24
"""Register blocks of a mapping that may be chosen, the best score first."""

ORDERS = ("panel", "natural", "reversed")
"""Orders of the loops over the target's variables: by rule, as written, or the other way round.

In a tiling of the model it is only the order of neighbours that may be the other way round."""

TILING = "rule"
"""The tiling of the rules; others are the model's: :mod:`isamap.schedule.tilings`."""

STARTS = ("written", "rules")
"""Where a statement's loops come from, if somebody wrote its schedule."""

PLACES = ("inside", "before")
"""Whether operands are packed inside the loops that choose what of them is needed, or before."""

FUSED = ("fused", "apart")
"""Whether a statement is computed in another one's registers, where the first schedule does so."""

STORED = ("cached", "uncached")
"""Whether results are stored as any store does it, or past the caches."""

LOADED = ("past", "cached")
"""Whether accesses are loaded past the first cache, where the first schedule does so."""

FINISHED = ("later", "at once")
"""Whether results are finished while the next ones are computed, where the first schedule does it.
"""

ROUNDS = ("together", "apart", "longest")
"""Whether statements have one outermost loop, where they do so in the first schedule: with rounds
no longer than there, or as long as the longest block of theirs.
"""

CALLS = "calls"
"""Whether calls are ordered as somebody wrote, or as the rules choose."""

BUFFERS = ("rule", "1", "2", "3", "4")
"""In how many places in a scratchpad what an operand or a result needs lies in turn: as in the
first schedule, or so many for each.
"""

SUGGESTED = 4
"""Register blocks with which each tiling of the model is looked at first."""

TAILS = ("rule", "cut", "overlap")
"""Whether iterations that do not fill a tile begin earlier, so that they do: as in the first
schedule, or not, or wherever that can be.
"""

UNROLL = (1, 2, 4, 8)
"""Tiles of the innermost reduction that are unrolled."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A name and the options that it may take, as text."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Space:
    """Schedules of a kernel; see :func:`space`."""

    choices: tuple[Choice, ...]
    _makers: tuple["_Maker", ...] = field(repr=False)
    _kernel: Kernel = field(repr=False)
    _fused: Mapping[int, int] = field(repr=False, default_factory=dict)
    _rounds: Mapping[int, tuple[tuple[int, ...], int]] = field(repr=False, default_factory=dict)
    _written: Schedule | None = field(repr=False, default=None)
    _past: Mapping[int, bool | None] = field(repr=False, default_factory=dict)
    _later: Sequence[int] = field(repr=False, default=())
    _loads: Mapping[int, StatementSchedule] = field(repr=False, default_factory=dict)
    _by: Mapping[int, str | None] = field(repr=False, default_factory=dict)

    @property
    def first(self) -> dict[str, int]:
        """The assignment of the first schedule."""
        return {choice.name: 0 for choice in self.choices}

    @property
    def suggested(self) -> tuple[dict[str, int], ...]:
        """Assignments that the analytical model likes, in the order in which to try them.

        They have its tilings of one statement or of all, with several register blocks.
        """
        alone = [maker.suggested() for maker in self._makers]
        together = [
            {name: number for own in row for name, number in (own or {}).items()}
            for row in zip_longest(*alone)
            if len(alone) > 1
        ]
        return tuple(self.first | own for own in (*together, *(o for each in alone for o in each)))

    def build(self, assignment: Mapping[str, int]) -> Schedule:
        """Return the schedule of an assignment; ScheduleError if its choices contradict."""
        if self._written is not None and not any(assignment.values()):
            return self._written
        fused = {n for n in self._fused if FUSED[assignment.get(_fused(n), 0)] == "fused"}
        # A statement without loops of its own is the same whatever was chosen for these.
        built = [
            maker.build({} if number in fused else assignment)
            for number, maker in enumerate(self._makers)
        ]
        for number in fused:
            root, by = self._fused[number], self._by.get(number)
            built[number] = replace(built[number], within=root, by=by)
        for number, past in self._past.items():
            if assignment.get(_results(number), 0):
                past = not past
            built[number] = replace(built[number], bypass=past)
        for number, own in self._loads.items():
            same = built[number].mapping == own.mapping
            if same and LOADED[assignment.get(_loads(number), 0)] == "past":
                built[number] = replace(built[number], past=own.past)
        taken = {own.within for own in built}
        for number in self._later:
            later = FINISHED[assignment.get(_finished(number), 0)] == "later"
            built[number] = replace(built[number], later=later and number in taken)
        result = Schedule(tuple(built))
        if self._written is not None and STARTS[assignment.get(CALLS, 0)] == "written":
            result = replace(self._written, statements=result.statements)
        for first, (companions, step) in self._rounds.items():
            how = ROUNDS[assignment.get(_rounds(first), 0)]
            if how == "apart":
                continue
            length = step if how == "together" else None
            joined = rounds_of(self._kernel, result, (first, *companions), length)
            if joined is None:
                raise _no("the blocks of the statements have no round in common")
            result = joined
        return result


def space(
    accelerator: Accelerator,
    kernel: Kernel,
    starts: Sequence[Sequence[StatementSchedule]],
    producers: Producers,
    threads: int = 1,
    like: Schedule | None = None,
    written: bool = False,
) -> Space:
    """Return the space around some schedules of each statement, the best of each first.

    ``kernel`` has its extents bound.  ``like`` is the first schedule: what it computes in registers
    or in rounds of another statement may be computed apart.  If it is ``written``, the first start
    of each statement is what somebody wrote, which the rules would not come to.
    """
    fused = {} if like is None else like.fused
    rounds = {}
    if like is not None:
        steps = {first: like.statements[first].levels[0].step for first in like.rounds}
        rounds = {first: (own, steps[first]) for first, own in like.rounds.items()}
    makers = tuple(
        _Maker(
            f"{number}.",
            accelerator,
            statement_kernel(kernel, number),
            tuple(own),
            producers,
            threads,
            written,
        )
        for number, own in enumerate(starts)
    )
    choices = [choice for maker in makers for choice in maker.choices()]
    choices += [Choice(_fused(number), FUSED) for number in fused]
    choices += [Choice(_rounds(number), ROUNDS) for number in rounds]
    past = {}
    if like is not None and accelerator.past_stores:
        past = {n: own.bypass for n, own in enumerate(like.statements) if own.within is None}
    choices += [Choice(_results(n), STORED[::-1] if own else STORED) for n, own in past.items()]
    later = [] if like is None else [n for n, own in enumerate(like.statements) if own.later]
    choices += [Choice(_finished(n), FINISHED) for n in later]
    loads = {} if like is None else {n: own for n, own in enumerate(like.statements) if own.past}
    choices += [Choice(_loads(n), LOADED) for n in loads]
    first = like if written else None
    if first is not None and (first.abreast, first.once) != (None, None):
        choices.append(Choice(CALLS, STARTS))
    by = {} if like is None else {n: like.statements[n].by for n in fused}
    return Space(tuple(choices), makers, kernel, fused, rounds, first, past, later, loads, by)


def _fused(number: int) -> str:
    return f"{number}.fused"


def _results(number: int) -> str:
    return f"{number}.results"


def _loads(number: int) -> str:
    return f"{number}.loads"


def _finished(number: int) -> str:
    return f"{number}.finished"


def _rounds(number: int) -> str:
    return f"{number}.rounds"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What schedules of one mapping are made from; ``blocks`` has the best first.

    If its loops are ``given``, the first start has others than the rules make, for that block.
    """

    shape: Shape
    treatments: Treatments
    blocks: list[dict[str, int]]
    far: tuple[Flow, ...]
    given: bool


@dataclass(slots=True)
class _Maker:
    """Builds the schedules of one statement; ``kernel`` is of this statement only.

    If it is ``written``, the first start is: its loops are taken as they are, unless a choice says
    otherwise.
    """

    prefix: str
    accelerator: Accelerator
    kernel: Kernel
    starts: tuple[StatementSchedule, ...]
    producers: Producers
    threads: int
    written: bool = False
    _choices: dict[str, Choice] = field(default_factory=dict)
    _known: dict[int, _Facts] = field(default_factory=dict)
    _tilings: dict[int, tuple[Tiling, ...]] = field(default_factory=dict)
    _brought: dict[int, bool] = field(default_factory=dict)

    def choices(self) -> tuple[Choice, ...]:
        """Return the choices; options that the first start cannot take are left out."""
        if not self._is_brought(0):
            return ()  # it computes in another statement's registers, or not at all
        facts = self._facts(0)
        shape, treatments, blocks = facts.shape, facts.treatments, facts.blocks
        mappings = tuple(start.mapping.matching.needle.name for start in self.starts)
        found = [
            Choice(f"{self.prefix}start", STARTS if self.written else STARTS[1:]),
            Choice(f"{self.prefix}mapping", mappings),
            Choice(f"{self.prefix}block", tuple(map(str, range(len(blocks))))),
            Choice(f"{self.prefix}order", ORDERS if len(shape.outputs) > 1 else ORDERS[:1]),
            Choice(f"{self.prefix}tiling", self._tiled()),
            Choice(f"{self.prefix}unroll", self._numbers("unroll", UNROLL)),
        ]
        if len(shape.outputs) + len(shape.reductions) > 1:
            found.append(Choice(f"{self.prefix}place", PLACES))
        for n, (operand, _) in enumerate(inputs(self.starts[0].mapping)):
            kinds = tuple(k for k in KINDS if treatments.cost(operand, k) is not None)
            found.append(Choice(f"{self.prefix}operand{n}", ("rule", *kinds)))
        found += self._finer()
        return tuple(choice for choice in found if len(choice.options) > 1)

    def _finer(self) -> list[Choice]:
        """Return the choices that concern how a block's instructions follow each other."""
        first = self._build(0, {})
        count = len(inputs(self.starts[0].mapping))
        found = []
        if count > 1 and len(first.levels) > 0 and self.kernel.permissions.reassociate:
            found.append(Choice(f"{self.prefix}stream", (RULE, *map(str, range(count)))))
        if self.accelerator.prefetched is not None:
            made: dict[tuple[Early, ...], str] = {first.early: RULE}
            for option in EARLY[1:]:
                made.setdefault(early_of(option, first.mapping, first.levels), option)
            found.append(Choice(f"{self.prefix}prefetch", tuple(made.values())))
        other = overlapping(replace(first, levels=cut_tails(first.levels)))
        if other is not None:
            found.append(
                Choice(f"{self.prefix}tails", (RULE, TAILS[1 if overlapped(first) else 2]))
            )
        if self.accelerator.queues is not None and first.levels:
            found.append(Choice(f"{self.prefix}buffers", BUFFERS))
        return found

    def _numbers(self, name: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """Return the numbers that make a schedule on top of the first one."""
        kept = []
        for number in numbers:
            try:
                self._build(0, {name: number})
            except ScheduleError:
                continue
            kept.append(str(number))
        return tuple(kept)

    def _tiled(self) -> tuple[str, ...]:
        return (TILING, *(f"model {n + 1}" for n in range(len(self._models(0)))))

    def _models(self, start: int) -> tuple[Tiling, ...]:
        """Return the model's tilings for a mapping, made for its first register block."""
        if start not in self._tilings:
            shape, blocks = self._facts(start).shape, self._facts(start).blocks
            pairs = zip(inputs(shape.mapping), self.starts[start].operands, strict=True)
            packed = {access.buffer for (_, access), kind in pairs if kind == "packed"}
            self._tilings[start] = tilings(shape, self.kernel, self.accelerator, blocks[0], packed)
        return self._tilings[start]

    def suggested(self) -> list[dict[str, int]]:
        """Return the choices of good tilings: of all blocks worth it, the best tiling first."""
        if not self._is_brought(0):
            return []
        blocks = min(SUGGESTED, len(self._facts(0).blocks))
        found = []
        for number in range(len(self._models(0))):
            for block in range(blocks):
                own = {f"{self.prefix}tiling": number + 1}
                own |= {f"{self.prefix}block": block} if block else {}
                own |= {f"{self.prefix}start": STARTS.index("rules")} if self.written else {}
                found.append(own)
        return found

    def _facts(self, start: int) -> _Facts:
        if start not in self._known:
            mapping = self.starts[start].mapping
            treatments = self._treatments(start)
            shape, chosen = read_shape(mapping), self.starts[start].operands
            come, ranked = blocks_for(shape, chosen, self.accelerator, treatments)
            blocks = ranked[:BLOCKS]
            own = cut_tails(self.starts[start].levels)
            given = own != order_levels(shape, blocks[0], self.accelerator, self.threads, come.far)
            if given and not (self.written and start == 0):
                first = block_of(shape, own)
                blocks = [first, *(block for block in blocks if block != first)]
            self._known[start] = _Facts(shape, treatments, blocks, come.far, given)
        return self._known[start]

    def _is_brought(self, start: int) -> bool:
        """Return whether something brings all that the instruction of a start takes."""
        if start not in self._brought:
            own = self.starts[start]
            treatments = self._treatments(start)
            self._brought[start] = all(
                treatments.cost(operand, kind) is not None
                for (operand, _), kind in zip(inputs(own.mapping), own.operands, strict=True)
            )
        return self._brought[start]

    def _treatments(self, start: int) -> Treatments:
        buffers = {buffer.name: buffer for buffer in self.kernel.buffers}
        mapping = self.starts[start].mapping
        return Treatments(mapping, self.producers, buffers, self.kernel.permissions)

    def build(self, assignment: Mapping[str, int]) -> StatementSchedule:
        """Return the schedule of an assignment."""
        if not self._is_brought(0):
            return self.starts[0]
        if not self._choices:
            self._choices = {c.name.removeprefix(self.prefix): c for c in self.choices()}
        numbers: dict[str, int] = {}
        words: dict[int, str] = {}
        for name, choice in self._choices.items():
            picked = assignment.get(choice.name, 0)
            if name.startswith("operand"):
                words[int(name.removeprefix("operand"))] = choice.options[picked]
            elif name == "order":
                numbers[name] = ORDERS.index(choice.options[picked])
            elif name == "place":
                numbers[name] = PLACES.index(choice.options[picked])
            elif name in ("start", "mapping", "block", "tiling", "stream"):
                numbers[name] = picked
            elif name == "buffers":
                numbers[name] = BUFFERS.index(choice.options[picked])
            elif name == "tails":
                numbers[name] = TAILS.index(choice.options[picked])
            elif name == "prefetch":
                numbers[name] = EARLY.index(choice.options[picked])
            else:
                numbers[name] = int(choice.options[picked])
        as_written = self.written and numbers.pop("start", 0) == 0
        return self._build(numbers.pop("mapping", 0), numbers, words, as_written)

    def _build(
        self,
        start: int,
        numbers: Mapping[str, int],
        words: Mapping[int, str] | None = None,
        as_written: bool = False,
    ) -> StatementSchedule:
        if not self._is_brought(start):
            raise _no("nothing brings what the mapping takes")
        facts = self._facts(start)
        shape, treatments, blocks = facts.shape, facts.treatments, facts.blocks
        if numbers.get("block", 0) >= len(blocks):
            raise _no("the mapping has fewer blocks")
        block = dict(blocks[numbers.get("block", 0)])
        self._unroll(shape, block, numbers.get("unroll", 1))
        order, tiling = ORDERS[numbers.get("order", 0)], numbers.get("tiling", 0)
        if as_written:
            if start or any(numbers.get(name, 0) for name in ("block", "tiling")):
                raise _no("its block and its tiling are those that are written")
            if numbers.get("unroll", 1) != 1:
                raise _no("its block is the one that is written")
            levels = self._reorder(shape, list(self.starts[0].levels), order)
        elif facts.given and not any(numbers.get(name, 0) for name in ("block", "tiling")):
            if order != ORDERS[0]:
                raise _no("its loops are those of the first schedule")
            given = self.starts[start].levels
            longer = lengthened(shape, given, numbers.get("unroll", 1))
            if longer is None and numbers.get("unroll", 1) != 1:
                raise _no("its reduction has too few iterations to unroll")
            levels = list(given if longer is None else longer)
        elif tiling:
            if tiling > len(self._models(start)):
                raise _no("the model has fewer tilings for the mapping")
            chosen, reverse = self._models(start)[tiling - 1], order == "reversed"
            levels = levels_of(shape, chosen, block, self.threads, reverse)
        else:
            far = facts.far
            levels = list(order_levels(shape, block, self.accelerator, self.threads, far))
            levels = self._reorder(shape, levels, order)
        kinds = list(self.starts[start].operands)
        operands = [operand for operand, _ in inputs(self.starts[start].mapping)]
        for n, kind in enumerate(kinds):
            wanted = next((k for k in KINDS if k == (words or {}).get(n)), kind)
            if treatments.cost(operands[n], wanted) is None:
                raise _no(f"operand '{operands[n]}' cannot be {wanted}")
            kinds[n] = wanted
        inside: tuple[int, ...] = ()
        pitches = treatments.pitches(self.starts[start].mapping, kinds)
        if as_written and tuple(kinds) == self.starts[0].operands:
            pitches = self.starts[0].pitches
        if as_written and (tuple(levels), tuple(kinds)) == self._loops_written():
            inside = self.starts[0].inside
        elif numbers.get("place", 0) == 0:
            inside = copied_inside(shape, levels, kinds, treatments)
        mapping = self.starts[start].mapping
        stream = numbers.get("stream", 0) - 1
        if stream >= len(kinds):
            raise _no("the mapping reads fewer operands")
        option = EARLY[numbers.get("prefetch", 0)]
        if option != RULE:
            early = early_of(option, mapping, levels)
        elif as_written:
            early = self.starts[start].early
        else:
            early = first_early(shape, block, levels, kinds, facts.far, self.accelerator)
        made = StatementSchedule(
            mapping,
            tuple(levels),
            tuple(kinds),
            stream if stream >= 0 else self.starts[start].stream,
            inside=inside,
            early=early,
            pitches=pitches,
            buffers=self._buffers(start, numbers.get("buffers", 0)),
        )
        return self._with_tails(made, start, TAILS[numbers.get("tails", 0)], as_written)

    def _with_tails(
        self, made: StatementSchedule, start: int, tails: str, as_written: bool
    ) -> StatementSchedule:
        """Return a schedule whose tails are cut or begin earlier."""
        if tails == "cut":
            return replace(made, levels=cut_tails(made.levels))
        if tails == "overlap" or (overlapped(self.starts[start]) and not as_written):
            return overlapping(made) or made
        return made

    def _buffers(self, start: int, option: int) -> tuple[int, ...]:
        own = self.starts[start]
        return (option,) * (len(own.operands) + 1) if option else own.buffers

    def _loops_written(self) -> tuple[tuple[Level, ...], tuple[Treatment, ...]]:
        return self.starts[0].levels, self.starts[0].operands

    def _unroll(self, shape: Shape, block: dict[str, int], factor: int) -> None:
        if factor == 1:
            return
        if not shape.reductions:
            raise _no("there is no reduction to unroll")
        innermost = max(shape.reductions, key=lambda v: shape.extents[v])
        tiles = shape.extents[innermost] // shape.tile[innermost]
        if block[innermost] * factor > tiles:
            raise _no(f"'{innermost}' has too few iterations to unroll")
        block[innermost] *= factor

    def _reorder(self, shape: Shape, levels: list[Level], order: str) -> list[Level]:
        outputs = [level for level in levels if level.variable in shape.outputs]
        if order == "panel":
            return levels
        position = {v: n for n, v in enumerate(shape.outputs)}
        wanted = sorted(outputs, key=lambda level: position[level.variable])
        if order == "reversed":
            wanted.reverse()
        rest = iter(share(shape, wanted, self.threads))
        return [next(rest) if level in outputs else level for level in levels]


def _no(message: str) -> ScheduleError:
    return ScheduleError(Diagnostic("E402", message))
