"""How a mapped kernel can be run: natively, measured, as a program, on the simulator, or not."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from isamap.hw.accelerator import Accelerator
from isamap.hw.native import remedy, runnable
from isamap.ir.nodes import Kernel
from isamap.lower.cost import estimate
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Scope,
    Setting,
    Token,
)
from isamap.pipeline.result import Result, Way
from isamap.pipeline.sizes import array_bytes

# What simulating and running may cost unasked: instruction calls, seconds, bytes of arrays.
SIMULATED_CALLS = 500_000
RUN_SECONDS = 120.0
ARRAY_BYTES = 4 << 30
# A run holds its inputs, its outputs, copies for the worker, and what the interpreter computes.
_COPIES = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to run, and the reason where it is not the native one."""

    way: Way
    reason: str = ""
    hint: str = ""


def choose_way(result: Result, symbols: Mapping[str, int], simulate: bool) -> Choice:
    """Return how to run a mapped kernel at given sizes."""
    native = native_choice(result.accelerator, result.no_c)
    return affordable(native, result.kernel, result.lowered, result.accelerator, symbols, simulate)


def affordable(
    native: Choice,
    kernel: Kernel,
    lowered: LoweredKernel,
    accelerator: Accelerator,
    symbols: Mapping[str, int],
    simulate: bool,
) -> Choice:
    """Return ``native``, or ``none`` where that way takes too long or too much at given sizes."""
    if (size := array_bytes(kernel, symbols)) > min(ARRAY_BYTES, _memory() // _COPIES):
        return Choice("none", f"its arrays take {size / (1 << 30):.3g} GiB")
    if simulate:
        return Choice("simulated", "--simulate asks for it")
    if native.way != "simulated":
        seconds = estimate(lowered, accelerator, symbols).cycles / float(accelerator.clock)
        if seconds > RUN_SECONDS:
            return Choice("none", f"it is estimated to run for {seconds:.3g} s")
        return native
    calls = call_count(lowered, symbols)
    if calls <= SIMULATED_CALLS:
        return native
    return Choice(
        "none",
        f"{native.reason}, and simulating {calls:.3g} instructions takes long",
        native.hint or "--simulate does it all the same",
    )


def native_choice(accelerator: Accelerator, no_c: str = "") -> Choice:
    """Return how code runs where it can, else ``simulated`` and why.

    That is ``measured`` where the description names a command for it, else ``program`` where it
    names a runner, else ``native``.
    """
    if no_c:
        return Choice("simulated", no_c)
    if not accelerator.trusted:
        reason = f"the description of '{accelerator.name}' does not ship with isamap"
        return Choice("simulated", reason, "--trust compiles and runs it")
    if missing := runnable(accelerator):
        return Choice("simulated", missing, remedy(accelerator))
    toolchain = accelerator.toolchain
    assert toolchain is not None, "runnable() asks for one"
    if toolchain.measure:
        return Choice("measured")
    return Choice("program" if toolchain.runner else "native")


def run_seconds(result: Result, symbols: Mapping[str, int]) -> float:
    """Return the estimated seconds of one native run."""
    cycles = estimate(result.lowered, result.accelerator, symbols).cycles
    return cycles / float(result.accelerator.clock)


def _memory() -> int:
    """Return the bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def call_count(lowered: LoweredKernel, symbols: Mapping[str, int]) -> float:
    """Return at most how many instructions a lowered kernel executes.

    A thousand copied elements count as one: the simulator copies them as arrays.
    """
    return _count(lowered.code, symbols)


def _count(nodes: tuple[Node, ...], symbols: Mapping[str, int]) -> float:
    total = 0.0
    for node in nodes:
        match node:
            case Call():
                total += 1
            case Loop(counter, count, body):
                # Counts may depend on outer counters; their first iteration is the fullest.
                times = count.evaluate(symbols)
                total += times * _count(body, {**symbols, counter: 0})
            case Guard(_, body, otherwise):
                total += max(_count(body, symbols), _count(otherwise, symbols))
            case Scope(_, body):
                total += _count(body, symbols)
            case Prefetch() | Token() | Setting():
                pass
            case Copy():
                total += prod(count.evaluate(symbols) for _, count in node.counters) / 1000
    return total
