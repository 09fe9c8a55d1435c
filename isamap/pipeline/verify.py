"""The check of a result against the reference interpreter: of all outputs, or of a sample."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np

from isamap.emit.liveness import calls
from isamap.hw.accelerator import Accelerator
from isamap.interp.compare import Comparison, compare, compare_at
from isamap.interp.points import interpret_at
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.arrays import output_names
from isamap.pipeline.points import sample_points, tile_steps
from isamap.pipeline.result import Arrays, Check, Result
from isamap.pipeline.sizes import Symbols, iterations, shape_of

# Up to this many iterations every output is compared.
WHOLE_ITERATIONS = 1_000_000_000

Comparer: TypeAlias = Callable[[Mapping[str, np.ndarray]], Check]


def prepare_check(result: Result, arrays: Arrays, symbols: Symbols, seed: int) -> Comparer:
    """Interpret the kernel and return the function that compares outputs with what it gave.

    Raises VerifyError for what only the arrays can tell: an index read from them out of bounds.
    """
    total = sum(prod(shape_of(result.kernel, b, symbols)) for b in output_names(result.kernel))
    if iterations(result.kernel, symbols) <= WHOLE_ITERATIONS:
        return _whole(result, arrays, symbols, total)
    return _sampled(result, arrays, symbols, seed, total)


def _computed(result: Result) -> Kernel | None:
    """Return the kernel that was run, where its roundings are others than the written one's.

    Only where products are distributed over sums do rounding errors reach elements that the kernel
    as written would not have let them reach.
    """
    distributed = result.rewritings and result.kernel.permissions.distribute
    return result.rewritings[-1].kernel if distributed else None


def _error(result: Result) -> Fraction | None:
    """Return the relative error of products that the rewritings add."""
    return sum((r.error for r in result.rewritings if r.error is not None), Fraction(0)) or None


def _roundoffs(result: Result) -> int:
    """Return how many unit roundoffs a step may be off: as many as with any instruction used."""
    used = [(result.lowered, result.accelerator)]
    if (server := result.accelerator.server) is not None:
        used += [(service.choice.lowered, server) for service in result.services]
    return max(_most_roundoffs(lowered, machine) for lowered, machine in used)


def _most_roundoffs(lowered: LoweredKernel, machine: Accelerator) -> int:
    entries = {entry.name: entry.numeric for entry in machine.entries}
    names = {call.instruction for call in calls(lowered.code)}
    return max((n.roundoffs for name in names for n in entries[name]), default=1)


def _whole(result: Result, arrays: Arrays, symbols: Symbols, total: int) -> Comparer:
    expected = interpret(result.kernel, arrays, symbols)
    computed, error = _computed(result), _error(result)

    def check(outputs: Mapping[str, np.ndarray]) -> Check:
        found = compare(
            result.kernel,
            arrays,
            expected,
            outputs,
            symbols,
            computed=computed,
            error=error,
            roundoffs=_roundoffs(result),
        )
        return Check(found.ok, found.compared, total, found.text, found.vague, found.alike)

    return check


def _sampled(result: Result, arrays: Arrays, symbols: Symbols, seed: int, total: int) -> Comparer:
    kernel = result.kernel
    points, expected = {}, {}
    computed, error = _computed(result), _error(result)
    for name in output_names(kernel):
        steps = tile_steps(result.mapped, result.schedule, name)
        points[name] = sample_points(shape_of(kernel, name, symbols), steps, seed)
        expected[name] = interpret_at(kernel, arrays, symbols, name, points[name])

    def check(outputs: Mapping[str, np.ndarray]) -> Check:
        found = [
            compare_at(
                kernel,
                arrays,
                name,
                points[name],
                expected[name],
                _elements(outputs[name], shape_of(kernel, name, symbols), points[name]),
                symbols,
                computed=computed,
                error=error,
                roundoffs=_roundoffs(result),
            )
            for name in points
        ]
        worst = max(found, key=_badness)
        vague, alike = any(c.vague for c in found), min(c.alike for c in found)
        return Check(worst.ok, sum(c.compared for c in found), total, worst.text, vague, alike)

    return check


def _elements(array: np.ndarray, shape: tuple[int, ...], points: np.ndarray) -> np.ndarray:
    return np.asarray(array.reshape(shape)[tuple(points.T)]).reshape(len(points))


def _badness(found: Comparison) -> tuple[bool, float]:
    return not found.ok, found.difference / found.bound if found.bound else found.difference
