"""A search over the schedules of a kernel, timed where its code runs here."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from isamap import __version__
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import Choice
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.fragments.produce import producers_of
from isamap.pipeline.correlation import rank_correlation
from isamap.pipeline.limits import limits
from isamap.pipeline.memory import Memory
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.result import FrontRow, Limits, Tuning
from isamap.pipeline.serve import emit, emitted
from isamap.pipeline.sizes import sample_symbols
from isamap.pipeline.way import native_choice
from isamap.schedule.space import Space, space
from isamap_search.clock import Clock
from isamap_search.counting import RULES as COUNTED_RULES
from isamap_search.counting import Counting
from isamap_search.machine import this_machine
from isamap_search.objective import Candidate, Model
from isamap_search.plan import Bench, Found, Order, Plan
from isamap_search.race import Rules
from isamap_search.sampling import default_sampler
from isamap_search.settings import Place
from isamap_search.study import search
from isamap_search.tape import Recorder, Replay, Tape, Untaped, read_log


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best candidate found, None when none was, and what the search did."""

    best: Candidate | None
    tuning: Tuning


def tune(
    kernel: Kernel,
    hardware: Accelerator,
    choice: Choice,
    options: Options,
    tell: Tell,
    written: Kernel | None = None,
) -> Tuned:
    """Search around a first choice within ``options.tune``.

    ``written`` is the kernel of which rules made ``kernel``, for the log.  ToolError when nothing
    that was tried could be run.
    """
    assert options.tune is not None
    settings = options.search
    bound = bind_extents(kernel)
    symbols = sample_symbols(kernel, choice.lowered) or {}
    model = model_of(kernel, hardware, choice, symbols, options.threads)
    choices = model.space
    sampler = settings.sampler or default_sampler(settings.objectives)
    replayed = read_log(settings.replayed) if settings.replayed else None
    first, no_c = emitted(kernel, hardware, choice.lowered, tell)
    way = native_choice(hardware, no_c).way
    measured = way in ("native", "measured") and not options.simulate
    if replayed:  # by somebody who may trust less, on a machine that may have less
        measured = bool(replayed[0].get("measured"))
    counted = measured and hardware.toolchain is not None and bool(hardware.toolchain.measure)
    memory = Memory(model, options, symbols) if measured and not replayed else None
    # What is measured is the emitted code: a change of how it is emitted begins anew.
    code = first.source.text if measured and first is not None else None
    identity = _identity(kernel, hardware, choices, code, options, symbols)
    place = Place() if replayed else _place(kernel, identity, options, measured)
    rules = COUNTED_RULES if counted else Rules()
    plan = Plan(sampler, settings.objectives, place, identity, rules, options.threads)
    with ExitStack() as stack:
        tape: Tape = Untaped()
        bench: Bench | None = None
        clock: Clock | Counting | None = None
        order: Order | None = memory.order if memory and memory.learned else None
        remembered = memory.remembered if memory else ()
        if replayed:
            header, events = replayed
            tape = Replay(events)
            bench = _Nothing() if measured else None
            order = _as_given if header.get("recalled") else None
        elif measured:
            arrays = random_inputs(kernel, symbols, options.seed)
            threads = options.threads
            if counted:
                clock = Counting(kernel, hardware, arrays, symbols, threads, _source)
            else:
                clock = stack.enter_context(
                    Clock(kernel, hardware, arrays, symbols, threads, _source)
                )
            bench = clock
        if settings.log and not replayed:
            told = _header(written or kernel, hardware, options, sampler, measured)
            told["recalled"] = order is not None or bool(remembered)
            tape = stack.enter_context(Recorder(settings.log, told))
        noted = memory.note if memory else lambda _: None
        found = search(
            model, options.tune, options.seed, bench, plan, tape, remembered, order, tell, noted
        )
        c = None
        if found.best and not found.interrupted:
            c, _ = emitted(kernel, hardware, found.best.lowered, tell)
        if c is not None:
            try:
                tape.check("c", sha256(c.source.text.encode()).hexdigest())
            except KeyboardInterrupt:
                if not replayed:
                    raise
                found = replace(found, interrupted=True)  # the log ends before that
    if clock and clock.fault and found.best is None and found.trials:
        raise clock.fault
    reached = _limits(found, bound, hardware, symbols, options.threads)
    tuning = replace(_tuning(found, plan, model, memory), limits=reached)
    return Tuned(found.best, _counted(tuning, hardware) if counted else tuning)


def model_of(
    kernel: Kernel,
    hardware: Accelerator,
    choice: Choice,
    symbols: Mapping[str, int],
    threads: int,
) -> Model:
    """Return what judges the schedules around a first choice."""
    choices = space(
        hardware,
        bind_extents(kernel),
        choice.starts,
        producers_of(hardware),
        threads,
        choice.schedule,
        choice.written,
    )
    return Model(kernel, hardware, choices, symbols, threads)


def changes(model: Model, point: tuple[int, ...]) -> tuple[str, ...]:
    """Return the choices in which a point differs from the first schedule."""
    return tuple(
        f"{choice.name}={choice.options[number]}"
        for choice, number, first in zip(model.space.choices, point, model.first, strict=True)
        if number != first
    )


