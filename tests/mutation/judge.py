"""What becomes of a mutant: refused by the proof, by the field check, or shown to be the original.

Two things are kept apart: what ``isamap prove`` looks at (:func:`caught`), and what really happens
when a mutant runs in its declared types on other inputs (:func:`changes`), which decides whether
something was missed.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from isamap.hw.accelerator import Accelerator
from isamap.interp.arguments import bind_symbols, inputs_of
from isamap.interp.arithmetic import Arithmetic, free
from isamap.interp.inputs import random_inputs
from isamap.interp.rounding import Values
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses
from isamap.lower.nodes import LoweredKernel
from isamap.proof.ahead import faults_ahead
from isamap.proof.bounds import memory_lemmas
from isamap.proof.claim import Claim, Open
from isamap.proof.demands import code_demands
from isamap.proof.field import ITERATIONS, field_check
from isamap.proof.parallel import parallel_lemmas
from isamap.proof.registers import register_flow
from isamap.proof.sizes import covering_sizes
from isamap.proof.walk import sites
from isamap.proof.work import is_affordable
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.solver.lemma import prove

Arrays = dict[str, Values]

SEEDS = (101, 102, 103)
"""Seeds of the inputs on which mutants are run; the checks use others."""

MOST = 1_000_000
"""Instructions of one run."""

OTHERS = 12
"""How many sizes of each magnitude mutants are run at besides those of the checks."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel, its lowered kernel, and what that gives on some inputs."""

    kernel: Kernel
    machine: Accelerator
    lowered: LoweredKernel
    sizes: tuple[Mapping[str, int], ...]
    results: tuple[tuple[Mapping[str, int], Arrays, Arrays], ...]


def subject(kernel: Kernel, machine: Accelerator, lowered: LoweredKernel) -> Subject:
    """Run a lowered kernel on all inputs that its mutants will be run on."""
    sizes = tuple(covering_sizes(kernel, lowered, MOST, ITERATIONS))
    assert sizes, "the kernel is too large to be run"
    results = []
    runs: list[tuple[Mapping[str, int], Arrays]] = []
    for chosen in sizes:
        runs += [(chosen, arrays) for arrays in _inputs(kernel, chosen)]
    others = _other_sizes(kernel, lowered)
    runs += [(symbols, random_inputs(kernel, symbols, SEEDS[0])) for symbols in others]
    for symbols, arrays in runs:
        found = _run(kernel, machine, lowered, symbols, arrays)
        assert not isinstance(found, str), found
        results.append((symbols, arrays, found))
    return Subject(kernel, machine, lowered, sizes, tuple(results))


def _other_sizes(kernel: Kernel, lowered: LoweredKernel) -> Iterator[Mapping[str, int]]:
    """Yield sizes that no check has chosen: a mutant may differ where nobody looked."""
    choose = random.Random(0)
    for longest in (5, 20, 40) * OTHERS if kernel.symbols else ():
        symbols = {name: choose.randint(1, longest) for name in kernel.symbols}
        values = bind_symbols(kernel, symbols)
        legal = all(index.evaluate(values) >= 0 for index in lowered.requires)
        if legal and is_affordable(kernel, lowered, symbols, MOST, ITERATIONS):
            yield symbols


def caught(of: Subject, mutant: LoweredKernel) -> str:
    """Return what refuses a mutant; nothing if it passes all checks."""
    check = field_check(of.kernel, of.machine, mutant, sizes=of.sizes, seeds=(0,), calls=MOST)
    assert check.verdict != "not run", check.text
    if check.verdict == "differs":
        return "field check"
    found = tuple(sites(mutant))
    if register_flow(of.machine, mutant).faults:
        return "proof: a register is read before it is written"
    if faults_ahead(of.machine, mutant):
        return "proof: what is prepared does not hold for all calls"
    demands = tuple(code_demands(of.kernel, of.machine, mutant, found, frozenset()))
    if any(isinstance(claim, Claim) and claim.verdict == "refuted" for claim in demands):
        return "proof: operands are not one register"
    lemmas = [claim.lemma for claim in demands if isinstance(claim, Open)]
    lemmas += memory_lemmas(of.kernel, of.machine, mutant, found)
    for lemma in (*lemmas, *parallel_lemmas(of.kernel, of.machine, mutant, found)):
        if (verdict := prove(lemma).verdict) != "proved":
            return f"proof: {lemma.name} is {verdict}"
    return ""


def changes(of: Subject, mutant: LoweredKernel) -> str:
    """Return how a mutant's results differ from the original's, in the declared types."""
    for symbols, arrays, expected in of.results:
        found = _run(of.kernel, of.machine, mutant, symbols, arrays)
        if isinstance(found, str):
            return found
        for name, array in expected.items():
            if not np.array_equal(array, found[name], equal_nan=array.dtype.kind == "f"):
                return f"{name} differs"
    return ""


def equivalence(of: Subject, mutant: LoweredKernel) -> str:
    """Return why a mutant computes what the original does, or nothing if that cannot be shown."""
    for symbols in of.sizes:
        for seed in SEEDS:
            arrays = _residues(of.kernel, symbols, seed)
            expected = interpret(of.kernel, arrays, symbols, free())
            found = _run(of.kernel, of.machine, mutant, symbols, arrays, free())
            if isinstance(found, str):
                return ""
            if any(not np.array_equal(expected[name], array) for name, array in found.items()):
                return ""
    return "equal for all values by the laws of its operations"


def _inputs(kernel: Kernel, symbols: Mapping[str, int]) -> Iterator[Arrays]:
    for seed in SEEDS:
        yield random_inputs(kernel, symbols, seed)
    for end in (0, 1):
        yield _ends(kernel, symbols, end)


def _ends(kernel: Kernel, symbols: Mapping[str, int], end: int) -> Arrays:
    """Return inputs whose integers are all the least, or all the greatest, that they may be."""
    arrays = random_inputs(kernel, symbols, SEEDS[0])
    indexed = indices(kernel)
    for buffer in inputs_of(kernel):
        if buffer.dtype.is_integer and buffer.name not in indexed:
            limits = (buffer.dtype.lowest, buffer.dtype.highest)
            if buffer.values is not None:
                limits = (int(buffer.values[0].text), int(buffer.values[1].text))
            arrays[buffer.name] = np.full_like(arrays[buffer.name], limits[end])
    return arrays


def _residues(kernel: Kernel, symbols: Mapping[str, int], seed: int) -> Arrays:
    """Return residues for every input; what indices are read from stays in bounds."""
    rng = np.random.default_rng(seed)
    kept = indices(kernel)
    return {
        name: array if name in kept else np.asarray(rng.integers(0, 1 << 60, array.shape))
        for name, array in random_inputs(kernel, symbols, seed).items()
    }


def indices(kernel: Kernel) -> frozenset[str]:
    """Return the buffers from which indices are read."""
    return frozenset(
        read.buffer
        for statement in kernel.statements
        for access in (statement.target, *accesses(statement.value))
        for index in access.indices
        for read in index.reads
    )


def _run(
    kernel: Kernel,
    machine: Accelerator,
    lowered: LoweredKernel,
    symbols: Mapping[str, int],
    arrays: Arrays,
    arithmetic: Arithmetic | None = None,
) -> Arrays | str:
    """Return the outputs, or how the run failed."""
    try:
        return run_lowered(lowered, machine, arrays, symbols, kernel=kernel, arithmetic=arithmetic)
    except LoweredFault as fault:
        return str(fault)
