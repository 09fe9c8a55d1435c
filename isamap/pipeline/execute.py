"""Running a mapped kernel: in a worker process, as a program, or on the simulator."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.pipeline.arrays import output_names
from isamap.pipeline.options import Clock
from isamap.pipeline.result import Arrays, Execution, Result
from isamap.pipeline.way import Choice, native_choice

if TYPE_CHECKING:
    from isamap.run.callable import Compiled

# Timed runs after the first: enough for a median, short enough not to be waited for.
_REPEATS = 5


def execute(
    result: Result,
    choice: Choice,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int,
    clock: Clock,
    timed: bool = True,
) -> Execution:
    """Run a mapped kernel on arrays in the chosen way.

    Raises ToolError when the compiler refuses the code, or the code crashes or does not end.
    """
    match choice.way:
        case "native":
            return _native(result, arrays, symbols, threads, clock, timed)
        case "program":
            return _program(result, arrays, symbols, threads, clock)
        case "simulated":
            return _simulated(result, choice, arrays, symbols, clock)
        case "none":
            return Execution("none", choice.reason, choice.hint, symbols)
