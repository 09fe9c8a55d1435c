"""How near a schedule is to what its machine can do, by the analytical model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import statement_kernel, statements_ahead
from isamap.ir.nodes import Kernel
from isamap.lower.cost import estimate
from isamap.lower.nodes import LoweredKernel
from isamap.model.bridge import Modelled, least, model_of
from isamap.model.exact import Loop, judged
from isamap.pipeline.result import Limits
from isamap.pipeline.sizes import variable_extents
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.shape import read_shape
from isamap.schedule.tilings import expected, loops_of, proved, tilings
from isamap.schedule.treatment import inputs


@dataclass(frozen=True, slots=True)
class Bound:
    """Cycles that no schedule undercuts, on all threads together, and what limits it."""

    cycles: float
    by: str


def limits(
    kernel: Kernel,
    hardware: Accelerator,
    schedule: Schedule,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    threads: int,
    cycles: float | None,
) -> Limits | None:
    """Return what the model says of a schedule of a kernel, whose extents are bound.

    ``lowered`` is what the schedule comes to, ``cycles`` what it takes.  None where nothing
    is left to a call.
    """
    first = statements_ahead(kernel)
    models: list[Modelled] = []
    own = tiled = 0.0
    optimum: float | None = 0.0
    lowest = 0.0
    for number, scheduled in enumerate(schedule.statements):
        if number in first:
            continue
        modelled = _modelled(kernel, hardware, scheduled, symbols)
        models.append(modelled)
        if scheduled.within is not None or not modelled.machine.memories:
            own += max(modelled.limits.values())
            tiled += max(modelled.limits.values())
            continue
        loops = _loops(scheduled)
        mine = expected(modelled, judged(modelled.nest, modelled.machine, loops))
        own += mine
        chain = proved(modelled)
        reached = [mine, *_tiled(kernel, number, hardware, scheduled)]
        if chain is None:
            optimum = None
        else:
            optimum = None if optimum is None else optimum + chain.cycles
            lowest += chain.lowest
            best = loops_of(chain, modelled.nest, ())
            reached.append(expected(modelled, judged(modelled.nest, modelled.machine, best)))
        tiled += min(reached)
    if not models:
        return None
    bound = _bound(kernel, models, hardware, lowered, symbols, threads)
    part = bound.cycles / cycles if cycles else None
    known = optimum is not None and lowest > 0
    return Limits(
        bound.cycles,
        bound.by,
        own / threads,
        max(tiled / threads, bound.cycles),
        optimum if known else None,
        lowest if known else None,
        part,
    )


def least_cycles(
    kernel: Kernel,
    hardware: Accelerator,
    schedule: Schedule,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    threads: int,
) -> Bound | None:
    """Return the bound of :func:`limits` by itself, None where nothing is left to a call."""
    first = statements_ahead(kernel)
    models = [
        _modelled(kernel, hardware, scheduled, symbols)
        for number, scheduled in enumerate(schedule.statements)
        if number not in first
    ]
    if not models:
        return None
    return _bound(kernel, models, hardware, lowered, symbols, threads)


def _bound(
    kernel: Kernel,
    models: Sequence[Modelled],
    hardware: Accelerator,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    threads: int,
) -> Bound:
    """Return what limits statements by their mappings, and no more than the code has to do.

    What is finished in the registers of another statement may be done there by other instructions
    than those of its mapping, or in larger tiles.
    """
    local = {buffer.name for buffer in kernel.buffers if buffer.role == "local"}
    parts = least(models, local)
    done = estimate(lowered, hardware, symbols)
    issued = sum(done.instructions.values()) / max(1, hardware.issue)
    for name in {name for own in models for name in own.limits} - {"chain"}:
        code = issued if name == "issue" else done.parts.get(name, 0.0)
        parts[name] = min(parts[name], code)
    by = max(parts, key=lambda name: parts[name])
    return Bound(parts[by] / threads, by)


def _modelled(
    kernel: Kernel, hardware: Accelerator, scheduled: StatementSchedule, symbols: Mapping[str, int]
) -> Modelled:
    extents = variable_extents(kernel, scheduled.mapping.matching.statement, symbols)
    tile = {v: scheduled.mapping.tile.get(v, 1) for v in extents}
    block = {v: -(-max(1, extent) // tile[v]) * tile[v] for v, extent in extents.items()}
    block |= {level.variable: level.step for level in scheduled.levels}
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    values = {**dict(symbols), **extents}
    return model_of(scheduled.mapping, hardware, buffers, values, block, _packed(scheduled))


def _packed(scheduled: StatementSchedule) -> set[str]:
    pairs = zip(inputs(scheduled.mapping), scheduled.operands, strict=True)
    return {access.buffer for (_, access), kind in pairs if kind == "packed"}


def _loops(scheduled: StatementSchedule) -> tuple[Loop, ...]:
    names = [v.name for v in scheduled.mapping.matching.statement.variables]
    return tuple((names.index(level.variable), level.step) for level in scheduled.levels)


def _tiled(
    kernel: Kernel, number: int, hardware: Accelerator, scheduled: StatementSchedule
) -> list[float]:
    """Return the cycles that the model expects of its tilings around a schedule's block."""
    if kernel.symbols:  # they are made for other sizes
        return []
    shape = read_shape(scheduled.mapping)
    steps = {level.variable: level.step for level in scheduled.levels}
    block = {
        v: steps.get(v, -(-max(1, extent) // shape.tile[v]) * shape.tile[v]) // shape.tile[v]
        for v, extent in shape.extents.items()
    }
    alone = statement_kernel(kernel, number)
    found = tilings(shape, alone, hardware, block, _packed(scheduled))
    return [tiling.cycles for tiling in found]
