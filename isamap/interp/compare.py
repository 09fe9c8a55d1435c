"""Comparison of results with the interpreter's, with a bound that is derived, not chosen.

The bound is that of the types, the number of terms and the magnitudes of the data: an evaluation in
another order, or with fused multiply-adds, stays within it; a wrong element does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from isamap.interp.arguments import bind_symbols, outputs_of
from isamap.interp.bounded import Bounded
from isamap.interp.cells import size_of
from isamap.interp.exactness import fixed_outputs
from isamap.interp.points import interpret_at
from isamap.interp.rounding import F64, Values
from isamap.interp.run import interpret
from isamap.interp.setup import box_of, split
from isamap.ir.nodes import Buffer, Kernel

_TOLD = 64
"""Elements of which the true bound is derived to tell one, where a cheaper one lets all pass."""

_VAGUE = 1 / 16
"""Bounds that are more than this of a usual result let wrong ones pass."""

_FEW, _SAMPLE = 32, 1 << 16
"""Elements of which none are told to be alike, and those that are looked at."""

_WHOLE_COST = 1 << 24
"""Iterations up to which bounds are computed for all elements rather than for the doubtful ones."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found.

    ``where`` is the element of ``buffer`` that uses most of its bound, of some that may, with both
    values, their ``difference`` and its ``bound``; ``compared`` counts elements,
    ``unbounded`` those without a finite bound (they pass).  It is ``vague`` where the bound is
    about as large as the results.  ``alike`` is the part of the expected elements that are one of
    two values, as where nearly all are clipped.  ``text`` says all but that in a line.
    """

    ok: bool
    buffer: str
    where: tuple[int, ...]
    expected: float | int
    actual: float | int
    difference: float
    bound: float
    compared: int
    unbounded: int
    text: str
    vague: bool = False
    alike: float = 0.0


def compare(
    kernel: Kernel,
    arrays: Mapping[str, Values],
    expected: Mapping[str, Values],
    actual: Mapping[str, Values],
    symbols: Mapping[str, int] | None = None,
    exact: bool = False,
    computed: Kernel | None = None,
    error: Fraction | None = None,
    roundoffs: int = 1,
) -> Comparison:
    """Compare all outputs of a kernel with the interpreter's; ``arrays`` are the inputs.

    Integers must be equal, and so must floats if ``exact``, or if no evaluation rounds.  Arrays of
    ``actual`` may be flat.  ``computed`` is the kernel that gave them, where that is another one
    which equals this one in exact arithmetic: then its roundings count as well.  ``error`` is a
    relative error that products of floats may have besides; its sums and products may be off by
    so many ``roundoffs`` each.  Returns the worst buffer's finding.
    """
    values = bind_symbols(kernel, symbols or {}, arrays)
    run = _Run(kernel, computed or kernel, arrays, values, error, roundoffs)
    found = []
    for buffer in outputs_of(kernel):
        wanted = expected[buffer.name]
        points = np.stack([i.reshape(-1) for i in np.indices(wanted.shape)], axis=-1)
        points = points.reshape(wanted.size, wanted.ndim)
        got = np.asarray(actual[buffer.name])
        assert got.size == wanted.size, f"{buffer.name} has {wanted.size} elements, not {got.size}"
        found.append(_compare(run, buffer, points, wanted.reshape(-1), got, exact))
    return _merged(found)


def compare_at(
    kernel: Kernel,
    arrays: Mapping[str, Values],
    buffer: str,
    points: Values,
    expected: Values,
    actual: Values,
    symbols: Mapping[str, int] | None = None,
    exact: bool = False,
    computed: Kernel | None = None,
    error: Fraction | None = None,
    roundoffs: int = 1,
) -> Comparison:
    """Compare elements of one output at ``points``, one row of indices each; see compare."""
    values = bind_symbols(kernel, symbols or {}, arrays)
    run = _Run(kernel, computed or kernel, arrays, values, error, roundoffs)
    return _compare(run, kernel.buffer(buffer), points, expected, actual, exact)


def error_bound(
    kernel: Kernel, arrays: Mapping[str, Values], symbols: Mapping[str, int] | None = None
) -> dict[str, Values]:
    """Return for each output how far two legitimate results may be apart, element by element."""
    found = interpret(kernel, arrays, symbols, Bounded(kernel.permissions))
    return {b.name: 2.0 * found[b.name]["e"] for b in outputs_of(kernel)}


@dataclass(frozen=True, slots=True)
class _Run:
    """What was interpreted and what was computed, on which arrays."""

    kernel: Kernel
    computed: Kernel
    arrays: Mapping[str, Values]
    symbols: Mapping[str, int]
    error: Fraction | None
    roundoffs: int

    def is_fixed(self, name: str) -> bool:
        """Return whether every legitimate evaluation gives a buffer the same values."""
        kernels = dict.fromkeys((self.kernel, self.computed))
        return not self.error and all(
            name in fixed_outputs(kernel, self.arrays, self.symbols) for kernel in kernels
        )

    def bounds(self, buffer: Buffer, points: Values, chosen: Values) -> Values:
        """Return the bounds of chosen elements: the errors of both computations together."""
        if not len(chosen):
            return np.zeros(0)
        first = self._errors(self.kernel, buffer, points, chosen)
        if self.computed is self.kernel and self.roundoffs == 1:
            return first + first
        return first + self._errors(self.computed, buffer, points, chosen, self.roundoffs)

    def _errors(
        self, kernel: Kernel, buffer: Buffer, points: Values, chosen: Values, roundoffs: int = 1
    ) -> Values:
        """Return how far any evaluation of a kernel is from the exact one at chosen elements."""
        arithmetic = Bounded(kernel.permissions, float(self.error or 0), roundoffs)
        cost = sum(size_of(box_of(s, self.symbols)) for s in kernel.statements)
        if cost <= _WHOLE_COST and len(chosen) * 16 > len(points):
            whole = interpret(kernel, self.arrays, self.symbols, arithmetic)[buffer.name]
            return np.asarray(whole["e"][tuple(points[chosen].T)]).reshape(-1)
        name, at = buffer.name, points[chosen]
        found = interpret_at(kernel, self.arrays, self.symbols, name, at, arithmetic)
        return np.asarray(found["e"])


def _compare(
    run: _Run,
    buffer: Buffer,
    points: Values,
    expected: Values,
    actual: Values,
    exact: bool,
) -> Comparison:
    wanted, got = expected.reshape(-1), actual.reshape(-1)
    if not len(wanted):
        return Comparison(True, buffer.name, (), 0, 0, 0.0, 0.0, 0, 0, "no elements")
    differs = ~_same(wanted, got)
    exact = exact or not differs.any() or run.is_fixed(buffer.name)
    with np.errstate(all="ignore"):
        difference = np.where(differs, np.abs(got.astype(F64) - wanted.astype(F64)), 0.0)
        difference = np.where(
            np.isnan(difference) | (differs & (difference == 0)), np.inf, difference
        )
    bound = np.zeros(len(wanted))
    if not exact:
        bound = _quick_bound(run.kernel, run.symbols, buffer, wanted)
        # The elements whose true bounds are derived; those of the others are less, and enough.
        doubtful = difference > bound
        with np.errstate(all="ignore"):
            share = np.where((difference == 0) | doubtful, 0.0, difference / bound)
        near = np.argsort(share)[-_TOLD:]
        doubtful[near[difference[near] > 0]] = True
        chosen = np.flatnonzero(doubtful)
        bound[chosen] = run.bounds(buffer, points, chosen)
        difference = np.where(doubtful, difference, 0.0)
    wrong = difference > bound
    return _finding(buffer, points, wanted, got, difference, bound, wrong, exact)


def _finding(
    buffer: Buffer,
    points: Values,
    wanted: Values,
    got: Values,
    difference: Values,
    bound: Values,
    wrong: Values,
    exact: bool,
) -> Comparison:
    with np.errstate(all="ignore"):
        share = np.where(difference == 0, 0.0, difference / bound)
    share = np.where(wrong & np.isnan(share), np.inf, np.where(np.isnan(share), 0.0, share))
    # Of several that are infinitely wrong, the one that is furthest off.
    worst = int(np.lexsort((difference, share, wrong))[-1])
    place = tuple(int(i) for i in points[worst])
    unbounded = int((np.isinf(bound) & (difference > 0)).sum())
    name = f"{buffer.name}[{', '.join(map(str, place))}]"
    count = len(wanted)
    if wrong.any():
        text = (
            f"{name} is {got[worst]}, not {wanted[worst]}: off by {difference[worst]:.3g}, "
            f"at most {bound[worst]:.3g} is allowed ({int(wrong.sum())} of {count} are wrong)"
        )
    elif exact or not difference.any():
        text = "bit for bit"
    else:
        text = (
            f"within the error bound of the types: {name} is off by {difference[worst]:.3g}, "
            f"at most {bound[worst]:.3g} is allowed"
        )
        if unbounded:
            text += f"; {unbounded} of {count} have no finite bound"
    return Comparison(
        not wrong.any(),
        buffer.name,
        place,
        wanted[worst].item(),
        got[worst].item(),
        float(difference[worst]),
        float(bound[worst]),
        count,
        unbounded,
        text,
        unbounded > 0 or float(bound[worst]) > _VAGUE * _usual(wanted),
        _alike(wanted),
    )


def _alike(values: Values) -> float:
    """Return the part of some values that are one of two; of many a sample, of few none."""
    if values.dtype.kind == "b" or len(values) < _FEW:
        return 0.0
    some = values[:: -(-len(values) // _SAMPLE)]
    _, counts = np.unique(some.astype(F64), return_counts=True)
    return float(np.sort(counts)[-2:].sum() / len(some))


def _usual(values: Values) -> float:
    """Return the median magnitude of those that are neither zero nor infinite; infinity if none
    is.
    """
    size = np.abs(values.astype(F64))
    size = size[np.isfinite(size) & (size > 0)]
    return float(np.median(size)) if len(size) else float("inf")


def _merged(found: list[Comparison]) -> Comparison:
    def badness(c: Comparison) -> tuple[bool, float]:
        return not c.ok, c.difference / c.bound if c.bound else float(c.difference > 0)

    worst = max(found, key=badness)
    compared, unbounded = sum(c.compared for c in found), sum(c.unbounded for c in found)
    vague, alike = any(c.vague for c in found), min(c.alike for c in found)
    return replace(worst, compared=compared, unbounded=unbounded, vague=vague, alike=alike)


def _same(a: Values, b: Values) -> Values:
    equal = np.asarray(a == b)
    if a.dtype.kind in "iub":
        return equal
    return np.asarray(equal | (np.isnan(a.astype(F64)) & np.isnan(b.astype(F64))))


def _quick_bound(
    kernel: Kernel, symbols: Mapping[str, int], buffer: Buffer, wanted: Values
) -> Values:
    """Return a bound that is never above the true one, and costs nothing.

    Of a sum of n terms the true bound is at least 2 n u times the magnitude of the sum itself.
    """
    zero = np.zeros(len(wanted))
    writers = [s for s in kernel.statements if s.target.buffer == buffer.name]
    if len(writers) != 1 or writers[0].reduction != "+=" or not buffer.dtype.is_float:
        return zero
    _, reductions = split(writers[0], box_of(writers[0], symbols))
    bound = size_of(reductions) * float(buffer.dtype.epsilon) * np.abs(wanted.astype(F64))
    return np.asarray(np.where(np.isfinite(bound), bound, 0.0))
