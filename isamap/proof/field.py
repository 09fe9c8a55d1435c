"""The kernel and its lowered kernel on random inputs: modulo a prime, where nothing rounds.

Two polynomials that are equal at a random point of a large field are equal, but for a probability
of their degree over the field's size (Schwartz and Zippel).  What is no polynomial (``max``, a
cast that cuts, an exponential), and integer types, whose width no field shows, are run in the
declared types besides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from isamap.diagnostics import VerifyError
from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import bind_symbols, inputs_of, outputs_of
from isamap.interp.arithmetic import field
from isamap.interp.compare import compare
from isamap.interp.field import MERSENNE, NotPolynomialError
from isamap.interp.inputs import random_inputs
from isamap.interp.rounding import Values, literal_value
from isamap.interp.run import interpret
from isamap.interp.setup import box_of
from isamap.ir.index import Index
from isamap.ir.nodes import Buffer, Expr, Kernel, Op
from isamap.ir.statements import accesses
from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node
from isamap.sim.lowered import LoweredFault, run_lowered

CALLS = 300_000
"""Instructions that are executed for one run of a check unless more are asked for."""

ITERATIONS = 50_000_000
"""Iterations of the kernel, and elements copied, for one run unless more are asked for."""

_SIZES = (37, 64, 7, 100, 1)
"""Sizes tried for extents without a value: no multiple of a tile first."""


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """What the runs found.

    ``sizes`` are those of the symbols in each run, ``field_runs`` how many of the runs were modulo
    ``prime`` and ``exact_runs`` how many in the declared types.  ``probability`` bounds the chance
    that unequal polynomials passed (1.0 where no run was modulo the prime); ``text`` says where
    they differ, or why fewer runs were made.
    """

    verdict: Literal["agrees", "differs", "not run"]
    prime: int
    seeds: tuple[int, ...]
    sizes: tuple[tuple[tuple[str, int], ...], ...]
    field_runs: int
    exact_runs: int
    probability: float
    text: str


def field_check(
    kernel: Kernel,
    machine: Accelerator,
    lowered: LoweredKernel,
    sizes: Sequence[Mapping[str, int]] | None = None,
    seeds: Sequence[int] = (0, 1),
    calls: int = CALLS,
    iterations: int = ITERATIONS,
) -> FieldCheck:
    """Compare a lowered kernel with its kernel on random inputs, without any tolerance.

    ``sizes`` are values for the kernel's symbols, one mapping a run (default: two that are no
    multiples of tiles).  Runs of more than ``calls`` instructions or ``iterations`` are not made.
    A fault of the lowered kernel (an access outside an array, a register without value) counts as
    a difference.
    """
    chosen = [dict(s) for s in (sizes if sizes is not None else default_sizes(kernel, lowered))]
    fitting = [s for s in chosen if _affordable(kernel, lowered, s, calls, iterations)]
    seeds = tuple(seeds)
    told = tuple(tuple(sorted(s.items())) for s in fitting)
    if not fitting:
        text = f"more than {calls} instructions or {iterations} iterations"
        return FieldCheck("not run", MERSENNE, seeds, (), 0, 0, 1.0, text)
    runs = _Runs(kernel, machine, lowered)
    for symbols in fitting:
        if text := runs.compare(symbols, seeds):
            at = ", ".join(f"{n}={v}" for n, v in symbols.items())
            text = f"{text} (at {at})" if at else text
            return FieldCheck(
                "differs", MERSENNE, seeds, told, runs.in_field, runs.exact, 1.0, text
            )
    return FieldCheck(
        "agrees", MERSENNE, seeds, told, runs.in_field, runs.exact, runs.probability, runs.text
    )


def default_sizes(kernel: Kernel, lowered: LoweredKernel) -> list[dict[str, int]]:
    """Return at most two choices of the symbols under which every buffer has elements."""
    found: list[dict[str, int]] = []
    for size in _SIZES:
        for step in (6, 0):  # Different sizes first: they tell dimensions apart.
            symbols = {name: size + step * n for n, name in enumerate(kernel.symbols)}
            values = bind_symbols(kernel, symbols)
            shapes = [int(e.evaluate(values)) for b in kernel.buffers for e in b.shape]
            required = all(index.evaluate(values) >= 0 for index in lowered.requires)
            if required and min(shapes, default=1) >= 1 and symbols not in found:
                found.append(symbols)
                break
        if len(found) == (2 if kernel.symbols else 1):
            break
    return found


# --- runs ---------------------------------------------------------------------------------------
class _Runs:
    """Runs of both, and what they amount to."""

    def __init__(self, kernel: Kernel, machine: Accelerator, lowered: LoweredKernel) -> None:
        self.kernel, self.machine, self.lowered = kernel, machine, lowered
        self.in_field = self.exact = 0
        self.probability = 1.0
        self.text = ""
        self.types = {b.name: b.dtype for b in kernel.buffers}

    def compare(self, symbols: dict[str, int], seeds: Sequence[int]) -> str:
        """Return where the two differ at these sizes, or nothing."""
        polynomial = True
        missed = 1.0
        for seed in seeds:
            arrays = self._elements(symbols, seed)
            try:
                expected = interpret(self.kernel, arrays, symbols, arithmetic=field())
                actual = run_lowered(
                    self.lowered,
                    self.machine,
                    arrays,
                    symbols,
                    kernel=self.kernel,
                    arithmetic=field(),
                )
            except NotPolynomialError as error:
                self.text = f"run in the declared types only: {error}"
                polynomial = False
                break
            except LoweredFault as fault:
                return str(fault)
            self.in_field += 1
            outputs = 0
            for buffer in outputs_of(self.kernel):
                wrong = np.argwhere(expected[buffer.name] != actual[buffer.name])
                outputs += expected[buffer.name].size
                if len(wrong):
                    place = ", ".join(map(str, wrong[0]))
                    return f"{buffer.name}[{place}] is another polynomial"
            missed *= min(1.0, outputs * self._degree(symbols) / MERSENNE)
        if polynomial:
            self.probability = missed if self.probability == 1.0 else max(self.probability, missed)
            if not self._has_integers():
                return ""
        return self._declared(symbols, seeds)

    def _declared(self, symbols: dict[str, int], seeds: Sequence[int]) -> str:
        """Return where the two differ in the declared types: random inputs, then extreme ones."""
        for seed in seeds:
            arrays = random_inputs(self.kernel, symbols, seed)
            for inputs in (arrays, self._extremes(arrays, seed)):
                if text := self._differ(inputs, symbols):
                    return text
        return ""

    def _differ(self, arrays: Mapping[str, Values], symbols: dict[str, int]) -> str:
        try:
            expected = interpret(self.kernel, arrays, symbols)
        except VerifyError:
            return ""  # Such inputs are not legal: an index that is read would be out of bounds.
        try:
            actual = run_lowered(self.lowered, self.machine, arrays, symbols, kernel=self.kernel)
        except LoweredFault as fault:
            return str(fault)
        self.exact += 1
        found = compare(self.kernel, arrays, expected, actual, symbols)
        return "" if found.ok else found.text

    def _elements(self, symbols: dict[str, int], seed: int) -> dict[str, Values]:
        """Return elements of the field for every input; indices that are read stay in bounds."""
        arrays = random_inputs(self.kernel, symbols, seed)
        generator = np.random.default_rng([seed, 1])
        indexed = _read_as_index(self.kernel)
        return {
            name: array
            if name in indexed
            else generator.integers(0, MERSENNE, array.shape, np.uint64)
            for name, array in arrays.items()
        }

    def _extremes(self, arrays: Mapping[str, Values], seed: int) -> dict[str, Values]:
        """Return inputs that are the least or the greatest that integer buffers may hold."""
        generator = np.random.default_rng([seed, 2])
        indexed = _read_as_index(self.kernel)
        found = dict(arrays)
        for buffer in inputs_of(self.kernel):
            if buffer.dtype.is_float or buffer.name in indexed:
                continue
            least, most = value_range(buffer)
            array = arrays[buffer.name]
            ends = np.array([least, most]).astype(buffer.dtype.numpy)
            found[buffer.name] = ends[generator.integers(0, 4, array.shape) > 0]
        return found

    def _has_integers(self) -> bool:
        return any(not dtype.is_float for dtype in self.types.values())

    def _degree(self, symbols: Mapping[str, int]) -> int:
        """Return the degree of the outputs in the inputs; a quotient counts by both its parts."""
        values = bind_symbols(self.kernel, symbols)
        degrees = {b.name: 1 for b in inputs_of(self.kernel)}
        for statement in self.kernel.statements:
            degree = _degree(statement.value, degrees)
            if statement.reduction == "*=":
                degree *= prod(count for _, _, count in box_of(statement, values))
            name = statement.target.buffer
            degrees[name] = max(degrees.get(name, 0), degree)
        return max([1, *degrees.values()])


def value_range(buffer: Buffer) -> tuple[int, int]:
    """Return the least and greatest value of an integer buffer: declared, or its type's."""
    if buffer.values is None:
        return buffer.dtype.lowest, buffer.dtype.highest
    low, high = (literal_value(v) for v in buffer.values)
    return int(low), int(high)


