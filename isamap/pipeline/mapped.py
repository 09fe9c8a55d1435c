"""From a checked kernel and a machine to a mapped kernel: match, schedule, lower, emit."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from isamap.diagnostics import (
    ArgumentsError,
    Diagnostic,
    NoMappingError,
    fail,
)
from isamap.emit.c import inner_of
from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statements_ahead
from isamap.ir.nodes import Kernel
from isamap.ir.statements import statement_names
from isamap.lower.alternative import Alternative, advantage
from isamap.lower.choose import Choice
from isamap.lower.cost import estimate
from isamap.lower.grouping import group_reasons
from isamap.lower.ordered import as_ordered
from isamap.mapping.find import enumerate_preferred, enumerate_statement, enumerate_with
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import needles
from isamap.mapping.reasons import reasons
from isamap.pipeline.arrange import Arranged, arrange_best
from isamap.pipeline.options import Clock, Options, Tell, silent
from isamap.pipeline.result import (
    Result,
    Scheduled,
    StatementResult,
    Tuning,
    uses,
)
from isamap.pipeline.sequences import Sequences, axes_text, tile_text
from isamap.pipeline.serve import emitted
from isamap.pipeline.sizes import TYPICAL_SIZE, check_addressable
from isamap.pipeline.started import started
from isamap.pipeline.unmapped import enumerate_each, nothing
from isamap.pipeline.written import arrange_written
from isamap.schedule.schedule import Schedule


def map_kernel(
    kernel: Kernel, hardware: Accelerator, options: Options | None = None, tell: Tell = silent
) -> Result:
    """Map a kernel on to a machine.

    Raises NoMappingError when nothing on the machine computes a statement, ScheduleError when the
    schedule that is given does not fit, LimitError when no program can address the arrays,
    ToolError when tuning needs a compiler that fails.
    ``tell`` hears the name of each stage as it begins.
    """
    options = options or Options()
    check_addressable(kernel)
    clock = Clock(tell)
    symbols = dict.fromkeys(kernel.symbols, TYPICAL_SIZE)
    arranged, choice = arrange_kernel(kernel, hardware, options, clock)
    mapped = arranged.kernel
    schedule, lowered, cost, tuning = choice.schedule, choice.lowered, choice.estimate, None
    if options.tune:
        with clock.stage("tune"):
            from isamap.pipeline.tune import tune  # Optuna, only where it is asked for

            tuned = tune(mapped, hardware, choice, options, tell, kernel)
            tuning = tuned.tuning
            if tuned.best:
                schedule, lowered = tuned.best.schedule, tuned.best.lowered
                cost = estimate(lowered, hardware, symbols, options.threads)
    with clock.stage("emit"):
        c, no_c = emitted(mapped, hardware, lowered, tell)
        if c is not None:
            # What rewritings have done away with is still in the kernel that people know.
            inner = tuple(dict.fromkeys((*c.source.inner, *inner_of(kernel))))
            c = replace(c, source=replace(c.source, inner=inner))
    return Result(
        kernel,
        mapped,
        arranged.rewritings,
        hardware,
        _statements(arranged, hardware, choice, schedule, tuning),
        as_ordered(schedule, lowered),
        lowered,
        cost,
        symbols,
        tuning,
        None if c is None else c.source,
        no_c,
        dict(clock.seconds),
        () if c is None else c.services,
        options.threads,
    )


def arrange_kernel(
    kernel: Kernel, hardware: Accelerator, options: Options, clock: Clock
) -> tuple[Arranged, Choice]:
    """Return what is mapped, and the first choice of mappings and schedule.

    Raises what :func:`map_kernel` raises where there is none.
    """
    symbols, tell = dict.fromkeys(kernel.symbols, TYPICAL_SIZE), clock.tell
    if options.schedule is not None:
        with clock.stage("schedule"):
            arranged = arrange_written(kernel, hardware, options.schedule, options, symbols, tell)
            unmapped, found = arranged.kernel, arranged.enumerations
    else:
        with clock.stage("match"):
            kernels = started(kernel, options.rewrite)
            every = [_enumerations(k.kernel, hardware, options.instruction) for k in kernels]
            # Of those that are told to have no mapping, the one that lacks least.
            lacks = [sum(not own.mappings for own in found) for found in every]
            least = lacks.index(min(lacks))
            unmapped, found = kernels[least].kernel, every[least]
        with clock.stage("schedule"):
            arranged = arrange_best(kernels, hardware, every, options, symbols, tell)
    if (choice := arranged.choice) is None:
        after = zip(arranged.kernel.statements, arranged.enumerations, strict=True)
        left = {statement.target.buffer for statement, own in after if not own.mappings}
        raise nothing(unmapped, hardware, found, arranged.refused, left)
    if options.instruction and not uses(
        choice.schedule, choice.lowered, hardware, options.instruction
    ):
        raise _unused(kernel, hardware, options.instruction)
    return arranged, choice


def _enumerations(
    kernel: Kernel, hardware: Accelerator, instruction: str | None
) -> tuple[Enumeration, ...]:
    """Return the mappings of every statement: to an instruction if one is asked for and fits."""
    if instruction is None:
        return enumerate_each(kernel, hardware)
    only_instruction(hardware, instruction)  # the machine must have it
    index = needles(hardware)
    return tuple(
        enumerate_preferred(kernel, number, index, instruction)
        for number in range(len(kernel.statements))
    )


def _unused(kernel: Kernel, hardware: Accelerator, instruction: str) -> NoMappingError:
    """Return the error that says why an instruction that was asked for computes no statement."""
    own = only_instruction(hardware, instruction)
    notes: list[str] = []
    for number, statement in enumerate(kernel.statements):
        found = enumerate_with(kernel, number, needles(hardware), instruction)
        together = group_reasons(kernel, needles(own), number)
        reasons_ = (*together, *reasons(statement, own, kernel.permissions), *found.refused)
        name = statement_names(kernel)[number]
        notes += [f"{name}: {reason}" for reason in dict.fromkeys(reasons_)]
        if found.mappings:
            notes.append(f"{name}: {instruction} matches, but no code can be made for it")
        elif (last := _after(kernel, hardware, number, instruction)) is not None:
            part = " + " not in instruction
            how = "it computes what goes into" if part else "so are mappings told that are to"
            notes.append(f"{name}: {how} {last}: ask for that, with --instruction {last}")
    quoted = f"'{instruction}'" if " " in instruction else instruction
    text = f"{instruction} computes no statement of kernel '{kernel.name}' on '{hardware.name}'"
    return NoMappingError(
        [
            Diagnostic(
                "E722",
                text,
                kernel.statements[0].span,
                hint=f"isamap explain KERNEL.ir --hw {hardware.asked} --instruction {quoted}: says "
                "why, and tries changes",
                notes=tuple(Diagnostic("", line, severity="note") for line in notes),
            )
        ]
    )


def _after(kernel: Kernel, hardware: Accelerator, number: int, instruction: str) -> str | None:
    """Return the instruction that a mapping of a statement is to, where one that is asked for, or
    such a sequence, computes what that takes.
    """
    sequences = Sequences(kernel, hardware)
    for mapping in enumerate_statement(kernel, number, needles(hardware)).mappings:
        if instruction in (sequences.name(mapping), *sequences.by(mapping)):
            return mapping.matching.needle.name
    return None


def _statements(
    arranged: Arranged,
    hardware: Accelerator,
    choice: Choice,
    schedule: Schedule,
    tuning: Tuning | None,
) -> tuple[StatementResult, ...]:
    results = []
    sequences = Sequences(arranged.kernel, hardware)
    first = statements_ahead(arranged.kernel)
    # What a search came to is not what somebody said.
    searched = tuning is not None and bool(tuning.changes)
    said = ("",) * len(arranged.covers) if searched or not arranged.said else arranged.said
    for number, name in enumerate(statement_names(arranged.kernel)):
        found, tried = arranged.enumerations[number], choice.alternatives[number]
        chosen = found.mappings.index(schedule.statements[number].mapping)
        scheduled = tuple(
            Scheduled(
                found.mappings.index(a.mapping), a.estimate.cycles if a.estimate else None, a.reason
            )
            for a in tried
        )
        results.append(
            StatementResult(
                name,
                arranged.kernel.statements[number],
                found,
                chosen,
                said[number] or _why(found, chosen, scheduled, tried, tuning, sequences),
                scheduled,
                arranged.covers[number],
                number in first,
            )
        )
    return tuple(results)


def _why(
    found: Enumeration,
    chosen: int,
    scheduled: Sequence[Scheduled],
    tried: Sequence[Alternative],
    tuning: Tuning | None,
    sequences: Sequences,
) -> str:
    """Return in words what made a mapping the chosen one."""
    if len(found.mappings) == 1:
        return "the only legal mapping"
    if tuning and tuning.best is not None:
        judged = "measured" if tuning.measured else "estimated"
        return f"part of the fastest of {tuning.trials} schedules {judged}"
    possible = sorted((s.cycles, s.mapping) for s in scheduled if s.cycles is not None)
    if not possible:
        return "nothing brings it what it takes but the registers of another statement"
    if len(possible) == 1:
        if len(scheduled) == 1:
            return "scheduled first by a rough count of calls and copies, which left no other"
        return f"the only one of {len(scheduled)} tried that can be scheduled"
    cycles = next((c for c, number in possible if number == chosen), possible[0][0])
    if cycles > possible[0][0]:
        near = {s.mapping: a for s, a in zip(scheduled, tried, strict=True) if a.estimate}
        better = advantage(near[chosen], near[possible[0][1]]) if chosen in near else ""
        if better:
            return f"about as fast as the lowest estimate, and {better}"
        return "part of the lowest estimate of all statements together"
    text = f"the lowest estimate of {len(possible)} that were scheduled"
    ratio = possible[1][0] / cycles if cycles else 1.0
    if ratio >= 1.005:
        other = _other(found, chosen, possible[1][1], sequences)
        text += f"; the next one, {other}, takes {ratio:.3g} times as long"
    return text


def _other(found: Enumeration, chosen: int, number: int, sequences: Sequences) -> str:
    """Return what a mapping is called beside the chosen one: what differs, if the names do not."""
    mine, other = found.mappings[chosen], found.mappings[number]
    name = sequences.name(other)
    if name != sequences.name(mine):
        return name
    axes = axes_text(other)
    if axes == axes_text(mine):
        return f"{name} with the tile {tile_text(other)}"
    return f"{name} with {'one iteration' if axes == '-' else axes}"


def only_instruction(hardware: Accelerator, name: str) -> Accelerator:
    """Return a machine with one instruction, for each type that it is written for.

    For a composition (``a + b``), whose parts the machine must have, it is one without any.
    ArgumentsError when the machine has none of that name.
    """
    if " + " in name:
        for part in name.split(" + "):
            only_instruction(hardware, part)
        return replace(hardware, entries=())
    entries = tuple(e for e in hardware.entries if name in (e.name, e.instruction.generic))
    if not entries:
        close = get_close_matches(name, [e.name for e in hardware.entries], n=3)
        text = f"'{hardware.name}' has no instruction '{name}'"
        hint = f"did you mean {', '.join(close)}?" if close else "'isamap hw show' lists them"
        raise ArgumentsError(fail("E704", text, hint=hint))
    return replace(hardware, entries=entries)
