"""The rewriting search: a kernel's mappings compete with those of the kernels it can become.

What a rewriting costs to try grows with what it promises.  A rule's precondition is looked at
first; then the least cycles that any instruction could take for the new statements, without
enumerating anything; then their mappings by a closed form; and only the best few are proved,
scheduled and lowered, as far as it is open whether they are better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod

from isamap.ir.nodes import Kernel, Statement
from isamap.pipeline.candidates import LONGEST, WORTH, Candidate, Contest
from isamap.pipeline.costs import FASTER, Costs
from isamap.pipeline.offered import statements
from isamap.pipeline.sizes import TYPICAL_SIZE
from isamap.rewrite.alike import NAME as SHARE
from isamap.rewrite.alike import share_local
from isamap.rewrite.apply import judge
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.rules import FINAL, ITSELF, SHAPED, UNMAPPED, WHOLE, Named, rules_for

STEPS = 64
"""Kernels that one statement can become which are looked at."""

ENUMERATED = 24
"""Those of them whose mappings are enumerated, for each number of rewritings."""

SCHEDULED = 3
"""Those of them that are proved, scheduled and estimated."""

NEAR, MORE = 1.05, 6
"""More of them are, if the closed form tells them apart from the best by no more than this."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a kernel has become, by which rewritings in the order in which they were applied, and
    those that the solver did not prove.
    """

    kernel: Kernel
    rewritings: tuple[Rewriting, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Cycles of a statement as it is: of its calls, and as estimated with memory and without.

    Infinite where nothing maps.  ``hungry`` where each call does one iteration, or waits for
    operands as long as it works.
    """

    calls: float = inf
    cycles: float = inf
    busy: float = inf
    hungry: bool = False


def _by_turns(ranked: Sequence[tuple[float, Candidate]]) -> list[tuple[float, Candidate]]:
    """Return candidates in an order in which each sequence of rules comes first with its best.

    ``ranked`` are in the order of their floors, which hardly tell some of them apart.
    """
    turns: dict[tuple[str, ...], int] = {}
    keys = []
    for floor, candidate in ranked:
        rules = tuple(rewriting.rule for rewriting in candidate.rewritings)
        turns[rules] = turns.get(rules, 0) + 1
        keys.append((turns[rules], floor))
    order = sorted(range(len(ranked)), key=lambda n: keys[n])
    return [ranked[n] for n in order]


