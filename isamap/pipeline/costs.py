"""What statements cost, ever more exactly, from a floor that enumerates nothing to the estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import weights
from isamap.ir.index import Index, const
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.ranges import Interval, intervals_before
from isamap.ir.statements import accesses
from isamap.lower.alternative import ALIKE, Alternative
from isamap.lower.alternatives import alternatives, ranking
from isamap.lower.judge import Judge
from isamap.mapping.compose.compose import Composer
from isamap.mapping.compose.composed import is_of
from isamap.mapping.find import composed_for, enumerate_preferred, enumerate_statement
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import Needles, covered, roots
from isamap.pipeline.candidates import LONGEST, Candidate
from isamap.pipeline.likeness import Figures, likeness
from isamap.pipeline.result import issue_cycles
from isamap.pipeline.sizes import TYPICAL_SIZE

FASTER = 1.25
"""How much faster the instructions alone must be for a rewriting to be looked into."""

_Known: TypeAlias = tuple[Statement, frozenset[tuple[str, Interval]]]
"""A statement, and what is known of the values that it reads."""


def _known(kernel: Kernel, number: int) -> _Known:
    statement = kernel.statements[number]
    read = {access.buffer for access in accesses(statement.value)}
    before = intervals_before(kernel, number)
    return statement, frozenset((name, ends) for name, ends in before.items() if name in read)


@dataclass(slots=True)
class Costs:
    """What statements of rewritten kernels cost; remembers what it enumerated and estimated.

    With ``instruction``, statements that it computes are left to it.
    """

    hardware: Accelerator
    index: Needles
    symbols: Mapping[str, int]
    threads: int
    producers: Producers
    instruction: str | None = None
    _found: dict[_Known, Enumeration] = field(default_factory=dict)
    _floors: dict[Statement, float] = field(default_factory=dict)
    _estimates: dict[object, tuple[float, float]] = field(default_factory=dict)
    _figures: dict[object, Figures] = field(default_factory=dict)

    def know(self, kernel: Kernel, number: int, found: Enumeration) -> None:
        """Remember a statement's mappings."""
        self._found[_known(kernel, number)] = found

    def mapped(self, kernel: Kernel, number: int) -> Enumeration:
        """Return a statement's mappings."""
        key = _known(kernel, number)
        if key not in self._found:
            if self.instruction is None:
                found = enumerate_statement(kernel, number, self.index)
            else:
                found = enumerate_preferred(kernel, number, self.index, self.instruction)
            self._found[key] = found
        return self._found[key]

    # --- the instruction that is asked for --------------------------------------------------------
    def lacking(self, found: Sequence[Enumeration]) -> tuple[int, ...]:
        """Return the statements that the instruction which is asked for does not compute."""
        if self.instruction is None:
            return ()
        return tuple(n for n, one in enumerate(found) if not self._is_used(one))

    def uses(self, candidate: Candidate) -> bool:
        """Return whether the instruction that is asked for computes one of the statements."""
        return any(self._is_used(self.mapped(candidate.kernel, n)) for n in candidate.group)

    def may_use(self, candidate: Candidate) -> bool:
        """Return whether that instruction has the body of one of the statements."""
        assert self.instruction is not None
        for number in candidate.group:
            single = roots(candidate.kernel.statements[number], self.index)
            if any(is_of(needle, self.instruction) for needle, _ in single):
                return True
            several = composed_for(candidate.kernel, number, self.index)
            if any(is_of(needle, self.instruction) for needle, _ in several.roots):
                return True
        return False

    def _is_used(self, found: Enumeration) -> bool:
        assert self.instruction is not None
        return any(is_of(m.matching.needle, self.instruction) for m in found.mappings)

    # --- what that costs, ever more exactly -------------------------------------------------------
    def floor(self, candidate: Candidate) -> float:
        """Return the least cycles that calls can take, if every one is used in full."""
        return sum(self.floors(candidate).values())

    def floors(self, candidate: Candidate) -> dict[int, float]:
        """Return those cycles for each statement, by its number; those spent once weigh little."""
        kernel = candidate.kernel
        weight = weights(kernel)
        return {n: self.least(kernel.statements[n]) * weight[n] for n in candidate.group}

    def least(self, statement: Statement) -> float:
        """Return cycles that the calls of no mapping of a statement are below."""
        if statement not in self._floors:
            self._floors[statement] = self._least_of(statement)
        return self._floors[statement]

    def _least_of(self, statement: Statement) -> float:
        single = roots(statement, self.index)
        best = max((covered(needle) for needle, _ in single), default=0)
        several = Composer(self.index).chains(statement, best)
        pace = max(
            (
                prod(axis.extent for axis in needle.axes) / float(needle.entry.throughput or 1)
                for needle, _ in (*single, *several)
            ),
            default=0.0,
        )
        sizes = prod(self._size(v.extent) for v in statement.variables)
        return sizes / pace if pace else inf

    def _size(self, extent: Index) -> int:
        sizes = {name: self.symbols.get(name, TYPICAL_SIZE) for name in extent.names}
        return max(1, int(extent.evaluate(sizes)))

    def quick(self, candidate: Candidate, calls: float, limit: float) -> float:
        """Return cycles by a closed form; infinity where they, or the calls, are too many."""
        kernel = candidate.kernel
        weight, floors = weights(kernel), self.floors(candidate)
        figures = []
        least = 0.0
        # The dearest statement first: most candidates fail there.
        for number in sorted(candidate.group, key=floors.__getitem__, reverse=True):
            figures.append((weight[number], self._figures_of(kernel, number)))
            least += weight[number] * figures[-1][1].least
            if least == inf or least * FASTER > calls:
                return inf
        cycles = 0.0
        for share, one in figures:
            if cycles < limit:
                cycles += share * one.quick((limit - cycles) / share)
        return cycles

    def _figures_of(self, kernel: Kernel, number: int) -> Figures:
        """Return what one of the statements that look alike costs; the first stands for all."""
        key = likeness(kernel, number)
        if key not in self._figures:
            found = self.mapped(kernel, number)
            least = min(
                (issue_cycles(m, kernel, self.symbols) for m in found.mappings), default=inf
            )
            order = ranking(kernel, number, found, self.producers)
            self._figures[key] = Figures(kernel, number, found, order, least)
        return self._figures[key]

    def bounds(self, candidate: Candidate) -> dict[int, float]:
        """Return for each statement cycles that its estimate is not below, by its number."""
        kernel = candidate.kernel
        weight = weights(kernel)
        return {
            number: weight[number]
            * self._estimates.get(
                likeness(kernel, number), (self.least(kernel.statements[number]), 0.0)
            )[0]
            for number in candidate.group
        }

    def estimate(self, candidate: Candidate, limit: float) -> tuple[float, float]:
        """Return the estimated cycles, and those without memory.

        Infinity as soon as it is sure that they are not below a limit.
        """
        kernel = candidate.kernel
        bounds, busy = self.bounds(candidate), 0.0
        # The dearest first: then the limit is reached soon, if at all.
        weight = weights(kernel)
        rough = {n: weight[n] * self._figures_of(kernel, n).quick() for n in candidate.group}
        more = len(candidate.rewritings) < LONGEST
        for number in sorted(candidate.group, key=rough.__getitem__, reverse=True):
            # Enough is known if not even without one of its statements it would be below the limit:
            # then there is no need to rewrite that once more.
            if sum(bounds.values()) - (max(bounds.values()) if more else 0.0) >= limit:
                return inf, inf
            cycles, own = self._estimate_of(kernel, number)
            bounds[number] = weight[number] * cycles
            busy += weight[number] * own
        total = sum(bounds.values())
        return (total, busy) if total < limit else (inf, inf)

    def schedules(self, kernel: Kernel, number: int, found: Enumeration) -> bool:
        """Return whether one of a statement's mappings can be scheduled by itself."""
        self.know(kernel, number, found)
        return self._estimate_of(kernel, number)[0] < inf

    def in_round(self, candidate: Candidate, rounds: Mapping[str, int]) -> float:
        """Return the estimated cycles of a round, in which some variables have so many iterations.

        What they pass to each other is small then, and latencies that iterations of these variables
        would hide are not hidden.
        """
        kernel = candidate.kernel
        weight, short = weights(kernel), _shortened(kernel, rounds)
        return sum(weight[n] * self._estimate_of(short, n)[0] for n in candidate.group)

    def _estimate_of(self, kernel: Kernel, number: int) -> tuple[float, float]:
        """Return the estimate of one of the statements that look alike."""
        key = likeness(kernel, number)
        if key not in self._estimates:
            figures = self._figures_of(kernel, number)
            tried = alternatives(
                figures.kernel,
                Judge(self.hardware, self.producers, self.symbols, self.threads),
                figures.number,
                figures.enumeration,
                figures.order,
            )
            self._estimates[key] = least_estimate(tried)
        return self._estimates[key]


