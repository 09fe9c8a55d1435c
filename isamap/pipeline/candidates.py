"""What a statement can become by rewriting, and the contest for the best of that."""

from dataclasses import dataclass, field

from isamap.ir.nodes import Kernel, Statement
from isamap.rewrite.rule import Rewriting

WORTH = 1.1
"""How much faster the estimate must be for a rewriting to be chosen."""

ALIKE = 1.05
"""Estimates this close are taken for equal: then fewer rewritings are better."""

LIGHTER = 1.25
"""How much less a rewriting must work to be chosen where its estimate is no lower."""

FURTHER = 1.5
"""How much longer memory may take it then, as if all data of each statement came from there."""

LONGEST = 2
"""Rewritings of one statement, one after the other, at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel after one or two rewritings; ``group`` are the numbers of the new statements."""

    kernel: Kernel
    rewritings: tuple[Rewriting, ...]
    group: range

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements that stand for the one that was rewritten."""
        return tuple(self.kernel.statements[n] for n in self.group)


@dataclass(slots=True)
class Contest:
    """What a statement can become, and the best of that so far.

    ``start`` is the statement as it is written, ``calls`` the cycles that its calls take; it is
    ``hungry`` if each of them does one iteration or waits for operands.  ``estimate`` and ``busy``
    are those of the best, which is ``start`` as long as ``best`` is None.  Where it is ``forced``,
    the statement as it is written is no choice; where it is ``using``, what it becomes uses the
    instruction that is asked for.  ``lighter`` permits what takes no less time, but works less.
    ``reached`` had a chance before their mappings were known.
    """

    start: Candidate
    calls: float
    estimate: float
    busy: float
    hungry: bool = False
    forced: bool = False
    using: bool = False
    lighter: bool = True
    best: Candidate | None = None
    offered: list[tuple[float, float, Candidate]] = field(default_factory=list)
    reached: list[Candidate] = field(default_factory=list)

    def limit(self, candidate: Candidate) -> float:
        """Return the cycles below which a candidate is better."""
        if self.best is None:
            return self.estimate / WORTH
        more = len(candidate.rewritings) > len(self.best.rewritings)
        return self.estimate / (ALIKE if more else 1.0)

    @property
    def longer(self) -> float:
        """The cycles below which a candidate of more rewritings is better."""
        return self.estimate / (WORTH if self.best is None else ALIKE)

    def reach(self, candidate: Candidate) -> float:
        """Return the cycles below which a candidate may be better, by what it works if not by them.

        Where statements wait for memory, what works less may be better: the data that they pass to
        each other are in a cache after all.  The estimate of all statements together must say so.
        """
        return self.estimate * FURTHER if self.lighter else self.limit(candidate)

    def offer(self, candidate: Candidate, cycles: float, busy: float) -> None:
        """Take a candidate if it is better, or one before it that is better, too, and costs and
        works about the same in fewer steps: that has the statements in the order in which they
        share rounds best.
        """
        fewer = [
            (before, worked, known)
            for before, worked, known in self.offered
            if before <= cycles * ALIKE and worked <= busy * ALIKE
            if len(known.rewritings) < len(candidate.rewritings)
            if self._is_better(known, before, worked)
        ]
        self.offered.append((cycles, busy, candidate))
        if self._is_better(candidate, cycles, busy):
            found = next(iter(fewer), self.offered[-1])
            self.estimate, self.busy, self.best = found

    def _is_better(self, candidate: Candidate, cycles: float, busy: float) -> bool:
        """Return whether a candidate takes less than the best so far, or works much less."""
        lighter = self.lighter and cycles < self.reach(candidate) and busy * LIGHTER < self.busy
        return cycles < self.limit(candidate) or lighter

    @property
    def alike(self) -> tuple[Candidate, ...]:
        """The best candidate, and all others that the same rules give in another way.

        A statement by itself may like other sizes than in rounds with the ones that follow it.
        """
        if self.best is None:
            return ()
        rules = [one.rule for one in self.best.rewritings]
        others = [c for c in self.reached if [r.rule for r in c.rewritings] == rules]
        return self.best, *(one for one in others if one is not self.best)