def _counted(tuning: Tuning, hardware: Accelerator) -> Tuning:
    """Return the same with cycles in place of seconds at the description's clock."""
    clock = float(hardware.clock)
    first = None if tuning.first is None else tuning.first * clock
    best = None if tuning.best is None else tuning.best * clock
    return replace(tuning, first=first, best=best, counted=True)


def _source(lowered: LoweredKernel, hardware: Accelerator, kernel: Kernel) -> CSource:
    return emit(lowered, hardware, kernel).source


def _limits(
    found: Found,
    kernel: Kernel,
    hardware: Accelerator,
    symbols: Mapping[str, int],
    threads: int,
) -> Limits | None:
    """Return what the analytical model says of the best; None if there is none."""
    best = found.best
    if best is None or found.interrupted:
        return None
    cycles = found.score
    if found.measured and cycles is not None:
        cycles *= float(hardware.clock)
    # An estimate is that of one thread.
    shared = threads if found.measured else 1
    return limits(kernel, hardware, best.schedule, best.lowered, symbols, shared, cycles)


def _as_given(ranked: Sequence[Candidate]) -> Sequence[Candidate]:
    """Stand for an order whose outcome the log has."""
    return ranked


class _Nothing:
    """Stands for the machine in a replay, whose log holds all that it would say."""

    def __call__(self, candidates: Sequence[Candidate], rounds: int) -> list[None]:
        """Is not called."""
        raise AssertionError("a replay measures nothing")

    def code_bytes(self, candidate: Candidate) -> int:
        """Is not called."""
        raise AssertionError("a replay measures nothing")


def _identity(
    kernel: Kernel,
    hardware: Accelerator,
    choices: Space,
    code: str | None,
    options: Options,
    symbols: Mapping[str, int],
) -> dict[str, str]:
    """Return what a study is about: only workers that agree in all of it share one.

    ``code`` is the C of the first schedule where candidates are measured.
    """
    words = [(choice.name, choice.options) for choice in choices.choices]
    found = {
        "kernel": f"{kernel.name} {_digest(print_kernel(kernel))}",
        "description": f"{hardware.name} {hardware.digest[:16]}",
        "space": _digest(repr(words) + _text(options)),
        "threads": str(options.threads),
        "sizes": ",".join(f"{name}={size}" for name, size in sorted(symbols.items())),
        "machine": "none",
    }
    if code is not None:
        machine = this_machine(hardware)
        found["machine"] = f"{machine.cpu}, {machine.compiler}"
        found["code"] = _digest(code)
    return found


def _place(kernel: Kernel, identity: Mapping[str, str], options: Options, measured: bool) -> Place:
    """Return where the study lives."""
    place, folder = options.search.place, options.search.folder
    # With other objectives it is another study, as with any other identity.
    told = {**identity, "objectives": ",".join(options.search.objectives)}
    name = f"{kernel.name}-{_digest(json.dumps(told, sort_keys=True))[:12]}"
    if place.lasts:
        return Place(place.path, place.url, place.name or name)
    if measured and folder is not None:
        return Place(folder / "studies" / f"{name}.journal", name=name)
    return Place(name=name)


def _header(
    kernel: Kernel, hardware: Accelerator, options: Options, sampler: str, measured: bool
) -> dict[str, Any]:
    assert options.tune is not None
    return {
        "isamap": __version__,
        "kernel": print_kernel(kernel),
        "hardware": hardware.name,
        "description": hardware.digest,
        "machine": asdict(this_machine(hardware)),
        "threads": options.threads,
        "seed": options.seed,
        "trials": options.tune.trials,
        "seconds": options.tune.seconds,
        "sampler": sampler,
        "objectives": list(options.search.objectives),
        "instruction": options.instruction,
        "rewrite": None if options.rewrite is None else list(options.rewrite),
        "measured": measured,
        "schedule": _text(options) or None,
    }


def _text(options: Options) -> str:
    """Return the text of the schedule that a search begins with, or ''."""
    return "" if options.schedule is None else options.schedule.source.text


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _tuning(found: Found, plan: Plan, model: Model, memory: Memory | None) -> Tuning:
    beside = found.beside
    compared = _compared(found, model)
    rows = tuple(FrontRow(scored.values, changes(model, scored.point)) for scored in found.front)
    return Tuning(
        found.trials,
        found.failed,
        found.measured,
        found.first,
        found.score,
        found.interrupted,
        dropped=found.dropped,
        others=found.others,
        sampler=plan.sampler,
        objectives=plan.objectives,
        ratio=beside.ratio if beside else None,
        spread=beside.spread if beside else None,
        rounds=len(beside.samples) if beside else 0,
        proved=beside is not None and beside.verdict == "faster",
        changes=changes(model, found.best.point) if found.best else (),
        study=plan.place.name or "",
        place=str(plan.place),
        records=str(memory.records.path) if memory and memory.records else None,
        learned=memory.told if memory else "",
        front=rows,
        correlation=rank_correlation(*compared) if found.measured else None,
        compared=len(compared[0]) if found.measured else 0,
        warnings=found.warnings,
    )


def _compared(found: Found, model: Model) -> tuple[list[float], list[float]]:
    """Return what the model expects of the candidates with a score, and the scores."""
    pairs = [(model.candidate(point), values[0]) for point, values in found.values]
    known = [(candidate.cycles, time) for candidate, time in pairs if candidate is not None]
    return [cycles for cycles, _ in known], [time for _, time in known]