def _shortened(kernel: Kernel, rounds: Mapping[str, int]) -> Kernel:
    """Return a kernel with fewer iterations of some variables, and of what reads their results.

    What they write has as many elements then, so that no others are to be filled with anything.
    """
    shapes = {b.name: b.shape for b in kernel.buffers}
    statements = []
    for own in kernel.statements:
        limits = [(name, const(size)) for name, size in rounds.items()]
        for access in accesses(own.value):
            pairs = zip(access.indices, shapes[access.buffer], strict=True)
            limits += [(index.name, size) for index, size in pairs if index.name is not None]
        sizes = {v.name: v.extent for v in own.variables}
        short: dict[str, Index] = {}
        for name, size in limits:
            now = short.get(name, sizes.get(name))
            if now is not None and (size.constant or inf) < (now.constant or inf):
                short[name] = size
        target = own.target.buffer
        pairs = zip(own.target.indices, shapes[target], strict=True)
        shapes[target] = tuple(short.get(index.name or "", size) for index, size in pairs)
        variables = tuple(replace(v, extent=short.get(v.name, v.extent)) for v in own.variables)
        statements.append(replace(own, variables=variables))
    buffers = tuple(replace(b, shape=shapes[b.name]) for b in kernel.buffers)
    return replace(kernel, statements=tuple(statements), buffers=buffers)


def least_estimate(tried: Sequence[Alternative]) -> tuple[float, float]:
    """Return the cycles of the best of some mappings, and those without memory.

    Infinity if none can be scheduled.
    """
    known = [a.estimate for a in tried if a.estimate]
    least = min((e.cycles for e in known), default=inf)
    return least, min((e.busy for e in known if e.cycles <= ALIKE * least), default=inf)
