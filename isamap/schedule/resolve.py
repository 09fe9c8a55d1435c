"""What a written schedule says about a statement, looked up among the statement's mappings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import prod

from isamap.diagnostics import Diagnostic, ScheduleError, Span
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access, Statement
from isamap.ir.printer import print_expr
from isamap.mapping.find import on_axes
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.shared import accesses_of
from isamap.schedule.buffers import resolve_buffers
from isamap.schedule.early import resolve_early
from isamap.schedule.inside import copied_inside
from isamap.schedule.meant import means
from isamap.schedule.overlap import no_overlap
from isamap.schedule.past import resolve_past
from isamap.schedule.pitches import furthest
from isamap.schedule.printed import axes_text, bound_texts, tile_text
from isamap.schedule.reader import LATER, STORED, said_twice, schedule_fault, squeezed
from isamap.schedule.schedule import Level, StatementSchedule, Treatment
from isamap.schedule.shape import read_shape
from isamap.schedule.treatment import COPIED, KINDS, Treatments, inputs
from isamap.schedule.written import Word, WrittenLevel, WrittenOperand, WrittenStatement

MOST_CALLS = 4096
"""Instructions of one unrolled block: more of them are a loop that was forgotten."""

Namer = Callable[[Mapping], str]

_SHOWN = 6


def wanted_mappings(
    written: WrittenStatement, mappings: Sequence[Mapping], namer: Namer
) -> tuple[Mapping, ...]:
    """Return the mappings of a statement that are as it is written, in their order.

    ``namer`` names the instructions in sequence that compute a mapping's tile.

    ScheduleError, placed at the clause that leaves none, with what there is instead.
    """
    name, found = written.name.text, list(mappings)
    own = written.instruction
    if own is not None:
        kept = [m for m in found if m.matching.needle.name == own.name.text]
        # The report names all instructions that are needed.
        kept = kept or [m for m in found if namer(m) == own.name.text]
        if not kept:
            there = [m.matching.needle.name for m in found]
            text = f"no legal mapping of {name} is computed by '{own.name.text}'"
            raise missing("E413", text, own.name, there)
        found = kept
    if written.axes is not None:
        found = _narrowed(
            found,
            lambda m: _axes(written) in (_placed(m), _as_reported(m)),
            axes_text,
            f"no mapping of {name}{_so_far(written)} has these axes",
            written.span("axes"),
        )
    if written.tile is not None:
        found = _with_tile(written, found)
    if own is not None and own.bound is not None:
        bound = {operand.text: expr.text for operand, expr in own.bound}
        found = _narrowed(
            found,
            lambda m: _bound(m) == bound,
            lambda m: ", ".join(f"{o} = {e}" for o, e in bound_texts(m)),
            f"the operands of {own.name.text} do not stand for that",
            written.span("instruction"),
        )
    if own is not None and own.way is not None:
        if own.way.number > len(found):
            text = f"there are {len(found)} mappings like that: there is no way {own.way.text}"
            raise schedule_fault("E413", text, own.way.span)
        found = [found[own.way.number - 1]]
    return tuple(found)


def resolve(
    written: WrittenStatement, base: StatementSchedule, treatments: Treatments
) -> StatementSchedule:
    """Return a statement's schedule: what is written, and for the rest what ``base`` has.

    ``within`` and ``along`` name other statements and are left to the caller.  ScheduleError with
    every fault, each at its place.
    """
    faults: list[Diagnostic] = []
    levels, operands, stream = base.levels, base.operands, base.stream
    if written.loops is not None:
        levels = _levels(written, base.mapping, faults)
    if written.operands is not None:
        operands = _operands(written, base, treatments, faults)
    inside = base.inside
    if written.loops is not None or written.operands is not None:
        inside = copied_inside(read_shape(base.mapping), levels, operands, treatments)
        inside = _inside(written, base.mapping, inside, levels, faults)
    pitches = base.pitches
    if written.operands is not None:
        pitches = _pitches(written, base, operands, treatments, faults)
    if written.stream is not None:
        stream = _stream(written.stream, base.mapping, faults)
    past = base.past
    if written.past is not None:
        machine = treatments.producers.accelerator
        past = resolve_past(written.past, base.mapping, machine, faults)
    elif written.loops is not None or written.operands is not None:
        past = ()  # the rule's was for other loops
    early = base.early
    if written.prefetch is not None:
        machine = treatments.producers.accelerator
        early = resolve_early(written, base.mapping, levels, machine, faults)
    elif written.loops is not None:
        early = ()  # the rule's was for other loops
    buffers = base.buffers
    if written.buffers is not None:
        machine = treatments.producers.accelerator
        buffers = resolve_buffers(written.buffers, base.mapping, machine, faults)
    bypass = base.bypass
    if written.results is not None:
        stored = _bypass(written.results, treatments.producers.accelerator, faults)
        bypass = bypass if stored is None else stored
    later = base.later
    if written.results is not None:
        later = LATER in (word.text for word in written.results)
    elif written.loops is not None:
        later = False
    if faults:
        raise ScheduleError(faults)
    return replace(
        base,
        levels=levels,
        operands=operands,
        stream=stream,
        past=past,
        inside=inside,
        early=early,
        bypass=bypass,
        pitches=pitches,
        buffers=buffers,
        later=later,
    )


# --- which mapping ------------------------------------------------------------------------------
def _axes(written: WrittenStatement) -> dict[str, tuple[str, ...]]:
    return {axis.text: tuple(f.text for f in forms) for axis, forms in written.axes or ()}


def _placed(mapping: Mapping) -> dict[str, tuple[str, ...]]:
    return {axis: tuple(map(squeezed, texts)) for axis, texts in on_axes(mapping).items()}


def _as_reported(mapping: Mapping) -> dict[str, tuple[str, ...]]:
    """Return the forms on the axes as the report shows them, factors included."""
    long = {name for name, extent in mapping.tile.items() if extent > 1}
    forms = {
        axis.name: tuple(
            squeezed(str(f)) for f in mapping.matching.on_axis(axis.name) if f.names & long
        )
        for axis in mapping.matching.needle.axes
    }
    return {axis: texts for axis, texts in forms.items() if texts}


def _bound(mapping: Mapping) -> dict[str, str]:
    return {squeezed(operand): squeezed(expr) for operand, expr in bound_texts(mapping)}


def _so_far(written: WrittenStatement) -> str:
    return f" to {written.instruction.name.text}" if written.instruction else ""


def _narrowed(
    found: Sequence[Mapping],
    fits: Callable[[Mapping], bool],
    show: Callable[[Mapping], str],
    message: str,
    span: Span,
) -> list[Mapping]:
    kept = [m for m in found if fits(m)]
    if not kept:
        raise schedule_fault("E413", message, span, _there_are(map(show, found)))
    return kept


def _with_tile(written: WrittenStatement, found: Sequence[Mapping]) -> list[Mapping]:
    """Return the mappings with the tile that is written; variables that it does not name have 1."""
    statement = found[0].matching.statement
    tile: dict[str, int] = {}
    said: dict[str, Word] = {}
    for variable, extent in written.tile or ():
        check_variable(variable, statement, written.name.text)
        if (first := said.setdefault(variable.text, variable)) is not variable:
            twice = said_twice(f"the tile of '{variable.text}' is said twice", variable, first)
            raise ScheduleError([twice])
        tile[variable.text] = extent.number
    wanted = {name: extent for name, extent in tile.items() if extent > 1}

    def far(mapping: Mapping) -> int:
        own = mapping.tile
        return sum(abs(own.get(v, 1) - wanted.get(v, 1)) for v in own.keys() | wanted.keys())

    def own_tile(mapping: Mapping) -> dict[str, int]:
        return {name: extent for name, extent in mapping.tile.items() if extent > 1}

    text = f"no mapping of {written.name.text}{_so_far(written)}"
    text += " with these axes" if written.axes is not None else ""
    return _narrowed(
        sorted(found, key=far) if not any(own_tile(m) == wanted for m in found) else found,
        lambda m: own_tile(m) == wanted,
        tile_text,
        f"{text} has this tile",
        written.span("tile"),
    )


# --- loops and operands -------------------------------------------------------------------------
def check_variable(word: Word, statement: Statement, name: str) -> None:
    """ScheduleError unless a word is a variable of a statement."""
    names = [v.name for v in statement.variables]
    if word.text not in names:
        text = f"{name} has no variable '{word.text}'"
        raise schedule_fault("E412", text, word.span, f"it has {', '.join(names) or 'none'}")


def _levels(
    written: WrittenStatement, mapping: Mapping, faults: list[Diagnostic]
) -> tuple[Level, ...]:
    statement = mapping.matching.statement
    results = statement.target.names
    found: list[Level] = []
    before: dict[str, int] = {}
    for level in written.loops or ():
        v, step = level.variable.text, level.step.number
        try:
            check_variable(level.variable, statement, written.name.text)
        except ScheduleError as error:
            faults += error.diagnostics
            continue
        tile, outer = mapping.tile.get(v, 1), before.get(v)
        if step % tile:
            near = sorted({max(1, step // tile) * tile, (step // tile + 1) * tile})
            text = f"the step {step} of '{v}' is no multiple of its tile, which is {tile}"
            faults.append(_fault(level.step, text, f"{' or '.join(map(str, near))} is"))
        elif outer is not None and (outer % step or outer <= step):
            text = f"the step {step} of '{v}' does not divide that of the loop around it, {outer}"
            faults.append(_fault(level.step, text, "steps of one variable decrease and divide"))
        elif level.parallel and v not in results:
            text = f"iterations of '{v}' add to the same results: they are not parallel"
            only = ", ".join(x.name for x in statement.variables if x.name in results)
            faults.append(_fault(level.variable, text, f"loops over {only or 'nothing'} can be"))
        elif level.overlap is not None:
            faults += _overlap(level, mapping, written.loops or ())
        before[v] = step
        found.append(Level(v, step, level.parallel, level.overlap is not None))
    if not faults:
        _check_block(written, mapping, before, faults)
    return tuple(found)


def _overlap(
    level: WrittenLevel, mapping: Mapping, levels: Sequence[WrittenLevel]
) -> Iterator[Diagnostic]:
    """Yield why the last iterations of a loop cannot begin earlier, as far as the loops tell."""
    assert level.overlap is not None
    v = level.variable.text
    why = no_overlap(mapping, v)
    if why is None and [other for other in levels if other.variable.text == v][-1] is not level:
        why = f"another loop over '{v}' is inside this one: say it there"
    if why is not None:
        hint = "the last iterations of results that do not fill a tile may begin earlier"
        yield _fault(level.overlap, f"'{v}' cannot overlap: {why}", hint)


def _check_block(
    written: WrittenStatement, mapping: Mapping, steps: dict[str, int], faults: list[Diagnostic]
) -> None:
    """Refuse a block that is unrolled into more code than any compiler takes."""
    calls: dict[str, int] = {}
    for variable in mapping.matching.statement.variables:
        v, extent = variable.name, variable.extent.constant
        if v not in steps and extent is None:
            text = f"the extent of '{v}' is known when the code runs only: it needs a loop"
            faults.append(Diagnostic("E414", text, written.span("loops")))
            return
        whole = -(-max(1, extent or 1) // mapping.tile.get(v, 1))
        inner = steps.get(v, whole * mapping.tile.get(v, 1)) // mapping.tile.get(v, 1)
        calls[v] = min(inner, whole) if extent is not None else inner
    if (number := prod(calls.values())) > MOST_CALLS:
        most = max(calls, key=lambda v: calls[v])
        text = f"what is inside all loops is {number} calls, all unrolled; {MOST_CALLS} are allowed"
        hint = f"give '{most}' a loop with a smaller step"
        faults.append(Diagnostic("E414", text, written.span("loops"), hint=hint))


def _operands(
    written: WrittenStatement,
    base: StatementSchedule,
    treatments: Treatments,
    faults: list[Diagnostic],
) -> tuple[Treatment, ...]:
    pairs = inputs(base.mapping)
    found = list(base.operands)
    said: dict[int, WrittenOperand] = {}
    for own in written.operands or ():
        meant = [n for n, pair in enumerate(pairs) if means(own, *pair)]
        if before := next((said[n] for n in meant if n in said), None):
            text = f"how '{own.what.text}' is treated is said twice"
            faults.append(said_twice(text, own.what, before.what))
            continue
        said |= dict.fromkeys(meant, own)
        if not meant:
            called = list(dict.fromkeys(access.buffer for _, access in pairs))
            told = f" as {own.operand.text}" if own.operand else ""
            text = f"{written.name.text} reads no '{own.what.text}'{told}"
            accesses = (print_expr(a) + f" as {o}" for o, a in pairs) if own.operand else called
            faults.append(missing("E412", text, own.what, accesses).diagnostics[0])
        how = next(kind for kind in KINDS if kind == own.treatment.text)
        for n in meant:
            found[n] = how
            if (fault := _unfit(own, *pairs[n], how, treatments)) is not None:
                faults.append(fault)
                break
    return tuple(found)


def _inside(
    written: WrittenStatement,
    mapping: Mapping,
    rule: tuple[int, ...],
    levels: Sequence[Level],
    faults: list[Diagnostic],
) -> tuple[int, ...]:
    """Return inside how many loops each access is copied: before all of them what is only said to
    be copied, and by ``rule`` what nothing is said of."""
    pairs = inputs(mapping)
    found = list(rule or (0,) * len(pairs))
    for own in written.operands or ():
        depth = 0 if own.inside is None else own.inside.number
        if own.inside is not None and own.treatment.text not in COPIED:
            text = f"what is {own.treatment.text} is not made inside loops"
            faults.append(_fault(own.inside, text, f"only {', '.join(COPIED)} operands are"))
        elif own.inside is not None and depth > len(levels):
            text = f"there are no {depth} loops to be inside of"
            faults.append(_fault(own.inside, text, f"{written.name.text} has {len(levels)}"))
        else:
            for n, pair in enumerate(pairs):
                found[n] = depth if means(own, *pair) else found[n]
    return tuple(found) if any(found) else ()


def _pitches(
    written: WrittenStatement,
    base: StatementSchedule,
    operands: Sequence[Treatment],
    treatments: Treatments,
    faults: list[Diagnostic],
) -> tuple[int, ...]:
    """Return how far apart rows of padded copies begin: as rows follow each other where only that
    they are padded is said, and as in ``base`` where nothing is."""
    pairs = inputs(base.mapping)
    found = [base.pitch(n) if how == "padded" else 0 for n, how in enumerate(operands)]
    for own in written.operands or ():
        for n, (operand, access) in enumerate(pairs):
            if not means(own, operand, access):
                continue
            found[n] = 0 if own.pitch is None else own.pitch.number
            if own.pitch is None:
                continue
            length = treatments.row(access)
            if own.treatment.text != "padded":
                text = f"what is {own.treatment.text} has no pitch"
                faults.append(_fault(own.pitch, text, "only padded copies have rows"))
            elif length is None or own.pitch.number < length:
                told = "of unknown length" if length is None else f"{length} elements long"
                text = f"the pitch {own.pitch.number} is too small"
                faults.append(_fault(own.pitch, text, f"rows of the copy are {told}"))
            elif own.pitch.number > (most := furthest(length)):
                text = f"the pitch {own.pitch.number} is too large"
                hint = f"rows of the copy are {length} elements long; up to {most} move them apart"
                faults.append(_fault(own.pitch, text, hint))
            else:
                continue
            break
    return tuple(found) if any(found) else ()


def _unfit(
    own: WrittenOperand, operand: str, access: Access, how: Treatment, treatments: Treatments
) -> Diagnostic | None:
    """Return why an operand cannot be brought to the instruction like that, None if it can."""
    if treatments.cost(operand, how) is not None:
        return None
    can = [kind for kind in KINDS if treatments.cost(operand, kind) is not None]
    text = f"'{own.what.text}' cannot be {how} for operand '{operand}' of this mapping"
    hint = f"it can be {' or '.join(can)}" if can else treatments.lacking(operand)
    made_of = [print_expr(a) for a in accesses_of(treatments.mapping.matching, operand)]
    if can and len(made_of) > 1:
        hint = f"it is made of {' and '.join(made_of)}: all can be {' or '.join(can)}"
    return Diagnostic("E415", text, own.treatment.span, hint=hint)


def _stream(word: Word, mapping: Mapping, faults: list[Diagnostic]) -> int | None:
    texts = [squeezed(print_expr(access)) for _, access in inputs(mapping)]
    for n, text in enumerate(texts):
        if word.text in (text, text.partition("[")[0]):
            return n
    faults.append(missing("E412", f"there is no access '{word.text}'", word, texts).diagnostics[0])
    return None


def _bypass(
    words: Sequence[Word], accelerator: Accelerator, faults: list[Diagnostic]
) -> bool | None:
    known: dict[str, Word] = {}
    for word in words:
        if word.text in known:
            faults.append(said_twice(f"'{word.text}' is said twice", word, known[word.text]))
        known.setdefault(word.text, word)
    stored = [word for word in words if word.text in STORED]
    if len({word.text for word in stored}) > 1:
        faults.append(said_twice("results are stored in one way", stored[1], stored[0]))
    if not stored:
        return None
    word = stored[0]
    is_past = word.text == "uncached"
    if is_past and not accelerator.past_stores:
        text = f"no instruction of {accelerator.name} stores past the caches"
        hint = "a description says how with 'bypass' of a store"
        faults.append(Diagnostic("E415", text, word.span, hint=hint))
    return is_past


# --- messages -----------------------------------------------------------------------------------
def _fault(word: Word, message: str, hint: str) -> Diagnostic:
    return Diagnostic("E414", message, word.span, hint=hint)


def missing(code: str, message: str, word: Word, there: Iterable[str]) -> ScheduleError:
    """Return the error that something is not there, with what is, the nearest first."""
    known = list(dict.fromkeys(there))
    close = get_close_matches(word.text, known, n=1)
    hint = f"did you mean {close[0]}?" if close else _there_are(known)
    return schedule_fault(code, message, word.span, hint)


def _there_are(there: Iterable[str]) -> str:
    known = list(dict.fromkeys(there))
    more = f", and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    verb = "are" if len(known) > 1 else "is"
    return f"there {verb} {'; '.join(known[:_SHOWN]) or 'nothing'}{more}"
