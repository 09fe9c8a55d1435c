"""Running a mapped kernel: in a worker process, as a program, measured, or on the simulator."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import assert_never

import numpy as np

from isamap.diagnostics import Diagnostic, LimitError, ToolError, fail
from isamap.emit.liveness import calls
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator, Toolchain
from isamap.pipeline.arrays import output_names
from isamap.pipeline.options import Clock
from isamap.pipeline.result import Arrays, Execution, Result
from isamap.pipeline.sizes import shape_of
from isamap.pipeline.way import Choice, run_seconds
from isamap.run.build import build_program, build_shared
from isamap.run.counter import Counter
from isamap.run.outcome import Crash
from isamap.run.program import run_program, to_repeat
from isamap.run.worker import Limits, Loaded, Worker
from isamap.sim.run import SimulationFault, simulate

# Timed runs after the first: enough for a median, short enough not to be waited for.
_REPEATS, _TIMED_SECONDS = 5, 0.5
# A board is farther away than a library.
_MEASURED_SECONDS = 5.0


def build(result: Result, choice: Choice, clock: Clock) -> Path | None:
    """Compile what the chosen way runs, if anything; ToolError when the compiler refuses."""
    match choice.way:
        case "native":
            with clock.stage("compile"):
                return build_shared(_source(result), result.accelerator)
        case "program" | "measured":
            with clock.stage("compile"):
                return build_program(_source(result), result.accelerator)
        case "simulated" | "none":
            return None
        case never:
            assert_never(never)


def execute(
    result: Result,
    choice: Choice,
    built: Path | None,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    clock: Clock,
    timed: bool = True,
) -> Execution:
    """Run a mapped kernel on arrays in the chosen way.

    ``built`` is what :func:`build` returned.  Raises ToolError when the code crashes or does not
    end.
    """
    match choice.way:
        case "native":
            assert built is not None
            return _native(result, built, arrays, symbols, threads, clock, timed)
        case "program":
            assert built is not None
            return _program(result, built, arrays, symbols, threads, clock)
        case "measured":
            assert built is not None
            return _measured(result, built, arrays, symbols, threads, clock, timed)
        case "simulated":
            return _simulated(result, choice, arrays, symbols, clock)
        case "none":
            return Execution("none", choice.reason, choice.hint, symbols)
        case never:
            assert_never(never)


def _native(
    result: Result,
    built: Path,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    clock: Clock,
    timed: bool,
) -> Execution:
    loaded = Loaded(built, _source(result))
    # Only what runs far longer than it should is taken for endless.
    limits = Limits(seconds=60.0 + 20 * run_seconds(result, symbols))
    with clock.stage("run"), Worker(limits) as worker:
        start = perf_counter()
        outputs = _outcome(result, worker.run(loaded, arrays, symbols, threads))
        elapsed = perf_counter() - start
        taken: tuple[float, ...] = ()
        if timed:
            repeats = max(1, min(_REPEATS, int(_TIMED_SECONDS / elapsed)))
            samples = worker.time([loaded], arrays, symbols, threads, repeats=repeats)
            if isinstance(samples, Crash):
                raise _failed(result, samples)
            (taken,) = samples
    return Execution(
        "native",
        symbols=symbols,
        outputs=outputs,
        seconds=median(taken) if taken else None,
        compiler=_compiler(result.accelerator),
        samples=taken,
    )


def _program(
    result: Result,
    built: Path,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    clock: Clock,
) -> Execution:
    run = (built, _source(result), result.accelerator, arrays, symbols, threads)
    with clock.stage("run"):
        outcome = run_program(*run)
    if isinstance(outcome, Crash) and outcome.command:
        outcome = replace(outcome, command=to_repeat(*run))
    return Execution(
        "program",
        symbols=symbols,
        outputs=_outcome(result, outcome),
        compiler=_compiler(result.accelerator),
    )


def _measured(
    result: Result,
    built: Path,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    clock: Clock,
    timed: bool,
) -> Execution:
    counter = Counter(built, _source(result), result.accelerator, arrays, symbols, threads)
    with clock.stage("measure"):
        counts: tuple[float, ...] | Crash = counter.run() or ()
        if timed and not isinstance(counts, Crash):
            counts = counter.samples(_REPEATS, _MEASURED_SECONDS)
    if isinstance(counts, Crash):
        command = counts.command and counter.to_repeat()
        raise _failed(result, replace(counts, command=command))
    return Execution(
        "measured",
        symbols=symbols,
        outputs=counter.outputs,
        cycles=median(counts) if counts else None,
        compiler=_compiler(result.accelerator),
        samples=counts,
    )


def _simulated(
    result: Result,
    choice: Choice,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    clock: Clock,
) -> Execution:
    with clock.stage("simulate"):
        try:
            done = simulate(result.lowered, result.accelerator, arrays, symbols)
        except SimulationFault as fault:
            text = f"the schedule does not fit '{result.accelerator.name}': {fault}"
            raise LimitError(fail("E752", text)) from fault
    return Execution(
        "simulated",
        choice.reason,
        choice.hint,
        symbols=symbols,
        outputs={
            name: done.outputs[name].reshape(shape_of(result.kernel, name, symbols))
            for name in output_names(result.kernel)
        },
        cycles=float(done.cycles),
        conflicts=done.conflicts,
    )


def _outcome(result: Result, outcome: Arrays | Crash) -> Arrays:
    if isinstance(outcome, Crash):
        raise _failed(result, outcome)
    return outcome


def _failed(result: Result, crash: Crash) -> ToolError:
    """Return the error for code that failed, with what was run."""
    toolchain = _toolchain(result.accelerator)
    command = shlex.join([*toolchain.compiler, *toolchain.flags])
    text = f"this was the C of kernel '{result.kernel.name}' (see --emit), compiled by: {command}"
    notes = [*crash.diagnostic.notes, Diagnostic("", text, severity="note")]
    if crash.signal in ("SIGSEGV", "SIGBUS"):
        notes.append(Diagnostic("", _at_memory(result), severity="note"))
    return ToolError(replace(crash.diagnostic, notes=tuple(notes)))


def _at_memory(result: Result) -> str:
    """Return which instructions of the code may have been at an address where they may not be."""
    machine = result.accelerator
    used = {call.instruction for call in calls(result.lowered.code)}
    names = [
        entry.name
        for entry in machine.entries
        if entry.name in used
        and any(
            machine.storage(entry.storage(o.name)).kind == "memory"
            for o in entry.instruction.places
        )
    ]
    told = f"in memory work {', '.join(sorted(names))}" if names else "no instruction is at memory"
    return (
        f"{told}; one that goes beyond its operand, or needs an alignment that 'align' does not "
        f"say, is found by 'isamap targets test {machine.asked}'"
    )


def _source(result: Result) -> CSource:
    assert result.source is not None, "without C, the way to run is the simulator"
    return result.source


def _toolchain(accelerator: Accelerator) -> Toolchain:
    assert accelerator.toolchain is not None, "the way to run was chosen by it"
    return accelerator.toolchain


def _compiler(accelerator: Accelerator) -> str:
    return _toolchain(accelerator).compiler[0]