def _degree(expr: Expr, degrees: Mapping[str, int]) -> int:
    match expr:
        case Op(op, args, _):
            parts = [_degree(arg, degrees) for arg in args]
            match op:
                case "*" | "/":
                    return sum(parts)
                case "fma":
                    return max(parts[0] + parts[1], parts[2])
                case _:
                    return max(parts)
        case _:
            return max((degrees.get(a.buffer, 1) for a in accesses(expr)), default=0)


def _read_as_index(kernel: Kernel) -> frozenset[str]:
    """Return the buffers from which indices are read."""
    return frozenset(
        read.buffer
        for statement in kernel.statements
        for access in (statement.target, *accesses(statement.value))
        for index in access.indices
        for read in index.reads
    )


# --- how much it takes --------------------------------------------------------------------------
def _affordable(
    kernel: Kernel,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    calls: int,
    iterations: int,
) -> bool:
    values = bind_symbols(kernel, symbols)
    points = sum(
        prod(count for _, _, count in box_of(statement, values)) for statement in kernel.statements
    )
    if points > iterations:
        return False
    made, copied = _work(lowered.body, dict(values))
    return made <= calls and copied <= iterations


def _work(nodes: Sequence[Node], values: dict[str, int]) -> tuple[int, int]:
    """Return instructions and copied elements; counts that depend on counters are taken at 0."""
    made = copied = 0
    for node in nodes:
        if isinstance(node, Call):
            made += 1
        elif isinstance(node, Copy):
            copied += prod(_number(count, values) for _, count in node.counters)
            made += 1
        elif isinstance(node, Loop):
            count = max(0, _number(node.count, values))
            below = _work(node.body, {**values, node.counter: 0})
            made, copied = made + count * below[0] + 1, copied + count * below[1]
        elif isinstance(node, Guard):
            both = [_work(part, values) for part in (node.body, node.otherwise)]
            made, copied = made + max(b[0] for b in both) + 1, copied + max(b[1] for b in both)
        else:
            below = _work(node.body, values)
            made, copied = made + below[0], copied + below[1]
    return made, copied


def _number(index: Index, values: Mapping[str, int]) -> int:
    return int(index.evaluate(values, lambda _buffer, _indices: 0))
