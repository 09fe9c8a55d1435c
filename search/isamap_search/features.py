"""A candidate in numbers that mean the same for all sizes of one kernel family."""

from collections.abc import Mapping
from math import gcd, log2

from isamap.ir.nodes import Kernel
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.treatment import inputs
from isamap_search.goals import written_calls
from isamap_search.objective import Candidate

# Rows this far apart, or a divisor of it, may share sets of a cache.
_PITCH = 1 << 16


def features(candidate: Candidate, kernel: Kernel, symbols: Mapping[str, int]) -> dict[str, float]:
    """Return numbers by name; one that is missing is 0.

    Statements, variables, buffers and accesses are named by their positions, because names differ
    within a family.  Extents that ``kernel`` leaves open are taken from ``symbols``.
    """
    found = {"calls": log2(1 + written_calls(candidate.lowered.code))}
    for name, cycles in candidate.parts.items():
        found[f"share {name}"] = cycles / candidate.cycles if candidate.cycles else 0.0
    known = {e.name: e.value for e in kernel.extents if e.value is not None}
    values = {**dict(symbols), **known}
    for number, buffer in enumerate(kernel.buffers):
        shape = [int(extent.evaluate(values)) for extent in buffer.shape]
        row = shape[-1] * buffer.dtype.bytes if len(shape) > 1 else 0
        found[f"pitch {number}"] = log2(gcd(row, _PITCH)) if row else 0.0
    for number, scheduled in enumerate(candidate.schedule.statements):
        found |= _statement(f"{number}", scheduled, values)
    return found


def _statement(
    prefix: str, scheduled: StatementSchedule, values: Mapping[str, int]
) -> dict[str, float]:
    mapping = scheduled.mapping
    found = {f"{prefix} {mapping.matching.needle.name}": 1.0}
    for number, variable in enumerate(mapping.matching.statement.variables):
        name, extent = f"{prefix}.{number}", max(1, int(variable.extent.evaluate(values)))
        levels = [n for n, lv in enumerate(scheduled.levels) if lv.variable == variable.name]
        steps = [scheduled.levels[n].step for n in levels]
        found[f"extent {name}"] = log2(extent)
        found[f"tile {name}"] = log2(mapping.tile.get(variable.name, 1))
        # What is not looped over is unrolled whole.
        found[f"block {name}"] = log2(min(steps, default=extent))
        found[f"outer {name}"] = log2(max(steps, default=extent))
        found[f"depth {name}"] = float(max(levels, default=-1))
        found[f"levels {name}"] = float(len(levels))
        if any(scheduled.levels[n].parallel for n in levels):
            found[f"parallel {name}"] = 1.0
    if scheduled.within is not None:
        found[f"{prefix} fused"] = 1.0
    for number, (_, kind) in enumerate(zip(inputs(mapping), scheduled.operands, strict=True)):
        found[f"{kind} {prefix}.{number}"] = 1.0
    return found
