"""The rewriting search: a kernel's mappings compete with those of the kernels it can become.

What a rewriting costs to try grows with what it promises.  A rule's precondition is looked at
first; then the least cycles that any instruction could take for the new statements, without
enumerating anything; then their mappings by a closed form; and only the best few are proved,
scheduled and lowered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.ranges import Interval, intervals_before
from isamap.ir.statements import accesses
from isamap.lower.choose import Alternative, alternatives
from isamap.mapping.compose import Composer
from isamap.mapping.composed import is_of
from isamap.mapping.find import composed_for, enumerate_preferred, enumerate_statement
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles import Needles, covered, roots
from isamap.mapping.produce import Producers
from isamap.pipeline.likeness import Figures, likeness
from isamap.pipeline.offered import statements
from isamap.pipeline.result import issue_cycles
from isamap.pipeline.sizes import TYPICAL_SIZE
from isamap.rewrite.apply import judge
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import FINAL, SHAPED, UNMAPPED, Named, rules_for

FASTER = 1.25
"""How much faster the instructions alone must be for a rewriting to be looked into."""

WORTH = 1.1
"""How much faster the estimate must be for a rewriting to be chosen."""

ALIKE = 1.05
"""Estimates this close are taken for equal: then fewer rewritings are better."""

STEPS = 64
"""Kernels that one statement can become which are looked at."""

ENUMERATED = 12
"""Those of them whose mappings are enumerated."""

RANKED = 64
"""Mappings of a new statement that are compared by a closed form."""

SCHEDULED = 3
"""Those of them that are proved, scheduled and estimated."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a kernel has become, by which rewritings in the order in which they were applied, and
    those that the solver did not prove.
    """

    kernel: Kernel
    rewritings: tuple[Rewriting, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A kernel after one or two rewritings; ``group`` are the numbers of the new statements."""

    kernel: Kernel
    rewritings: tuple[Rewriting, ...]
    group: range

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements that stand for the one that was rewritten."""
        return tuple(self.kernel.statements[n] for n in self.group)


_Known: TypeAlias = tuple[Statement, frozenset[tuple[str, Interval]]]
"""A statement, and what is known of the values that it reads."""


def _known(kernel: Kernel, number: int) -> _Known:
    statement = kernel.statements[number]
    read = {access.buffer for access in accesses(statement.value)}
    before = intervals_before(kernel, number)
    return statement, frozenset((name, ends) for name, ends in before.items() if name in read)


@dataclass(slots=True)
class Rewriter:
    """Looks for better kernels; remembers what it enumerated and estimated.

    With ``instruction``, statements that it computes are left to it.
    """

    hardware: Accelerator
    index: Needles
    symbols: Mapping[str, int]
    threads: int
    producers: Producers
    chosen: Sequence[str] | None = None
    instruction: str | None = None
    refused: list[str] = field(default_factory=list)
    _found: dict[_Known, Enumeration] = field(default_factory=dict)
    _floors: dict[Statement, float] = field(default_factory=dict)
    _estimates: dict[object, float] = field(default_factory=dict)
    _figures: dict[object, Figures] = field(default_factory=dict)
    _rules: tuple[Named, ...] | None = None

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

    def lacking(self, found: Sequence[Enumeration]) -> tuple[int, ...]:
        """Return the statements that the instruction which is asked for does not compute."""
        if self.instruction is None:
            return ()
        return tuple(n for n, one in enumerate(found) if not self._is_used(one))

    def _is_used(self, found: Enumeration) -> bool:
        assert self.instruction is not None
        return any(is_of(m.matching.needle, self.instruction) for m in found.mappings)

    def rewrite(
        self,
        kernel: Kernel,
        limits: Sequence[tuple[float, float]],
        only: frozenset[int],
        demanded: bool = False,
    ) -> Rewritten:
        """Return the kernel with those of its statements rewritten that gain by it.

        ``limits`` has for each statement the cycles that its calls take and its estimate (infinity
        where nothing maps); ``only`` are the statements to look at.  What is ``demanded`` uses the
        instruction that is asked for.
        """
        applied: list[Rewriting] = []
        # From the last to the first, so that the numbers of those before stay what they are.
        for number in sorted(only, reverse=True):
            best = self._best(kernel, number, *limits[number], demanded)
            if best is not None:
                kernel = best.kernel
                applied += best.rewritings
        return Rewritten(kernel, tuple(applied), tuple(self.refused))

    def _best(
        self, kernel: Kernel, number: int, calls: float, estimate: float, demanded: bool
    ) -> _Candidate | None:
        """Return the best of what one statement can become, if it is better."""
        forced = demanded  # the statement as it is written is no choice
        if self.instruction is not None:
            demanded = demanded or self._is_used(self.mapped(kernel, number))
        within = [
            (floor, candidate)
            for candidate in self._candidates(kernel, number, calls)
            if (floor := self._floor(candidate)) * FASTER <= calls and floor < inf
            if not demanded or self._may_use(candidate)
        ]
        if not within:
            return None
        within.sort(key=lambda item: item[0])
        own = _Candidate(kernel, (), range(number, number + 1))
        limit = inf if forced else self._quick(own, inf, inf) / WORTH
        quick = [
            (cycles, candidate)
            for _, candidate in within[:ENUMERATED]
            if (cycles := self._quick(candidate, calls, limit)) < limit
        ]
        quick.sort(key=lambda item: (item[0], len(item[1].rewritings)))
        best: _Candidate | None = None
        for _, candidate in quick[:SCHEDULED]:
            if not self._proved(candidate):
                continue
            if demanded and not self._uses(candidate):
                continue
            cycles = self._estimate(candidate)
            shorter = best is not None and len(candidate.rewritings) < len(best.rewritings)
            if cycles * (WORTH if best is None else 1.0) < estimate * (ALIKE if shorter else 1.0):
                best, estimate = candidate, cycles
        return best

    # --- what a statement can become --------------------------------------------------------------
    def _candidates(self, kernel: Kernel, number: int, calls: float) -> Iterator[_Candidate]:
        """Yield kernels after one rewriting and after two, each once.

        Only such statements are rewritten as would be fast enough if they took no time at all.
        """
        if self._rules is None:
            self._rules = rules_for(statements(self.hardware), self.chosen)
        start = _Candidate(kernel, (), range(number, number + 1))
        seen = {start.statements}
        frontier, count = [start], 0
        for _ in range(2):
            reached: list[_Candidate] = []
            for candidate in frontier:
                for after in self._after(candidate, calls):
                    if after.statements in seen:
                        continue
                    seen.add(after.statements)
                    reached.append(after)
                    count += 1
                    yield after
                    if count == STEPS:
                        return
            frontier = reached

    def _after(self, before: _Candidate, calls: float) -> Iterator[_Candidate]:
        assert self._rules is not None
        applied = {rewriting.rule for rewriting in before.rewritings}
        if applied & FINAL:
            return
        barred = (SHAPED if applied & SHAPED else frozenset()) | (
            frozenset() if calls == inf else UNMAPPED
        )
        for number in before.group:
            others = (before.kernel.statements[n] for n in before.group if n != number)
            if sum(map(self._least, others)) * FASTER > calls:
                continue
            for name, rule in self._rules:
                if name in barred:
                    continue
                for rewriting in rule(before.kernel, number):
                    more = len(rewriting.kernel.statements) - len(before.kernel.statements)
                    group = range(before.group.start, before.group.stop + more)
                    chain = (*before.rewritings, rewriting)
                    yield _Candidate(rewriting.kernel, chain, group)

    def _may_use(self, candidate: _Candidate) -> bool:
        """Return whether the instruction that is asked for has the body of one of the statements"""
        assert self.instruction is not None
        for number in candidate.group:
            single = roots(candidate.kernel.statements[number], self.index)
            if any(is_of(needle, self.instruction) for needle, _ in single):
                return True
            several = composed_for(candidate.kernel, number, self.index)
            if any(is_of(needle, self.instruction) for needle, _ in several.roots):
                return True
        return False

    def _uses(self, candidate: _Candidate) -> bool:
        return any(self._is_used(self.mapped(candidate.kernel, n)) for n in candidate.group)

    # --- what that costs, ever more exactly -------------------------------------------------------
    def _floor(self, candidate: _Candidate) -> float:
        """Return the least cycles that calls can take, if every one is used in full."""
        return sum(self._least(statement) for statement in candidate.statements)

    def _least(self, statement: Statement) -> float:
        if statement not in self._floors:
            self._floors[statement] = self._least_of(statement)
        return self._floors[statement]

    def _least_of(self, statement: Statement) -> float:
        """Return a bound that no mapping of a statement is below, whatever its values are."""
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

    def _quick(self, candidate: _Candidate, calls: float, limit: float) -> float:
        """Return cycles by a closed form; infinity where they, or the calls, are too many."""
        kernel = candidate.kernel
        # The dearest statement first: most candidates fail there.
        ordered = sorted(
            candidate.group, key=lambda n: self._least(kernel.statements[n]), reverse=True
        )
        figures = []
        least = 0.0
        for number in ordered:
            figures.append(self._figures_of(kernel, number))
            least += figures[-1].least
            if least == inf or least * FASTER > calls:
                return inf
        cycles = 0.0
        for one in figures:
            if cycles < limit:
                cycles += one.quick(self.producers, limit - cycles)
        return cycles

    def _figures_of(self, kernel: Kernel, number: int) -> Figures:
        """Return what one of the statements that look alike costs; the first stands for all."""
        key = likeness(kernel, number)
        if key not in self._figures:
            mappings = self.mapped(kernel, number).mappings[:RANKED]
            least = min((issue_cycles(m, kernel, self.symbols) for m in mappings), default=inf)
            self._figures[key] = Figures(kernel, mappings, least)
        return self._figures[key]

    def _estimate(self, candidate: _Candidate) -> float:
        kernel = candidate.kernel
        total = 0.0
        for number in candidate.group:
            key = likeness(kernel, number)
            if key not in self._estimates:
                found = self.mapped(kernel, number)
                tried = alternatives(
                    kernel, self.hardware, number, found, self.threads, self.symbols, self.producers
                )
                self._estimates[key] = least_estimate(tried)
            total += self._estimates[key]
        return total

    def _proved(self, candidate: _Candidate) -> bool:
        """Return whether all lemmas hold; what the solver leaves open is noted."""
        refused = judge(candidate.rewritings).refused
        for one in refused:
            if one.text not in self.refused:
                self.refused.append(one.text)
        return not refused


def least_estimate(tried: Sequence[Alternative]) -> float:
    """Return the estimate of the best of some mappings, infinity if none can be scheduled."""
    return min((a.estimate.cycles for a in tried if a.estimate), default=inf)
