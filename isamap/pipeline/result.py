"""What the path yields: a mapped kernel, how it was run, and whether the result is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from isamap.diagnostics import Diagnostic, ToolError, fail
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel, Statement
from isamap.lower.cost import Estimate, estimate_ahead
from isamap.lower.in_registers import is_by
from isamap.lower.nodes import LoweredKernel
from isamap.lower.place import Placement, placements
from isamap.mapping.compose.composed import is_of
from isamap.mapping.matching import Enumeration
from isamap.mapping.matching import Mapping as LegalMapping
from isamap.pipeline.sequences import Sequences
from isamap.pipeline.service import Service
from isamap.pipeline.sizes import variable_extents
from isamap.proof.certificate import Certificate
from isamap.rewrite.apply import told
from isamap.rewrite.rule import Rewriting
from isamap.schedule.schedule import Schedule

if TYPE_CHECKING:
    from isamap.run.callable import Compiled

Way: TypeAlias = Literal["native", "measured", "program", "simulated", "none"]
Arrays: TypeAlias = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A mapping that was scheduled, by its position, with the estimated cycles of the statement.

    ``cycles`` is None, and ``reason`` says why, where it cannot be scheduled.
    """

    mapping: int
    cycles: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The legal mappings of one statement, best first, and the position of the chosen one.

    ``name`` is the buffer that the statement writes, numbered where several statements write it.
    ``why`` says in words what decided, ``scheduled`` what was tried.  ``covers`` names the
    statements that it stands for: several where one instruction computes them all.  One that is
    ``ahead`` depends on constants alone and is computed once, before all calls.
    """

    name: str
    statement: Statement
    enumeration: Enumeration
    chosen: int
    why: str
    scheduled: tuple[Scheduled, ...]
    covers: tuple[str, ...] = ()
    ahead: bool = False

    @property
    def mappings(self) -> tuple[LegalMapping, ...]:
        """The legal mappings, best first."""
        return self.enumeration.mappings


@dataclass(frozen=True, slots=True)
class FrontRow:
    """A schedule that no other beats in every objective: its values, and how it differs from the
    first schedule."""

    values: tuple[float, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the analytical model says of the mappings and register blocks of a schedule.

    No schedule takes fewer cycles than ``bound``, on all ``threads`` together, because of ``by``.
    ``own`` are those of the schedule's loops, and ``tiled`` of the best loops around its blocks
    that the model knows, at least ``bound``.  ``optimum`` is the best chain of tiles, computing and
    transfers one after the other, proved (None: no memory has tiles), and ``lowest`` what none
    undercuts.  ``reached`` is the part of the bound that the schedule reaches.
    """

    bound: float
    by: str
    own: float
    tiled: float
    optimum: float | None
    lowest: float | None
    reached: float | None

    @property
    def gap(self) -> float:
        """How far the best loops on the model are above the bound."""
        return self.tiled / self.bound - 1


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a search over schedules did.

    ``measured`` says that candidates were timed; otherwise the cost model alone judged.  ``best``
    and ``first`` are seconds when measured and cycles by the model when not.  Of the ``trials``
    made here ``failed`` crashed or were refused, ``dropped`` were ended after a few repeats;
    ``others`` were in the study already.  ``ratio`` is the best's time over the first schedule's,
    the median of ``rounds`` rounds by turns with its 95 % interval ``spread``; ``proved`` says that
    the difference is none of chance.  None where the first schedule is the best or nothing was
    measured.  ``changes`` are the choices in which the best differs from the first.  The study
    called ``study`` is kept at ``place``, measurements in the file ``records``; ``learned`` says
    whether those of earlier searches ordered the candidates.  ``front`` has several objectives.
    ``limits`` are those of the best.  ``counted`` says that the description's measuring command
    counted cycles: ``best`` and ``first`` are cycles then.  ``correlation`` says how much the
    ``compared`` candidates' order by the cost model is that by measurement, from -1 to 1; None
    where that has no answer.  ``warnings`` are about what could not be read of the study.
    """

    trials: int
    failed: int
    measured: bool
    first: float | None
    best: float | None
    interrupted: bool
    dropped: int = 0
    others: int = 0
    sampler: str = ""
    objectives: tuple[str, ...] = ("time",)
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    rounds: int = 0
    proved: bool = False
    changes: tuple[str, ...] = ()
    study: str = ""
    place: str = ""
    records: str | None = None
    learned: str = ""
    front: tuple[FrontRow, ...] = ()
    limits: Limits | None = None
    counted: bool = False
    correlation: float | None = None
    compared: int = 0
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is made of constants once, ahead of all calls: the bytes that are kept, and what making
    them is estimated to take."""

    bytes: int
    estimate: Estimate


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """A kernel mapped on to a machine; nothing has run yet.

    ``symbols`` are sizes assumed for extents without a value, for the estimate, which is that of a
    call by so many ``threads``.  ``source`` is the C with its header; it is None, and ``no_c`` the
    reason, where the description makes none.  ``mapped`` is the kernel that was mapped: ``kernel``
    itself, or what ``rewritings`` made of it, with statements that are computed together as one;
    ``statements`` are those of ``mapped``.  ``services`` are the calls that the server of a served
    machine executes.
    """

    kernel: Kernel
    mapped: Kernel
    rewritings: tuple[Rewriting, ...]
    accelerator: Accelerator
    statements: tuple[StatementResult, ...]
    schedule: Schedule
    lowered: LoweredKernel
    estimate: Estimate
    symbols: Mapping[str, int]
    tuning: Tuning | None
    source: CSource | None
    no_c: str
    seconds: Mapping[str, float]
    services: tuple[Service, ...] = ()
    threads: int = 1

    def __repr__(self) -> str:
        return f"<Result {self.kernel.name} on {self.accelerator.name}: {self._estimated}>"

    def __str__(self) -> str:
        lines = [f"{self.kernel.name} on {self.accelerator.name}: {self._estimated}"]
        lines += [
            f"  {statement.name}: {' + '.join(names)}"
            for statement, names in zip(self.statements, self.by, strict=True)
        ]
        return "\n".join(lines)

    @property
    def _estimated(self) -> str:
        cycles, by = self.estimate.cycles, self.estimate.bound_by
        return f"{cycles:.4g} cycles estimated, bound by {by}"

    @property
    def mappings(self) -> tuple[LegalMapping, ...]:
        """The chosen mapping of each statement that was mapped, in their order.

        Of one in the registers of another it is what would compute it in loops of its own: ``by``
        tells what does.
        """
        return tuple(s.mappings[s.chosen] for s in self.statements)

    @property
    def by(self) -> tuple[tuple[str, ...], ...]:
        """The instructions that compute each statement that was mapped, as they follow each other.

        Of one in the registers of another they are those that do so there.
        """
        sequences = Sequences(self.mapped, self.accelerator)
        there = {own.statement: own.by for own in self.lowered.in_registers}
        pairs = zip(self.statements, self.mappings, strict=True)
        return tuple(there[s.name] if s.name in there else sequences.by(m) for s, m in pairs)

    @property
    def rewritten(self) -> tuple[tuple[Statement, Rewriting], ...]:
        """The rewritings in their order, each with the statement to which it was applied."""
        return told(self.kernel, self.rewritings)

    @property
    def preparation(self) -> Preparation | None:
        """What is prepared of the constants, None if nothing is."""
        if not self.lowered.prepare:
            return None
        kept = sum(
            int(array.size.evaluate(self.symbols)) * array.dtype.bytes
            for array in self.lowered.prepared
        )
        return Preparation(kept, estimate_ahead(self.lowered, self.accelerator, self.symbols))

    @property
    def placements(self) -> tuple[Placement, ...]:
        """What lies in scratchpads, checked: nothing that is needed together overlaps."""
        return placements(self.lowered, self.accelerator)

    @property
    def c(self) -> str | None:
        """The text of the C file; None where the description makes no C."""
        return self.source.text if self.source else None

    def compile(self) -> "Compiled":
        """Return a function on arrays: ``f(A, B)["C"]``, ``f(A=a, B=b, out=c, threads=2)``.

        Arrays have the kernel's shapes and element types (``Buffer.dtype.numpy``: ml_dtypes for
        bf16, f8 and 4-bit integers); contiguous ones are not copied.  It may be called from several
        threads at once.  ``f.prepare(B=b)`` takes the constants once for many calls.
        Raises ToolError when the description may not be compiled, its code is run by another
        machine, or the compiler is missing or fails.
        """
        from isamap.hw.native import elsewhere
        from isamap.interp.arguments import check_values
        from isamap.interp.reads import check_reads, reads_data
        from isamap.run.build import (
            build_shared,
            require_toolchain,
        )  # needed by callers of this alone
        from isamap.run.callable import Compiled

        if self.source is None:
            raise ToolError(fail("E742", f"there is no C to compile: {self.no_c}"))
        require_toolchain(self.accelerator)
        if reason := elsewhere(self.accelerator):
            text = f"code for {self.accelerator.name} is no function of this process: {reason}"
            raise ToolError(
                fail("E546", text, hint="'isamap run' computes on arrays wherever it runs")
            )
        # Indices that arrays hold are looked at before each call: C would follow them anywhere.
        check = partial(check_reads, self.kernel) if reads_data(self.kernel) else None
        # So are values: instructions are chosen for those that the kernel declares.
        has_values = any(buffer.values for buffer in self.kernel.buffers)
        given = partial(check_values, self.kernel) if has_values else None
        return Compiled(self.source, build_shared(self.source, self.accelerator), check, given)


