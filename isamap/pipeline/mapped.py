"""From a checked kernel and a machine to a mapped kernel: match, schedule, lower, emit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from isamap.diagnostics import (
    ArgumentsError,
    Diagnostic,
    HardwareError,
    NoMappingError,
    ScheduleError,
    fail,
)
from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.needles import needles
from isamap.mapping.matching import Enumeration
from isamap.pipeline.options import Clock, Options, Tell, silent
from isamap.pipeline.result import (
    Rejected,
    Result,
    StatementResult,
    Tuning,
    statement_names,
)
from isamap.pipeline.sizes import sample_symbols
from isamap.schedule.cost import estimate
from isamap.schedule.first import first_schedule
from isamap.schedule.schedule import Schedule

# A mapping whose fragments cannot be moved is left for the next one, this often in all.
_ATTEMPTS = 64


@dataclass(frozen=True, slots=True)
class _Planned:
    schedule: Schedule
    lowered: LoweredKernel
    rejected: tuple[Rejected, ...]
    tuning: Tuning | None = None


def map_kernel(
    kernel: Kernel, hardware: Accelerator, options: Options | None = None, tell: Tell = silent
) -> Result:
    """Map a kernel on to a machine.

    Raises NoMappingError when nothing on the machine computes a statement, ToolError when tuning
    needs a compiler that fails.  ``tell`` hears the name of each stage as it begins.
    """
    options = options or Options()
    clock = Clock(tell)
    with clock.stage("match"):
        enumerations = enumerate_all(kernel, hardware)
    with clock.stage("schedule"):
        planned = _plan_first(kernel, hardware, enumerations)
    if options.tune:
        with clock.stage("tune"):
            planned = _tune(kernel, hardware, enumerations, planned, options, tell)
    with clock.stage("estimate"):
        symbols = sample_symbols(kernel, planned.lowered) or {}
        cost = estimate(planned.lowered, hardware, symbols)
    with clock.stage("emit"):
        source, no_c = _emit(kernel, hardware, planned.lowered)
    return Result(
        kernel,
        hardware,
        _statements(kernel, enumerations, planned, symbols),
        planned.rejected,
        planned.schedule,
        planned.lowered,
        cost,
        symbols,
        planned.tuning,
        source,
        no_c,
        dict(clock.seconds),
    )


def enumerate_all(kernel: Kernel, hardware: Accelerator) -> tuple[Enumeration, ...]:
    """Return the legal mappings of every statement; NoMappingError names those without any."""
    index = needles(hardware)
    enumerations = tuple(
        enumerate_mappings(zero_based(statement), index, kernel.permissions)
        for statement in bind_extents(kernel).statements
    )
    names = statement_names(kernel)
    if unmapped := [i for i, found in enumerate(enumerations) if not found.mappings]:
        raise NoMappingError([_unmapped(kernel, hardware, names[i], i) for i in unmapped])
    return enumerations


def _unmapped(kernel: Kernel, hardware: Accelerator, name: str, index: int) -> Diagnostic:
    text = f"nothing on '{hardware.name}' computes statement {name} of kernel '{kernel.name}'"
    return fail(
        "E721",
        text,
        kernel.statements[index].span,
        hint="portable_c has every operation; 'extends: portable_c' adds it to a description",
    )


def _plan_first(
    kernel: Kernel, hardware: Accelerator, enumerations: tuple[Enumeration, ...]
) -> _Planned:
    """Return the first schedule that can be lowered, leaving mappings that cannot."""
    rejected: list[Rejected] = []
    left = list(enumerations)
    while True:
        schedule = first_schedule(kernel, hardware, tuple(left))
        try:
            return _Planned(schedule, lower(kernel, hardware, schedule), tuple(rejected))
        except ScheduleError as error:
            at = _blamed(kernel, left, error)
            failed = schedule.statements[at].mapping
            rest = tuple(m for m in left[at].mappings if m != failed)
            if not rest or len(rejected) >= _ATTEMPTS:
                raise _unlowered(kernel, hardware, at, rejected, error) from error
            rejected.append(Rejected(at, failed, error.diagnostics[0].message))
            left[at] = replace(left[at], mappings=rest)


def _blamed(kernel: Kernel, left: Sequence[Enumeration], error: ScheduleError) -> int:
    """Return the statement that an error is about, by its place in the text."""
    spans = [s.span for s in kernel.statements]
    for diagnostic in error.diagnostics:
        if diagnostic.span in spans:
            return spans.index(diagnostic.span)
    return max(range(len(left)), key=lambda i: len(left[i].mappings))


def _unlowered(
    kernel: Kernel,
    hardware: Accelerator,
    at: int,
    rejected: Sequence[Rejected],
    error: ScheduleError,
) -> NoMappingError:
    name = statement_names(kernel)[at]
    tried = sum(r.statement == at for r in rejected) + 1
    text = f"none of {tried} mappings of statement {name} can be scheduled on '{hardware.name}'"
    return NoMappingError(
        Diagnostic("E722", text, kernel.statements[at].span, notes=error.diagnostics)
    )


def _tune(
    kernel: Kernel,
    hardware: Accelerator,
    enumerations: tuple[Enumeration, ...],
    first: _Planned,
    options: Options,
    tell: Tell,
) -> _Planned:
    """Return the best schedule that a search finds, never one worse than the first."""
    from isamap.pipeline.tune import tune  # Optuna, only where it is asked for

    found = tune(kernel, hardware, enumerations, first.lowered, options, tell)
    if found.schedule is None:
        return replace(first, tuning=found.tuning)
    lowered = lower(kernel, hardware, found.schedule)
    return _Planned(found.schedule, lowered, first.rejected, found.tuning)


def _statements(
    kernel: Kernel,
    enumerations: tuple[Enumeration, ...],
    planned: _Planned,
    symbols: Mapping[str, int],
) -> tuple[StatementResult, ...]:
    results = []
    for i, (name, found) in enumerate(zip(statement_names(kernel), enumerations, strict=True)):
        chosen = found.mappings.index(planned.schedule.statements[i].mapping)
        left = [r for r in planned.rejected if r.statement == i]
        why = _why(found, chosen, left, planned)
        results.append(StatementResult(name, kernel.statements[i], found, chosen, why))
    return tuple(results)


def _why(found: Enumeration, chosen: int, rejected: Sequence[Rejected], planned: _Planned) -> str:
    """Return in words what made a mapping the chosen one."""
    if len(found.mappings) == 1:
        return "the only legal mapping"
    if planned.tuning and planned.tuning.trials > planned.tuning.failed:
        judge = "measured" if planned.tuning.measured else "estimated"
        return f"the fastest {judge} of {planned.tuning.trials} schedules tried"
    if rejected:
        return f"the best of {len(found.mappings)} that can be scheduled: {rejected[0].reason}"
    if chosen == 0:
        return f"the best of {len(found.mappings)}: fewest cycles, then highest utilisation"
    return f"the lowest estimate once scheduled, of {len(found.mappings)}"


def _emit(
    kernel: Kernel, hardware: Accelerator, lowered: LoweredKernel
) -> tuple[CSource | None, str]:
    """Return the C, or None and the reason why there is none."""
    if hardware.toolchain is None:
        return None, f"the description of '{hardware.name}' names no toolchain"
    try:
        return emit_c(lowered, hardware, kernel), ""
    except HardwareError as error:
        return None, error.diagnostics[0].message


def only_instruction(hardware: Accelerator, name: str) -> Accelerator:
    """Return a machine with one instruction, for each type that it is written for.

    ArgumentsError when the machine has none of that name.
    """
    entries = tuple(e for e in hardware.entries if name in (e.name, e.instruction.generic))
    if not entries:
        close = get_close_matches(name, [e.name for e in hardware.entries], n=3)
        text = f"'{hardware.name}' has no instruction '{name}'"
        hint = f"did you mean {', '.join(close)}?" if close else "'isamap hw show' lists them"
        raise ArgumentsError(fail("E704", text, hint=hint))
    return replace(hardware, entries=entries)
