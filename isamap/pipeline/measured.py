"""Some schedules of a kernel, each measured beside what was predicted of it: ``isamap measure``."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import numpy as np

from isamap.diagnostics import ArgumentsError, LimitError, ToolError, fail
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.pipeline.correlation import rank_correlation
from isamap.pipeline.mapped import arrange_kernel
from isamap.pipeline.options import Clock, Options, Tell, silent
from isamap.pipeline.predicted import prediction
from isamap.pipeline.result import Prediction, Way
from isamap.pipeline.serve import emitted
from isamap.pipeline.sizes import sample_symbols
from isamap.pipeline.tune import changes, model_of
from isamap.pipeline.way import Choice, affordable, native_choice
from isamap.sim.run import SimulationFault, simulate
from isamap_search.clock import Clock as Timing
from isamap_search.counting import Counting
from isamap_search.diverse import best_and_diverse
from isamap_search.objective import Candidate, Model, rank

# Points that the model looks at for each schedule that is measured, and samples of each of these.
_LOOKED_AT, _ROUNDS = 12, 7


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule: how it differs from the first one, and its prediction; None where it failed.

    ``samples`` are the cycles of which those that were measured are the median: one of a
    simulation, none where it failed.
    """

    changes: tuple[str, ...]
    prediction: Prediction | None
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The schedules of one kernel, the first one first.

    ``way`` is how they were run, ``reason`` why not on the machine, where that is so.  ``fault`` is
    the first reason for which one failed.
    """

    kernel: Kernel
    symbols: Mapping[str, int]
    way: Way
    reason: str
    rows: tuple[Row, ...]
    fault: ToolError | LimitError | None

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """Those of the schedules that ran."""
        return tuple(row.prediction for row in self.rows if row.prediction is not None)


def correlation(predictions: Sequence[Prediction]) -> float | None:
    """Return the rank correlation of estimates and measurements, None where there is none."""
    return rank_correlation([p.estimate for p in predictions], [p.measured for p in predictions])


def measure_schedules(
    kernel: Kernel, hardware: Accelerator, count: int, options: Options, tell: Tell = silent
) -> Measured:
    """Measure the first schedule, and the best and most different ones of the model, ``count`` all.

    On the machine where its code runs here or the description has a measuring command, else on the
    simulator.  Raises NoMappingError, and LimitError where that would take too long.
    """
    arranged, choice = arrange_kernel(kernel, hardware, options, Clock(tell))
    symbols = sample_symbols(arranged.kernel, choice.lowered)
    if symbols is None:
        name = kernel.symbols[0]
        text = f"none of the sizes tried for the open extents of kernel '{kernel.name}' fits"
        raise ArgumentsError(fail("E712", text, hint=f"give them, --set {name}=64"))
    _, no_c = emitted(arranged.kernel, hardware, choice.lowered)
    way = affordable(
        _way(hardware, no_c), arranged.kernel, choice.lowered, hardware, symbols, options.simulate
    )
    if way.way == "none":
        text = f"kernel '{kernel.name}' is not run: {way.reason}"
        raise LimitError(fail("E751", text, hint=way.hint or None))
    tell("ranking by the model")
    shared = 1 if way.way == "simulated" else options.threads
    model = model_of(arranged.kernel, hardware, choice, symbols, shared)
    candidates = _chosen(model, count, options.seed)
    tell(f"measuring {len(candidates)} schedules of {kernel.name}")
    arrays = random_inputs(arranged.kernel, symbols, options.seed)
    samples, fault = _samples(model, candidates, arrays, options.threads, way.way)
    rows = [
        Row(
            changes(model, one.point),
            _prediction(model, one, options.threads, way.way, median(own)) if own else None,
            own,
        )
        for one, own in zip(candidates, samples, strict=True)
    ]
    return Measured(kernel, symbols, way.way, way.reason, tuple(rows), fault)


def _way(hardware: Accelerator, no_c: str) -> Choice:
    native = native_choice(hardware, no_c)
    if native.way == "program":
        return Choice("simulated", "an emulator's time is not the machine's")
    return native


def _chosen(model: Model, count: int, seed: int) -> list[Candidate]:
    """Return the first schedule, and others that are worth it."""
    ranked = rank(model, _LOOKED_AT * count, seed)
    first = [one for one in ranked if one.point == model.first]
    others = [one for one in ranked if one.point != model.first]
    return [*first, *best_and_diverse(others, count - len(first))]


def _prediction(
    model: Model, candidate: Candidate, threads: int, way: Way, cycles: float
) -> Prediction:
    machine, schedule, lowered = model.accelerator, candidate.schedule, candidate.lowered
    return prediction(
        model.kernel,
        machine,
        schedule,
        lowered,
        model.symbols,
        threads,
        cycles,
        simulated=way == "simulated",
    )


def _samples(
    model: Model,
    candidates: Sequence[Candidate],
    arrays: Mapping[str, np.ndarray],
    threads: int,
    way: Way,
) -> tuple[list[tuple[float, ...]], ToolError | LimitError | None]:
    """Return samples of the cycles that each takes, none where it fails, and the first reason for
    that."""
    if way == "simulated":
        return _simulated(model, candidates, arrays)
    given = model.kernel, model.accelerator, arrays, model.symbols, threads
    with ExitStack() as stack:
        bench = Counting(*given) if way == "measured" else stack.enter_context(Timing(*given))
        samples = bench(candidates, _ROUNDS)
    clock = float(model.accelerator.clock)
    return [tuple(one * clock for one in own or ()) for own in samples], bench.fault


def _simulated(
    model: Model, candidates: Sequence[Candidate], arrays: Mapping[str, np.ndarray]
) -> tuple[list[tuple[float, ...]], ToolError | LimitError | None]:
    found: list[tuple[float, ...]] = []
    fault = None
    for candidate in candidates:
        try:
            done = simulate(candidate.lowered, model.accelerator, arrays, model.symbols)
        except SimulationFault as error:
            text = f"the schedule does not fit '{model.accelerator.name}': {error}"
            fault = fault or LimitError(fail("E752", text))
            found.append(())
        else:
            found.append((float(done.cycles),))
    return found, fault
