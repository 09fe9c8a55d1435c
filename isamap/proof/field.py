"""The kernel and its lowered kernel on random inputs: modulo a prime, where nothing rounds.

Two polynomials that are equal at a random point of a large field are equal, but for a probability
of their degree over the field's size (Schwartz and Zippel).  Operations that are no polynomials
(a bit operation, an exponential) are functions of which only the laws that a compiler may use are
known (:mod:`isamap.interp.free`); kernels with these, and integer types, whose width no field
shows, are run in the declared types besides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from time import process_time
from typing import Literal

import numpy as np

from isamap.diagnostics import ArgumentsError, VerifyError
from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import bind_symbols, inputs_of, outputs_of
from isamap.interp.arithmetic import Arithmetic, free
from isamap.interp.compare import compare
from isamap.interp.field import MERSENNE
from isamap.interp.free import Free
from isamap.interp.inputs import random_inputs
from isamap.interp.rounding import Values, literal_value
from isamap.interp.run import interpret
from isamap.interp.setup import box_of
from isamap.ir.dtype import DType
from isamap.ir.nodes import Buffer, Expr, Kernel, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses
from isamap.lower.nodes import LoweredKernel
from isamap.proof.sizes import MOST, covering_sizes
from isamap.proof.timed import OutOfTimeError, Timed
from isamap.proof.work import is_affordable
from isamap.sim.lowered import LoweredFault, run_lowered

CALLS = 300_000
"""Instructions that are executed for one run of a check unless more are asked for."""

ITERATIONS = 50_000_000
"""Iterations of the kernel, and elements copied, for one run unless more are asked for."""

_POLYNOMIAL = frozenset({"+", "-", "*", "neg", "fma", "cast", "/", "max", "min"})
"""Operations that are polynomials in the free field, where ``max`` and ``min`` are products; a
quotient is equal to another one if two polynomials are."""


_RING = frozenset({"+", "-", "*", "neg", "fma", "cast"})
"""Operations of which the field has every law, on floats."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A kernel that was rewritten, and the relative error of products that the rules add."""

    kernel: Kernel
    error: Fraction | None


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """What the runs found.

    ``sizes`` are those of the symbols in each run, ``field_runs`` how many of the runs were modulo
    ``prime`` and ``exact_runs`` how many in the declared types.  ``probability`` bounds the chance
    that unequal polynomials passed; ``text`` says where they differ, why no run was made, or which
    operations are no polynomials.
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
    written: Kernel | None = None,
    rewritten: Rewritten | None = None,
    most: int = MOST,
    until: float | None = None,
) -> FieldCheck:
    """Compare a lowered kernel with its kernel on random inputs, without any tolerance.

    ``sizes`` are values for the kernel's symbols, one mapping a run (default: up to ``most`` under
    which all code is executed).  Runs of more than ``calls`` instructions or ``iterations`` are not
    made.
    ``written`` is what the kernel was rewritten from by laws that the field lacks: the two are then
    compared in the declared types.  ``rewritten`` says what the code is of where it is not of the
    kernel itself: roundings in that count in the declared types, and where a rule rounds constants,
    each is read in the field as the fraction that it stands for.
    ``until`` is the time of this process at which all runs end; what was not finished then was not
    run.  A fault of the lowered kernel (an access outside an array, a register without value)
    counts as a difference.
    """
    if sizes is None:
        fitting = covering_sizes(kernel, lowered, calls, iterations, most)
    else:
        every = [dict(s) for s in sizes]
        fitting = [s for s in every if is_affordable(kernel, lowered, s, calls, iterations)]
    seeds = tuple(seeds)
    told = tuple(tuple(sorted(s.items())) for s in fitting)
    if not fitting:
        text = f"more than {calls} instructions or {iterations} iterations"
        return FieldCheck("not run", MERSENNE, seeds, (), 0, 0, 1.0, text)
    runs = _Runs(kernel, machine, lowered, written, rewritten, until)
    for symbols in fitting:
        try:
            text = runs.compare(symbols, seeds)
        except OutOfTimeError:
            return no_time_left(seeds)
        if text:
            at = ", ".join(f"{n}={v}" for n, v in symbols.items())
            text = f"{text} (at {at})" if at else text
            return FieldCheck(
                "differs", MERSENNE, seeds, told, runs.in_field, runs.exact, 1.0, text
            )
    if not runs.in_field and not runs.exact:
        text = "indices that the kernel computes lie outside with all inputs that were tried"
        return FieldCheck("not run", MERSENNE, seeds, (), 0, 0, 1.0, text)
    told_too = []
    if runs.computes_indices:
        told_too.append("indices are computed, which have no meaning modulo a prime")
    if runs.fractions:
        told_too.append("rounded constants are read as the fractions that they stand for")
    if any(b.dtype.kind == "bool" for b in inputs_of(kernel)):
        told_too.append("truth values of inputs are 0 or 1 at random")
    if runs.free_functions:
        told_too.append(f"{', '.join(runs.free_functions)} known by general laws only")
    if written is not None:
        told_too.append("as rewritten, by laws that its lemmas prove and the prime field lacks")
    text = "; ".join(told_too)
    return FieldCheck(
        "agrees", MERSENNE, seeds, told, runs.in_field, runs.exact, runs.probability, text
    )


def no_time_left(seeds: Sequence[int]) -> FieldCheck:
    """Return that it is not known whether kernel and code agree."""
    text = "no time was left; isamap prove takes more"
    return FieldCheck("not run", MERSENNE, tuple(seeds), (), 0, 0, 1.0, text)


def same_in_field(
    kernel: Kernel,
    other: Kernel,
    sizes: Sequence[Sequence[tuple[str, int]]],
    seeds: Sequence[int],
    fractions: bool = False,
    until: float | None = None,
) -> bool:
    """Return whether two kernels with the same buffers are equal by the laws of the field.

    With ``fractions``, rounded constants are the fractions that they stand for.  OutOfTimeError if
    this process has taken ``until`` seconds before that is known.
    """
    arithmetic = _arithmetic(kernel, fractions)
    if until is not None:
        arithmetic = Timed(arithmetic, until)
    for symbols in map(dict, sizes):
        for seed in seeds:
            arrays = _elements(kernel, symbols, seed)
            one, two = (interpret(k, arrays, symbols, arithmetic) for k in (kernel, other))
            if any((one[b.name] != two[b.name]).any() for b in outputs_of(kernel)):
                return False
    return True


def has_all_laws(statement: Statement) -> bool:
    """Return whether the field has every law of a statement: of sums and products of floats.

    It lacks some of maxima, which sums go into, and of integers, which wrap.
    """
    return statement.reduction in ("=", "+=", "*=") and _is_of_floats(statement.value)


def _is_of_floats(expr: Expr) -> bool:
    if not expr.dtype.is_float:
        return False
    return not isinstance(expr, Op) or (expr.op in _RING and all(map(_is_of_floats, expr.args)))


@dataclass(frozen=True, slots=True)
class _Unsaturated(Free):
    """Where only instructions saturate and the kernel does not, it must never take effect.

    Whether it may is another claim's business, and is seen in the declared types.
    """

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that stands for an operation."""
        return (lambda x: x) if op == "sat" else Free.operation(self, op, arguments, result)


