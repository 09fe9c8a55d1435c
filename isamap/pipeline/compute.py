"""A kernel computed on arrays with the mapped code: ``isamap run``."""

from collections.abc import Mapping

import numpy as np

from isamap.diagnostics import ArgumentsError, LimitError, fail
from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import check_values
from isamap.interp.inputs import random_inputs
from isamap.interp.reads import check_reads
from isamap.ir.nodes import Kernel
from isamap.pipeline.arrays import check_shapes, typed_arrays
from isamap.pipeline.execute import build, execute
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Clock, Options, Tell, silent
from isamap.pipeline.result import Execution
from isamap.pipeline.sizes import check_addressable, infer_symbols
from isamap.pipeline.way import choose_way


def compute(
    kernel: Kernel,
    hardware: Accelerator,
    given: Mapping[str, np.ndarray] | None,
    options: Options,
    tell: Tell = silent,
) -> Execution:
    """Map a kernel and compute it on given arrays, or on random ones.

    Raises ArgumentsError for arrays that do not fit, NoMappingError, ToolError, and LimitError when
    the only way to run is a simulation that takes too long.
    """
    check_addressable(kernel)
    if given is None:
        if kernel.symbols:
            name = kernel.symbols[0]
            text = f"extent {name} of kernel '{kernel.name}' has no value"
            raise ArgumentsError(fail("E712", text, hint=f"give one, --set {name}=64"))
        symbols: dict[str, int] = {}
        arrays = random_inputs(kernel, symbols, options.seed)
    else:
        arrays = typed_arrays(kernel, given)
        symbols = infer_symbols(kernel, arrays)
        check_shapes(kernel, arrays, symbols)
        check_values(kernel, arrays)
        check_reads(kernel, arrays, symbols)
    result = map_kernel(kernel, hardware, options, tell)
    choice = choose_way(result, symbols, options.simulate)
    if choice.way == "none":
        raise LimitError(fail("E751", f"not run: {choice.reason}", hint=choice.hint or None))
    clock = Clock(tell)
    built = build(result, choice, clock)
    return execute(result, choice, built, arrays, symbols, options.threads, clock, timed=False)
