"""What was predicted of a run, beside what it took."""

from collections.abc import Mapping
from dataclasses import replace

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.cost import Estimate, estimate
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.limits import least_cycles
from isamap.pipeline.result import Execution, Prediction, Result
from isamap.schedule.schedule import Schedule


def predicted(result: Result, execution: Execution, threads: int) -> Prediction | None:
    """Return the prediction at the sizes of a run; None where the run was not timed, or where the
    time is that of another machine than the described one."""
    if execution.way == "native" and _stands_in(result.accelerator):
        return None
    cycles = execution.cycles
    if execution.seconds is not None:
        cycles = execution.seconds * float(result.accelerator.clock)
    if not cycles:
        return None
    return prediction(
        result.mapped,
        result.accelerator,
        result.schedule,
        result.lowered,
        execution.symbols or {},
        threads,
        cycles,
        simulated=execution.way == "simulated",
    )


def prediction(
    kernel: Kernel,
    accelerator: Accelerator,
    schedule: Schedule,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    threads: int,
    cycles: float,
    *,
    simulated: bool,
) -> Prediction:
    """Return what was expected of a schedule that took so many cycles, measured or simulated."""
    # The simulator has one core, and a host that copies in no time.
    shared = 1 if simulated else threads
    machine = _simulated(accelerator) if simulated else accelerator
    cost = estimate(lowered, machine, symbols, shared, copies=not simulated)
    least = least_cycles(bind_extents(kernel), machine, schedule, lowered, symbols, shared)
    bound, by = (None, "") if least is None else (least.cycles, least.by)
    if not simulated:
        return Prediction(cost.cycles, bound, by, cycles, cost.cycles)
    whole = estimate(lowered, accelerator, symbols, shared)
    return Prediction(
        cost.cycles, bound, by, cycles, whole.cycles, _left_out(whole, cost, accelerator)
    )


def _left_out(whole: Estimate, cost: Estimate, accelerator: Accelerator) -> tuple[str, ...]:
    """Return what the whole estimate has, and that of a simulated run has not."""
    if whole.cycles == cost.cycles:
        return ()
    kinds = {storage.name: storage.kind for storage in accelerator.storages}
    more = {name for name, part in whole.parts.items() if part > cost.parts.get(name, 0.0)}
    found = {kinds.get(name, name) for name in more}
    words = {"copies": "copies", "cache": "caches", "memory": "memory that is busy"}
    return tuple(word for kind, word in words.items() if kind in found)


def _simulated(accelerator: Accelerator) -> Accelerator:
    """Return a machine as it is simulated: without caches, and with memory that is never busy."""
    kept = (s for s in accelerator.storages if s.kind != "cache")
    rates = tuple(replace(s, read=None, write=None) if s.kind == "memory" else s for s in kept)
    return replace(accelerator, storages=rates)


def _stands_in(accelerator: Accelerator) -> bool:
    """Return whether code that runs natively is computed by a CPU in place of the machine: by one
    that serves it, or by threads in place of cores that execute functions in step."""
    tools = accelerator.toolchain
    return accelerator.server is not None or (tools is not None and bool(tools.team))
