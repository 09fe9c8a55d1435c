"""What becomes of a kernel on a machine: instruction, how much of it is used, what is executed."""

from dataclasses import dataclass
from math import prod

from executed.products import largest
from isamap.diagnostics import NoMappingError, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.mapping.compose.composed import Composed
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Result
from isamap.pipeline.sizes import sample_symbols, variable_extents
from isamap.targets.count import count_instructions, way_to_count


@dataclass(frozen=True, slots=True)
class Cell:
    """A kernel on a machine.

    ``used`` is the part of the instruction's elements that does the kernel's work, tails included.
    ``executed`` are instructions of the whole call for each iteration of the kernel's statement, or
    cycles where the machine is simulated; None where nothing counts.  ``fewest`` are those of the
    calls alone if all of the instruction were used.  ``scalar`` ones have one element.
    """

    kernel: str
    instruction: str
    used: float
    executed: float | None
    fewest: float
    scalar: bool


def cell(kernel: Kernel, machine: Accelerator) -> Cell | None:
    """Map a kernel, count what it executes, and tell; None if nothing computes it."""
    try:
        result = map_kernel(kernel, machine, Options(prove=False))
    except (NoMappingError, ScheduleError):
        return None
    chosen = result.mappings[largest(result)]
    entry = chosen.matching.needle.entry
    lanes = prod(axis.extent for axis in chosen.matching.needle.axes)
    simulated = machine.toolchain is None
    parts = [part.entry for part in entry.parts] if isinstance(entry, Composed) else [entry]
    length = float(entry.throughput) if simulated else sum(part.length for part in parts)
    work = _work(kernel, result)
    count = _cycles(kernel, machine) if simulated else _executed(result, machine)
    executed = None if count is None else count / work
    name, used = chosen.matching.needle.name, chosen.utilisation
    return Cell(kernel.name, name, used, executed, length / lanes, lanes == 1)


def _work(kernel: Kernel, result: Result) -> int:
    symbols = sample_symbols(kernel, result.lowered) or {}
    return sum(prod(variable_extents(kernel, s, symbols).values()) for s in kernel.statements)


def _executed(result: Result, machine: Accelerator) -> int | None:
    if way_to_count(machine) is None or result.source is None:
        return None
    symbols = sample_symbols(result.kernel, result.lowered) or {}
    arrays = random_inputs(result.kernel, symbols, 0)
    return count_instructions(result.source, machine, arrays, symbols).instructions


def _cycles(kernel: Kernel, machine: Accelerator) -> float | None:
    return make_report(kernel, machine, Options(prove=False)).execution.cycles