@dataclass(frozen=True, slots=True)
class Execution:
    """How a mapped kernel was run.

    ``reason`` says why not natively, for the other ways; of 'failed', what went wrong.
    ``seconds`` is the median of a few timed runs of native code, ``cycles`` what the simulator or
    the description's measuring command counted, in the median.  ``samples`` are the seconds or
    cycles of which it is the median.  ``conflicts`` counts simulated calls with two operands in one
    bank of a scratchpad.
    """

    way: Way | Literal["failed"]
    reason: str = ""
    hint: str = ""
    symbols: Mapping[str, int] | None = None
    outputs: Arrays | None = None
    seconds: float | None = None
    cycles: float | None = None
    compiler: str = ""
    samples: tuple[float, ...] = ()
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Cycles that were predicted of a run, beside those that it took.

    ``estimate`` is that of the schedule.  No schedule takes less than ``bound`` on all threads
    together, because of ``by`` (None: nothing is left to a call).  ``measured`` are those
    that were counted, or the seconds of a native run at the description's clock.

    The estimate beside a simulated run has nothing of what is ``left_out``, which takes no
    simulated time; ``whole`` is the one with all.
    """

    estimate: float
    bound: float | None
    by: str
    measured: float
    whole: float
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison with the reference interpreter.

    ``outputs`` of ``total`` output elements were compared; ``text`` says with which bound, or where
    they differ.  A ``vague`` one says little: its bound is about as large as the results.  So does
    one where nearly all are ``alike``: that part of the elements is one of two values.
    """

    ok: bool
    outputs: int
    total: int
    text: str
    vague: bool = False
    alike: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Everything that ``isamap map`` tells; ``str`` of it is the gist of that.

    ``check`` is None, and ``unchecked`` the reason, where nothing was run or the interpreter would
    take too long.  ``fault`` is why the compiler, the runner or the code itself failed.
    ``certificate`` is what could be proved in a fraction of a second (None: not asked for).
    ``prediction`` is None where no run was timed.
    """

    result: Result
    execution: Execution
    check: Check | None
    unchecked: str
    seconds: Mapping[str, float]
    fault: ToolError | None = None
    certificate: Certificate | None = None
    prediction: Prediction | None = None

    def __repr__(self) -> str:
        return f"<Report {self.result!r}, {self._outcome}>"

    def __str__(self) -> str:
        return f"{self.result}\n{self._outcome}"

    @property
    def _outcome(self) -> str:
        if self.fault is not None:
            return f"failed: {self.fault.diagnostics[0].message}"
        run = self.execution
        took = [] if run.seconds is None else [f"{run.seconds:.4g} s"]
        took += [] if run.cycles is None else [f"{run.cycles:.4g} cycles"]
        checked = self.unchecked if self.check is None else self.check.text
        return f"{', '.join([run.way, *took])}; {checked}"

    @property
    def exit_code(self) -> int:
        """0, or that of what happened.

        4 when the result differs from the interpreter or a claim is refuted, 5 when a tool or the
        code failed, 130 when tuning was interrupted.
        """
        if self.fault is not None:
            return self.fault.exit_code
        if self.check and not self.check.ok:
            return 4
        if self.certificate and self.certificate.verdict == "refuted":
            return 4
        return exit_code(self.result)


def exit_code(result: Result) -> int:
    """Return that of a kernel that is mapped and not run: 0, or 130 if tuning was interrupted."""
    return 130 if result.tuning and result.tuning.interrupted else 0


def uses(
    schedule: Schedule, lowered: LoweredKernel, hardware: Accelerator, instruction: str
) -> bool:
    """Return whether a statement is computed with an instruction, alone or as part of others.

    Where that is asked for, statements in another one's registers are computed with it there if
    their mapping is to it (:func:`isamap.lower.in_registers.check_asked`).
    """
    mapped = any(is_of(s.mapping.matching.needle, instruction) for s in schedule.statements)
    return mapped or any(is_by(own.by, instruction, hardware) for own in lowered.in_registers)


def issue_cycles(mapping: LegalMapping, kernel: Kernel, symbols: Mapping[str, int]) -> float:
    """Return the cycles that the calls of a mapping take when nothing but its units limits them."""
    matching = mapping.matching
    extents = variable_extents(kernel, matching.statement, symbols)
    calls = prod(ceil(extent / mapping.tile.get(name, 1)) for name, extent in extents.items())
    return float(calls * matching.needle.entry.throughput)