def _arithmetic(kernel: Kernel, fractions: bool) -> Arithmetic:
    if "sat" in free_functions(kernel):
        return free(fractions=fractions)
    return _Unsaturated(fractions=fractions)


def _elements(kernel: Kernel, symbols: dict[str, int], seed: int) -> dict[str, Values]:
    """Return elements of the field for every input; indices that are read stay in bounds.

    Truth values are 0 or 1 here, too: of others no operation on them has its laws.
    """
    arrays = random_inputs(kernel, symbols, seed)
    generator = np.random.default_rng([seed, 1])
    indexed = _read_as_index(kernel)
    ends = {b.name: 2 if b.dtype.kind == "bool" else MERSENNE for b in inputs_of(kernel)}
    return {
        name: array
        if name in indexed
        else generator.integers(0, ends[name], array.shape, np.uint64)
        for name, array in arrays.items()
    }


# --- runs ---------------------------------------------------------------------------------------
class _Runs:
    """Runs of both, and what they amount to."""

    def __init__(
        self,
        kernel: Kernel,
        machine: Accelerator,
        lowered: LoweredKernel,
        written: Kernel | None,
        rewritten: Rewritten | None,
        until: float | None,
    ) -> None:
        self.kernel, self.machine, self.lowered = kernel, machine, lowered
        self.written, self.rewritten = written, rewritten
        self.fractions = rewritten is not None and rewritten.error is not None
        self.in_field = self.exact = 0
        self.probability = 0.0
        self.free_functions = free_functions(kernel)
        arithmetic = _arithmetic(kernel, self.fractions)
        self.arithmetic = arithmetic if until is None else Timed(arithmetic, until)
        self.until = until
        self.computes_indices = bool(
            _read_as_index(kernel) & {s.target.buffer for s in kernel.statements}
        )
        self.types = {b.name: b.dtype for b in kernel.buffers}

    def compare(self, symbols: dict[str, int], seeds: Sequence[int]) -> str:
        """Return where the two differ at these sizes, or nothing."""
        if self.computes_indices:  # what they are in the field is no place
            return self._declared(symbols, seeds)
        missed = 1.0
        for seed in seeds:
            arrays = _elements(self.kernel, symbols, seed)
            expected = interpret(self.kernel, arrays, symbols, self.arithmetic)
            try:
                actual = run_lowered(
                    self.lowered,
                    self.machine,
                    arrays,
                    symbols,
                    kernel=self.kernel,
                    arithmetic=self.arithmetic,
                )
            except (LoweredFault, ArgumentsError) as fault:
                return str(fault)
            self.in_field += 1
            outputs = 0
            for buffer in outputs_of(self.kernel):
                wrong = np.argwhere(expected[buffer.name] != actual[buffer.name])
                outputs += expected[buffer.name].size
                if len(wrong):
                    place = ", ".join(map(str, wrong[0]))
                    return f"{buffer.name}[{place}] is another function of the inputs"
            missed *= min(1.0, outputs * self._degree(symbols) / MERSENNE)
        self.probability = max(self.probability, missed)
        if self.free_functions or self._has_integers() or self.written is not None:
            return self._declared(symbols, seeds)
        return ""

    def _declared(self, symbols: dict[str, int], seeds: Sequence[int]) -> str:
        """Return where the two differ in the declared types: random inputs, then extreme ones."""
        for seed in seeds:
            arrays = random_inputs(self.kernel, symbols, seed)
            tried = [arrays]
            if self._has_integers():
                tried.append(self._extremes(arrays, seed))
                if seed == seeds[0]:
                    tried += self._ends(arrays)
            for inputs in tried:
                # In the declared types a run takes no time to speak of.
                if self.until is not None and process_time() > self.until:
                    raise OutOfTimeError
                if text := self._differ(inputs, symbols):
                    return text
        return ""

    def _differ(self, arrays: Mapping[str, Values], symbols: dict[str, int]) -> str:
        kernel = self.kernel if self.written is None else self.written
        try:
            expected = interpret(kernel, arrays, symbols)
        except VerifyError:
            return ""  # Such inputs are not legal: an index that is read would be out of bounds.
        try:
            actual = run_lowered(self.lowered, self.machine, arrays, symbols, kernel=kernel)
        except (LoweredFault, ArgumentsError) as fault:
            return str(fault)
        self.exact += 1
        computed = self.rewritten.kernel if self.rewritten else None
        error = self.rewritten.error if self.rewritten else None
        found = compare(kernel, arrays, expected, actual, symbols, computed=computed, error=error)
        return "" if found.ok else found.text

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
            ends = np.array([least, most], buffer.dtype.numpy)
            found[buffer.name] = ends[np.minimum(generator.integers(0, 4, array.shape), 1)]
        return found

    def _ends(self, arrays: Mapping[str, Values]) -> list[dict[str, Values]]:
        """Return inputs that are all the greatest, all the least, or in turn: sums grow longest."""
        indexed = _read_as_index(self.kernel)
        chosen = [
            b for b in inputs_of(self.kernel) if not b.dtype.is_float and b.name not in indexed
        ]
        found = []
        for ends in ((1, 1), (0, 0), (0, 1)):
            held = {b.name: value_range(b)[ends[n % 2]] for n, b in enumerate(chosen)}
            found.append(
                {n: np.full_like(a, held[n]) if n in held else a for n, a in arrays.items()}
            )
        return found

    def _has_integers(self) -> bool:
        return any(not dtype.is_float for dtype in self.types.values())

    def _degree(self, symbols: Mapping[str, int]) -> int:
        """Return the degree of the outputs in the inputs; a quotient counts by both its parts."""
        values = bind_symbols(self.kernel, symbols)
        degrees = {b.name: 1 for b in inputs_of(self.kernel)}
        for statement in self.kernel.statements:
            degree = _degree(statement.value, degrees)
            if statement.reduction in ("*=", "max=", "min="):
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


def free_functions(kernel: Kernel) -> tuple[str, ...]:
    """Return the operations of a kernel that are no polynomials, sorted."""
    found: set[str] = set()

    def visit(expr: Expr) -> None:
        if isinstance(expr, Op):
            if expr.op not in _POLYNOMIAL:
                found.add(expr.op)
            for arg in expr.args:
                visit(arg)

    for statement in kernel.statements:
        visit(statement.value)
        if statement.reduction in ("or=", "and=", "xor="):
            found.add(REDUCTION_OPERATIONS[statement.reduction])
    return tuple(sorted(found))


def _degree(expr: Expr, degrees: Mapping[str, int]) -> int:
    match expr:
        case Op(op, args, _):
            parts = [_degree(arg, degrees) for arg in args]
            match op:
                case "*" | "/" | "max" | "min":
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