@dataclass(slots=True)
class Rewriter:
    """Looks for better kernels.

    With ``rounds``, of the ways of the rules that are best for a statement it takes the one that is
    best where these variables have so many iterations; ``gained`` are the cycles of all rounds that
    are estimated to be saved by that.
    """

    costs: Costs
    chosen: Sequence[str] | None = None
    lighter: bool = True
    rounds: Mapping[str, int] = field(default_factory=dict)
    gained: float = 0.0
    refused: list[str] = field(default_factory=list)
    _rules: tuple[Named, ...] | None = None

    def rewrite(
        self,
        kernel: Kernel,
        limits: Sequence[Limits],
        only: frozenset[int],
        demanded: bool = False,
    ) -> Rewritten:
        """Return the kernel with those of its statements rewritten that gain by it.

        ``limits`` has for each statement what it costs as it is; ``only`` are the statements to
        look at.  What is ``demanded`` uses the instruction that is asked for.
        """
        applied: list[Rewriting] = []
        self.gained = 0.0
        # From the last to the first, so that the numbers of those before stay what they are.
        for number in sorted(only, reverse=True):
            best = self._best(kernel, number, limits[number], demanded)
            if best is not None:
                kernel = best.kernel
                applied += best.rewritings
        # Each was rewritten by itself; some now compute the same beforehand.
        while applied and (found := self._shared(kernel)) is not None:
            kernel = found.kernel
            applied.append(found)
        return Rewritten(kernel, tuple(applied), tuple(self.refused))

    def _shared(self, kernel: Kernel) -> Rewriting | None:
        """Return the kernel without a local buffer of which there is another one that is alike."""
        if self.chosen is not None and SHARE not in self.chosen:
            return None
        ways = (own for n in range(len(kernel.statements)) for own in share_local(kernel, n))
        return next(ways, None)

    def _best(
        self, kernel: Kernel, number: int, limits: Limits, demanded: bool
    ) -> Candidate | None:
        """Return the best of what one statement can become, if it is better.

        What one rule makes is estimated before a second one is tried, so that the statements which
        the second one leaves are known for what they cost.
        """
        start = Candidate(kernel, (), range(number, number + 1))
        asked = self.costs.instruction is not None
        using = demanded or (asked and self.costs.uses(start))
        contest = Contest(
            start,
            limits.calls,
            limits.cycles,
            limits.busy,
            limits.hungry,
            demanded,
            using,
            self.lighter,
        )
        seen = {start.statements}
        frontier = [start]
        for _ in range(LONGEST):
            frontier = self._compete(list(self._reached(frontier, contest, seen)), contest)
        return self._in_round(contest) if self.rounds else contest.best

    def _in_round(self, contest: Contest) -> Candidate | None:
        """Return the way of the best candidate's rules that is best in a round."""
        alike = contest.alike
        cycles = [self.costs.in_round(one, self.rounds) for one in alike]
        for n in sorted(range(len(alike)), key=cycles.__getitem__):
            if self._proved(alike[n]):
                (own,) = contest.start.statements
                trips = prod(
                    (v.extent.constant or TYPICAL_SIZE) / self.rounds[v.name]
                    for v in own.variables
                    if v.name in self.rounds
                )
                self.gained += (cycles[0] - cycles[n]) * trips
                return alike[n]
        return contest.best

    def _compete(self, reached: Sequence[Candidate], contest: Contest) -> list[Candidate]:
        """Let candidates compete with the best so far; return them, the likeliest ones first.

        Those come first from which :data:`STEPS` leaves enough that is looked at.
        """
        within = [
            (floor, candidate)
            for candidate in reached
            if (floor := self.costs.floor(candidate)) * FASTER <= contest.calls
            and floor < inf
            and sum(self.costs.bounds(candidate).values()) < contest.reach(candidate)
            and (not contest.using or self.costs.may_use(candidate))
        ]
        if not within:
            return list(reached)
        contest.reached += [candidate for _, candidate in within]
        within.sort(key=lambda item: item[0])
        # The closed form may know too little of the statement as it is.
        quickly = self.costs.quick(contest.start, inf, inf)
        own = inf if contest.forced else max(quickly, contest.busy)
        limit = own / WORTH
        # Where nothing computes the statement, most of what it can become is not computed either.
        most = len(within) if contest.calls == inf else ENUMERATED
        quick = [
            (cycles, candidate)
            for _, candidate in _by_turns(within)[:most]
            if (cycles := self.costs.quick(candidate, contest.calls, limit)) < limit
        ]
        quick.sort(key=lambda item: item[0])
        near = [own for own in quick[:MORE] if own[0] <= NEAR * quick[0][0]]
        for _, candidate in max(near, quick[:SCHEDULED], key=len):
            if self._proved(candidate) and (not contest.using or self.costs.uses(candidate)):
                found = self.costs.estimate(candidate, contest.reach(candidate))
                contest.offer(candidate, *found)
        known = {id(candidate): cycles for cycles, candidate in quick}
        return sorted(reached, key=lambda one: known.get(id(one), inf))

    # --- what a statement can become --------------------------------------------------------------
    def _reached(
        self,
        frontier: Sequence[Candidate],
        contest: Contest,
        seen: set[tuple[Statement, ...]],
    ) -> Iterator[Candidate]:
        """Yield kernels after one more rewriting, each once and :data:`STEPS` in all."""
        for candidate in frontier:
            for after in self._after(candidate, contest):
                if after.statements not in seen:
                    seen.add(after.statements)
                    yield after
                if len(seen) > STEPS:
                    return

    def _after(self, before: Candidate, contest: Contest) -> Iterator[Candidate]:
        """Yield what a rule makes of one statement of a candidate.

        Only such statements are rewritten as would be fast enough if they took no time at all.
        """
        if self._rules is None:
            self._rules = rules_for(statements(self.costs.hardware), self.chosen)
        applied = {rewriting.rule for rewriting in before.rewritings}
        if applied & FINAL:
            return
        barred = (
            WHOLE
            | (SHAPED | ITSELF if applied & SHAPED else frozenset())
            | (frozenset() if contest.calls == inf or contest.hungry else UNMAPPED)
        )
        floors = self.costs.floors(before)
        bounds = self.costs.bounds(before)
        for number in before.group:
            others = [n for n in before.group if n != number]
            if sum(floors[n] for n in others) * FASTER > contest.calls:
                continue
            if sum(bounds[n] for n in others) >= contest.longer:
                continue
            for name, rule in self._rules:
                if name in barred:
                    continue
                for rewriting in rule(before.kernel, number):
                    more = len(rewriting.kernel.statements) - len(before.kernel.statements)
                    group = range(before.group.start, before.group.stop + more)
                    chain = (*before.rewritings, rewriting)
                    yield Candidate(rewriting.kernel, chain, group)

    def _proved(self, candidate: Candidate) -> bool:
        """Return whether all lemmas hold; what the solver leaves open is noted."""
        refused = judge(candidate.rewritings).refused
        for one in refused:
            if one.text not in self.refused:
                self.refused.append(one.text)
        return not refused
