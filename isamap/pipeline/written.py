"""A schedule that somebody wrote, in place of the first one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from isamap.diagnostics import Diagnostic, NoMappingError, ScheduleError, Span, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, statement_names
from isamap.lower.alternative import Alternative, by_preference
from isamap.lower.alternatives import alternatives
from isamap.lower.choose import Choice
from isamap.lower.fuse import fuse
from isamap.lower.grouping import group_mappings
from isamap.lower.in_registers import Asked, asked_for, is_by
from isamap.lower.judge import Judge
from isamap.mapping.find import enumerate_preferred, enumerate_statement
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.groups import Group, covers, grouped
from isamap.mapping.matching import Enumeration
from isamap.mapping.matching import Mapping as LegalMapping
from isamap.mapping.needles.needles import needles
from isamap.pipeline.arrange import Arranged
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.schedule_text import ways_of
from isamap.pipeline.sequences import Sequences
from isamap.rewrite.apply import judge
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import NAMES
from isamap.schedule.buffers import first_buffers
from isamap.schedule.calls import resolve_calls
from isamap.schedule.printed import level_text
from isamap.schedule.reader import schedule_fault
from isamap.schedule.resolve import missing, resolve, wanted_mappings
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.treatment import Treatments
from isamap.schedule.written import Word, WrittenRewriting, WrittenSchedule, WrittenStatement


def arrange_written(
    kernel: Kernel,
    hardware: Accelerator,
    written: WrittenSchedule,
    options: Options,
    symbols: Mapping[str, int],
    tell: Tell,
) -> Arranged:
    """Return the arrangement that a text asks for; where it says nothing the rules choose.

    The kernel is rewritten, and statements are computed together, as the text says, and not at all
    where it says nothing of that.  ``choice`` is None where a statement has no mapping.
    ScheduleError where the text does not fit kernel or machine, placed in the text.
    """
    _check_names(kernel, hardware, written)
    rewritings = _rewritten(kernel, hardware, written, options)
    before = rewritings[-1].kernel if rewritings else kernel
    index = needles(hardware)
    groups = _groups(before, hardware, written)
    mapped = grouped(before, tuple(groups))
    starts = {group.first: found for group, found in groups.items()}
    own = covers(before, tuple(groups))
    enumerations = tuple(
        starts[numbers[0]]
        if numbers[0] in starts
        else enumerate_statement(before, numbers[0], index)
        if options.instruction is None
        else enumerate_preferred(before, numbers[0], index, options.instruction)
        for numbers in own
    )
    names = statement_names(before)
    stands_for = tuple(tuple(names[n] for n in numbers) for numbers in own)
    arranged = Arranged(mapped, enumerations, None, stands_for, rewritings)
    if not all(found.mappings for found in enumerations):
        return arranged
    asked = asked_for(enumerations, options.instruction)
    writer = Writer(
        mapped, hardware, enumerations, options.threads, symbols, asked, options.tune is not None
    )
    choice, said = writer.choice(written, tell)
    return replace(arranged, choice=choice, said=said)


# --- what becomes of the kernel ------------------------------------------------------------------
def _check_names(kernel: Kernel, hardware: Accelerator, written: WrittenSchedule) -> None:
    if written.kernel.text != kernel.name:
        text = f"this schedule is of kernel '{written.kernel.text}', not of '{kernel.name}'"
        raise schedule_fault("E416", text, written.kernel.span)
    if written.machine is not None and written.machine.text != hardware.name:
        text = f"this schedule is for '{written.machine.text}', not for '{hardware.name}'"
        hint = "without 'on' it is tried on every machine"
        raise schedule_fault("E416", text, written.machine.span, hint)


def _number(word: Word, kernel: Kernel) -> int:
    names = statement_names(kernel)
    if word.text not in names:
        text = f"there is no statement '{word.text}'"
        raise missing("E412", text, word, names)
    return names.index(word.text)


def _rewritten(
    kernel: Kernel, hardware: Accelerator, written: WrittenSchedule, options: Options
) -> tuple[Rewriting, ...]:
    """Apply the rules that a text names, one after the other; each is proved."""
    found: list[Rewriting] = []
    current = normal(kernel)
    for one in written.rewritings:
        rule, name = one.rule.text, one.statement.text
        if rule not in NAMES:
            raise missing("E412", f"there is no rule '{rule}'", one.rule, NAMES)
        if options.rewrite is not None and rule not in options.rewrite:
            text = f"the schedule rewrites by {rule}, which the options do not allow"
            raise schedule_fault("E417", text, one.rule.span)
        ways = ways_of(current, hardware, rule, _number(one.statement, current))
        found.append(_way(one, ways, f"{rule} makes nothing of statement {name}"))
        current = found[-1].kernel
    refused = judge(found).refused
    if refused:
        at = found.index(refused[0].rewriting)
        text = f"not rewritten by {refused[0].text}"
        raise schedule_fault("E417", text, written.rewritings[at].rule.span)
    return tuple(found)


def _way(one: WrittenRewriting, ways: Sequence[Rewriting], nothing: str) -> Rewriting:
    if not ways:
        raise schedule_fault("E417", nothing, one.rule.span)
    if one.way is not None and one.way.number > len(ways):
        text = f"{one.rule.text} has {len(ways)} ways with statement {one.statement.text}"
        raise schedule_fault("E417", text, one.way.span)
    return ways[one.way.number - 1 if one.way else 0]


def _groups(
    kernel: Kernel, hardware: Accelerator, written: WrittenSchedule
) -> dict[Group, Enumeration]:
    """Return the statements that are computed together, and the mappings to do so."""
    chosen: dict[Group, Enumeration] = {}
    possible = group_mappings(kernel, needles(hardware)) if written.together else ()
    names = statement_names(kernel)
    for words in written.together:
        numbers = sorted(_number(word, kernel) for word in words)
        fits = {g: e for g, e in possible if [*range(g.first, g.first + g.count)] == numbers}
        if not fits:
            listed = [", ".join(names[g.first : g.first + g.count]) for g, _ in possible]
            text = "no instruction computes these statements together"
            hint = f"there is: {'; '.join(listed)}" if listed else None
            raise schedule_fault("E413", text, words[0].span, hint)
        chosen.update(fits)
    return dict(sorted(chosen.items(), key=lambda item: item[0].first))


# --- the statements ------------------------------------------------------------------------------
class Writer:
    """Makes schedules of a kernel that is rewritten and grouped."""

    def __init__(
        self,
        kernel: Kernel,
        hardware: Accelerator,
        enumerations: Sequence[Enumeration],
        threads: int,
        symbols: Mapping[str, int],
        asked: Asked | None = None,
        others: bool = False,
    ) -> None:
        """``asked`` are the instructions that options ask for; a text may ask for others.

        Mappings that a text does not ask for are only scheduled if ``others`` are wanted, too: as
        the starts of a search.
        """
        self._kernel = kernel
        self._hardware = hardware
        self._enumerations = enumerations
        self._judge = Judge(hardware, producers_of(hardware), symbols, threads, asked or {})
        self._namer = Sequences(kernel, hardware).name
        self._names = statement_names(kernel)
        self._others = others
        self._tried: dict[tuple[int, ...], tuple[Alternative, ...]] = {}

    def choice(self, written: WrittenSchedule, tell: Tell) -> tuple[Choice, tuple[str, ...]]:
        """Return the choice, and for each statement where its mapping is written, or ''."""
        blocks: dict[int, WrittenStatement] = {}
        faults: list[Diagnostic] = []
        abreast, once = resolve_calls(written.calls, self._hardware, faults)
        ordered = Schedule((), abreast, once)
        for block in written.statements:
            try:
                blocks[_number(block.name, self._kernel)] = block
            except ScheduleError as error:
                faults += error.diagnostics
        chosen: list[StatementSchedule] = []
        considered: list[tuple[Alternative, ...]] = []
        for number in range(len(self._kernel.statements)):
            tell(f"scheduling statement {number + 1} of {len(self._kernel.statements)}")
            try:
                own, tried = self._statement(number, blocks.get(number), ordered)
            except ScheduleError as error:
                faults += error.diagnostics
                continue
            chosen.append(own)
            considered.append(tried)
        if faults:
            raise ScheduleError(_in_order(faults))
        settled = frozenset(n for n, block in blocks.items() if block.settled)
        schedule = replace(ordered, statements=tuple(chosen))
        named = {n: block.instruction.name.text for n, block in blocks.items() if block.instruction}
        judge = replace(self._judge, asked={**self._judge.asked, **named})
        try:
            whole = fuse(self._kernel, judge, schedule, settled)
        except ScheduleError as error:
            hint = self._rounds(chosen)
            raise _placed(error, self._joint(blocks, written), hint) from None
        if (over := self._judge.excess(whole.lowered)) is not None:
            raise self._too_large(over, whole.schedule, written)
        for number, own in enumerate(whole.schedule.statements):
            if own.later and not whole.schedule.followers(number):
                text = (
                    f"nothing is made in registers of {self._names[number]} that could come later"
                )
                raise schedule_fault("E418", text, blocks[number].span("results"))
        said = tuple(_said(blocks.get(n)) for n in range(len(chosen)))
        choice = Choice(
            whole.schedule,
            whole.lowered,
            whole.estimate,
            tuple(considered),
            written=True,
        )
        return choice, said

    def _too_large(self, over: str, schedule: Schedule, written: WrittenSchedule) -> ScheduleError:
        """Return the error that a schedule does not fit: because of the order of its calls, if it
        fits in another one."""
        span, hint = written.kernel.span, ""
        if written.calls:
            ruled = self._judge.lowered(self._kernel, replace(schedule, abreast=None, once=None))
            if self._judge.excess(ruled) is None:
                span = written.calls[0].span
                hint = "in the order that the rules choose all has room"
        return schedule_fault("E418", over, span, hint or None)

    def _joint(self, blocks: Mapping[int, WrittenStatement], written: WrittenSchedule) -> Span:
        """Return the place of the first statement that is said to be joined with another one."""
        for number in sorted(blocks):
            if blocks[number].within is not None or blocks[number].along is not None:
                return blocks[number].span("within", "along")
        return written.kernel.span

    def _rounds(self, chosen: Sequence[StatementSchedule]) -> str | None:
        """Return what to write where a statement shares the rounds of one whose loops are not its
        own, None where no statement is to share any."""
        for number, own in enumerate(chosen):
            along = own.along
            if along is None or not chosen[along].levels:
                continue
            outer = level_text(chosen[along].levels[0])
            return (
                f"the outermost loop of {self._names[along]} is {outer}: give "
                f"{self._names[number]} loops of which the first goes over the same positions in "
                "the same steps"
            )
        return None

    def _statement(
        self, number: int, block: WrittenStatement | None, ordered: Schedule
    ) -> tuple[StatementSchedule, tuple[Alternative, ...]]:
        """Return the schedule of a statement, and what else was considered.

        ``ordered`` says how calls are.  Where all has room in another order only, that is left to
        be told of all statements together.
        """
        every = self._enumerations[number].mappings
        if block is None:
            tried = self._alternatives(number, every)
            return self._best(number, tried, every, None), tried
        mappings = wanted_mappings(block, every, self._namer)
        some = self._others or len(mappings) > 1  # the rules choose among them as among all
        tried = self._alternatives(number, every if some else mappings)
        base = self._best(number, tried, mappings, block)
        alone = bind_extents(statement_kernel(self._kernel, number))
        buffers = {buffer.name: buffer for buffer in alone.buffers}
        permissions = self._kernel.permissions
        treatments = Treatments(base.mapping, self._judge.producers, buffers, permissions)
        own = resolve(block, base, treatments)
        own = replace(
            own,
            within=self._earlier(number, block.within),
            by=self._by(number, block),
            along=self._earlier(number, block.along),
        )
        if own.within is not None:
            return own, self._with(tried, base, alone)
        try:
            saved = all(a.saved for a in tried)
            for places in self._buffers(block, own):
                own = replace(own, buffers=places)
                asked = replace(ordered, statements=(replace(own, along=None),))
                lowered = self._judge.lowered(alone, asked, saved=saved)
                if self._judge.excess(lowered) is None:
                    break
            else:
                lowered = self._judge.lowered(alone, replace(own, along=None), saved=saved)
        except ScheduleError as error:
            raise _placed(error, block.span("loops", "operands", "instruction")) from None
        if (over := self._judge.excess(lowered)) is not None:
            raise schedule_fault("E418", over, block.span("loops", "instruction"))
        cycles = self._judge.estimate(lowered)
        kept = [a for a in tried if a.mapping != own.mapping]
        made = Alternative(own.mapping, replace(own, along=None), cycles, saved=saved)
        return own, (*kept, made)

    def _buffers(
        self, block: WrittenStatement, own: StatementSchedule
    ) -> Iterator[tuple[int, ...]]:
        """Yield the places in turn that are tried: those that are written, or the rules'."""
        if block.buffers is not None or block.loops is None:
            yield own.buffers
        else:
            yield from first_buffers(self._hardware, own)

    def _with(
        self, tried: tuple[Alternative, ...], own: StatementSchedule, alone: Kernel
    ) -> tuple[Alternative, ...]:
        """Return what was considered, a schedule included."""
        if any(a.schedule is not None and a.mapping == own.mapping for a in tried):
            return tried
        saved = all(a.saved for a in tried)
        lowered = self._judge.lowered(alone, own, saved=saved)
        cycles = self._judge.estimate(lowered)
        return (*tried, Alternative(own.mapping, own, cycles, saved=saved))

    def _alternatives(
        self, number: int, mappings: tuple[LegalMapping, ...]
    ) -> tuple[Alternative, ...]:
        """Return some mappings of a statement with their first schedules."""
        known = (number, *map(id, mappings))  # those of the enumerations, which stay as they are
        if known not in self._tried:
            only = replace(self._enumerations[number], mappings=mappings)
            self._tried[known] = alternatives(self._kernel, self._judge, number, only)
        return self._tried[known]

    def _best(
        self,
        number: int,
        tried: Sequence[Alternative],
        wanted: tuple[LegalMapping, ...],
        block: WrittenStatement | None,
    ) -> StatementSchedule:
        """Return the best first schedule that there is for one of some mappings."""
        found = [a for a in tried if a.mapping in wanted]
        ordered = by_preference(found)
        if not ordered:
            found = list(self._alternatives(number, wanted))
            ordered = by_preference(found)
        if ordered:
            return ordered[0]
        reason = next((a.reason for a in found if a.reason), "there is no code for it")
        text = f"{self._names[number]} cannot be computed like that: {reason}"
        if block is None:
            raise NoMappingError(fail("E301", text))
        raise schedule_fault("E418", text, block.span("instruction", "axes", "tile"))

    def _by(self, number: int, block: WrittenStatement) -> str | None:
        """Return what is to compute a statement in another one's registers."""
        if block.within is None:
            return None
        named = block.by
        if named is None and block.instruction is not None:
            named = block.instruction.name
        if named is None:
            return self._judge.asked.get(number)
        every = [entry.name for entry in self._hardware.entries]
        for part in named.text.split(" + "):
            if not is_by(every, part, self._hardware):
                text = f"'{self._hardware.name}' has no instruction '{part}'"
                raise missing("E413", text, named, every)
        return named.text

    def _earlier(self, number: int, word: Word | None) -> int | None:
        """Return the number of an earlier statement."""
        if word is None:
            return None
        found = _number(word, self._kernel)
        if found >= number:
            text = f"{word.text} does not come before {self._names[number]}"
            raise schedule_fault("E414", text, word.span)
        return found


def _said(block: WrittenStatement | None) -> str:
    """Return where a statement's mapping is written, or ''."""
    if block is None or not (block.instruction or block.axes or block.tile):
        return ""
    return f"as {block.span('instruction', 'axes', 'tile')} says"


def _placed(error: ScheduleError, span: Span, hint: str | None = None) -> ScheduleError:
    """Return what lowering refuses as an error of the text."""
    return ScheduleError(
        [
            replace(d, code="E418", span=d.span or span, hint=d.hint or hint)
            for d in error.diagnostics
        ]
    )


def _in_order(faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    return sorted(faults, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0))
