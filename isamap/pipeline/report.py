"""The whole path for one kernel: map, build, run, check, report."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from isamap.diagnostics import LimitError, ToolError
from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import inputs_of
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.pipeline.execute import build, execute
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Clock, Options
from isamap.pipeline.predicted import predicted
from isamap.pipeline.prove import QUICK, prove_result
from isamap.pipeline.result import Arrays, Check, Execution, Report, Result
from isamap.pipeline.sizes import Symbols, sample_symbols
from isamap.pipeline.verify import Comparer, prepare_check
from isamap.pipeline.way import Choice, choose_way

DULL = 0.9
"""The part of results of two values from which on a check of them says little."""


def make_report(
    kernel: Kernel,
    hardware: Accelerator,
    options: Options | None = None,
    clock: Clock | None = None,
) -> Report:
    """Map a kernel, run it on random inputs and compare with the reference interpreter.

    Runs natively, by the measuring command, as a program or on the simulator, whichever the
    description and this machine allow; where none is affordable the report says why.  A result that
    differs, a compiler that refuses the code and code that crashes are reported, not raised.
    Raises NoMappingError, and VerifyError for an access that the inputs lead out of bounds.
    """
    options, clock = options or Options(), clock or Clock()
    result = map_kernel(kernel, hardware, options, clock.tell)
    clock.seconds.update(result.seconds)
    certificate = None
    if options.prove:
        with clock.stage("prove"):
            certificate = prove_result(result, QUICK)
    fault = None
    try:
        execution, check, unchecked = _run_and_check(result, options, clock)
    except ToolError as error:
        fault, check, unchecked = error, None, "not run to its end"
        symbols = sample_symbols(result.kernel, result.lowered)
        execution = Execution("failed", error.diagnostics[0].message, symbols=symbols)
    prediction = predicted(result, execution, options.threads)
    seconds = {**clock.seconds, "total": clock.total()}
    return Report(result, execution, check, unchecked, seconds, fault, certificate, prediction)


def _run_and_check(
    result: Result, options: Options, clock: Clock
) -> tuple[Execution, Check | None, str]:
    """Return how it ran, what the check found and, if there was none, why."""
    symbols = sample_symbols(result.kernel, result.lowered)
    if symbols is None:
        names = ", ".join(result.kernel.symbols)
        hint = f"--set {result.kernel.symbols[0]}=64 gives one"
        return Execution("none", f"none of the sizes tried for {names} fits", hint), None, "not run"
    choice = choose_way(result, symbols, options.simulate)
    if choice.way == "none":
        return Execution("none", choice.reason, choice.hint, symbols), None, "not run"
    with clock.stage("inputs"):
        arrays = random_inputs(result.kernel, symbols, options.seed)
    # The compiler is a process of its own: meanwhile, this one interprets.
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(build, result, choice, clock)
        with clock.stage("interpret"):
            compare, unchecked = _expected(result, arrays, symbols, options.seed)
        built = building.result()
    execution = execute(result, choice, built, arrays, symbols, options.threads, clock)
    if compare is None:
        return execution, None, unchecked
    assert execution.outputs is not None
    with clock.stage("compare"):
        check = compare(execution.outputs)
    if check.ok and check.vague:
        check = _again(result, choice, built, symbols, options, clock, check, _ONE_SIGN)
    elif check.ok and check.alike > DULL:
        check = _again(result, choice, built, symbols, options, clock, check, _SMALL)
    return execution, check, ""


@dataclass(frozen=True, slots=True)
class _Other:
    """Inputs on which a check is made again, in words, and what is to be said of the first one."""

    words: str
    one_sign: bool
    small: bool

    def little(self, check: Check) -> str:
        """Return why a check says little, nothing if it does not."""
        if self.one_sign:
            return ", which says little" if check.vague else ""
        part = f"{100 * check.alike:.3g}%"
        return f", but {part} of them are one of two values" if check.alike > DULL else ""


_ONE_SIGN = _Other("inputs without negative numbers", True, False)
_SMALL = _Other("small integers", False, True)


def _again(
    result: Result,
    choice: Choice,
    built: Path | None,
    symbols: Symbols,
    options: Options,
    clock: Clock,
    first: Check,
    other: _Other,
) -> Check:
    """Return a check that says little with another one besides, on other inputs."""
    told = first.text + other.little(first)
    if other.small and all(b.dtype.is_float or b.values for b in inputs_of(result.kernel)):
        return replace(first, text=told)  # they would be the same
    with clock.stage("inputs"):
        arrays = random_inputs(
            result.kernel, symbols, options.seed, one_sign=other.one_sign, small=other.small
        )
    with clock.stage("interpret"):
        compare, _ = _expected(result, arrays, symbols, options.seed)
    if compare is None:
        return replace(first, text=told)
    ran = execute(result, choice, built, arrays, symbols, options.threads, clock, timed=False)
    assert ran.outputs is not None
    with clock.stage("compare"):
        check = compare(ran.outputs)
    if not check.ok:
        return replace(check, text=f"{check.text} (on {other.words})")
    little = other.little(check)
    return replace(
        check, text=f"{told}; on {other.words}, {check.text}{little}{', too' * bool(little)}"
    )


def _expected(
    result: Result, arrays: Arrays, symbols: Symbols, seed: int
) -> tuple[Comparer | None, str]:
    """Return what compares outputs with the interpreter's, or why it takes too long."""
    try:
        return prepare_check(result, arrays, symbols, seed), ""
    except LimitError as error:
        return None, error.diagnostics[0].message
