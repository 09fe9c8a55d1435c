"""The trials of one worker: which candidates it takes, times against each other, and believes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from isamap_search.budget import Budget
from isamap_search.goals import dominates, workspace_bytes, written_calls
from isamap_search.logged import is_count, is_flag, news_of, point_of, samples_of
from isamap_search.objective import Candidate, Model, Point
from isamap_search.plan import Bench, Measured, Plan
from isamap_search.race import Rules, Standing, against, race
from isamap_search.tape import Tape
from isamap_search.trials import Ticket, Trials

# A candidate this much worse than the best, by the model, is not worth the clock.
_HOPELESS = 3.0
# How trials end that others learn from.
_FINISHED = ("measured", "ended early", "failed")
# Candidates that are built together and then timed in turns.
_BATCH = 4
# A space that is nearly used up proposes what is known; so often in a row ends the search.
_STALE = 64
# The last comparison takes these many more of the best, and looks longer.
_FINALISTS, _FINAL_STAGES = 3, (7, 13, 21, 31)


@dataclass(slots=True)
class Explorer:
    """Makes trials until the budget is spent, then compares the best once more.

    ``floor`` is the least number of cycles that the model knows of; ``wanted`` are points that are
    tried whatever the model thinks of them.  ``noted`` hears of each measured candidate.  ``tried``
    has the point with which a schedule was, by the one that stands for all that make it.
    """

    model: Model
    budget: Budget
    bench: Bench | None
    plan: Plan
    tape: Tape
    trials: Trials
    start: float
    floor: float
    wanted: frozenset[Point]
    tell: Callable[[str], None]
    noted: Callable[[Measured], None]
    made: int = 0
    dropped: int = 0
    others: int = 0
    values: dict[Point, tuple[float, ...]] = field(default_factory=dict)
    hopeless: set[Point] = field(default_factory=set)
    failed: set[Point] = field(default_factory=set)
    tried: dict[Point, Point] = field(default_factory=dict)
    seconds: dict[Point, float] = field(default_factory=dict)
    incumbent: Candidate | None = None
    _failed_here: int = 0
    _rivals: set[Point] = field(default_factory=set)

    @property
    def failures(self) -> int:
        """Trials of this worker whose code failed."""
        return self._failed_here

    def begin(self, count: int) -> None:
        """Time the first ``count`` trials that wait, at most a batch of them."""
        self._listen()
        count = self.tape.take("early trials", lambda: min(count, self._left()), is_count)
        batch, _ = self._ask(count, count)
        if batch:
            self._time(batch)
            self.tell(self._said())

    def explore(self) -> None:
        """Spend the budget."""
        self._listen()
        stale = 0
        while stale < _STALE and (room := self.tape.take("left", self._left, is_count)):
            batch, repeated = self._ask(room, _STALE - stale)
            stale = 0 if batch else stale + repeated
            if self.bench is not None and batch:
                self._time(batch)
            else:
                self._estimate(batch)
            self._listen()
            self.tell(self._said())

    def best_points(self, count: int) -> list[Point]:
        """Return the points with the least time, the best first; none that was dropped."""
        known = [point for point in self.values if point not in self.hopeless]
        return sorted(known, key=lambda point: (self.values[point][0], point))[:count]

    def front(self) -> list[Point]:
        """Return the points that no other is better than in every objective, the fastest first."""
        found: list[Point] = []
        for point in sorted(self.values, key=lambda p: (self.values[p], p)):
            own = self.values[point]
            seen = (self.values[other] for other in found)
            if not any(dominates(other, own) or other == own for other in seen):
                found.append(point)
        return found

    # --- what to try ----------------------------------------------------------------------------
    def _left(self) -> int:
        """Return how many candidates may be tried next; 0 when the budget is spent."""
        limit = self.budget.seconds
        if limit is not None and monotonic() - self.start >= limit:
            return 0
        if self.budget.trials is None:
            return _BATCH
        return max(0, min(_BATCH, self.budget.trials - self.trials.tried))

    def _ask(self, room: int, patience: int) -> tuple[list[tuple[Ticket, Candidate]], int]:
        """Return candidates to try, and how many proposals before them were of no use."""
        batch: list[tuple[Ticket, Candidate]] = []
        useless = 0
        while len(batch) < room and useless < patience:
            ticket = self._proposed()
            point = ticket.point
            candidate = self.model.candidate(point)
            if candidate is None:
                useless += 1
                self.trials.tell(ticket, "no schedule")
            elif (known := self._known_as(candidate)) in self.failed or any(
                c.point == known for _, c in batch
            ):
                useless += 1
                self.trials.tell(ticket, "repeated")
            elif known in self.values:
                useless += 1
                self.trials.tell(ticket, "repeated", self.values[known])
            elif point not in self.wanted and candidate.cycles > _HOPELESS * self.floor:
                useless += 1
                self.trials.tell(ticket, "repeated")
            else:
                self.tried[self.model.alias(candidate)] = point
                batch.append((ticket, candidate))
        self.tape.take("alone", lambda: self.trials.is_alone, is_flag)
        return batch, useless

    def _known_as(self, candidate: Candidate) -> Point:
        """Return the point with which this worker tried the same schedule, or the candidate's."""
        if candidate.point in self.values:
            return candidate.point
        return self.tried.get(self.model.alias(candidate), candidate.point)

    def _proposed(self) -> Ticket:
        if self.tape.proposals_are_taken:
            return Ticket(tuple(self.tape.take("asked", list, point_of(self.model.space.choices))))
        ticket = self.trials.ask()
        self.tape.check("asked", ticket.point)
        return ticket

    def _listen(self) -> None:
        """Take over what others have finished, and the trials that dead ones have left."""
        fits = news_of(self.model.space.choices, _FINISHED)
        news = self.tape.take("news", self._news, fits)
        for point, outcome, values in news:
            self.others += 1
            known = tuple(point)
            if outcome == "failed":
                self.failed.add(known)
            elif values:
                self.values[known] = tuple(values)
                if outcome == "ended early":
                    self.hopeless.add(known)

    def _news(self) -> list[tuple[Sequence[int], str, Sequence[float]]]:
        if self.plan.place.lasts:
            self.trials.recover()
        told = [(one.point, one.outcome, one.values) for one in self.trials.news()]
        return [one for one in told if one[1] in _FINISHED]

    # --- what it is worth -----------------------------------------------------------------------
    def _estimate(self, batch: Sequence[tuple[Ticket, Candidate]]) -> None:
        for ticket, candidate in batch:
            self.made += 1
            self.values[ticket.point] = self._values(candidate, candidate.cycles)
            self.trials.tell(ticket, "measured", self.values[ticket.point])

    def _values(self, candidate: Candidate, time: float) -> tuple[float, ...]:
        """Return the values of all objectives."""
        return tuple(
            time if objective == "time" else self._figure(candidate, objective)
            for objective in self.plan.objectives
        )

    def _figure(self, candidate: Candidate, objective: str) -> float:
        if objective == "memory":
            symbols, threads = self.model.symbols, self.plan.threads
            return float(workspace_bytes(candidate.lowered, symbols, threads))
        if (bench := self.bench) is None:
            return float(written_calls(candidate.lowered.code))
        return float(self.tape.take("bytes", lambda: bench.code_bytes(candidate), is_count))

    def _time(self, batch: Sequence[tuple[Ticket, Candidate]]) -> None:
        """Time a batch beside the best so far and the first schedule, all by turns."""
        tickets = [ticket for ticket, _ in batch]
        runners = {c.point: c for c in (*self._yardsticks(), *(c for _, c in batch))}
        found = self._race(list(runners.values()), self.plan.rules, tickets)
        standings = {standing.candidate.point: standing for standing in found}
        running = [standing for standing in found if standing.verdict != "failed"]
        scale = self._scale(standings, running)
        for ticket, candidate in batch:
            self.made += 1
            standing = standings[ticket.point]
            if standing.verdict == "failed":
                self._failed_here += 1
                self.failed.add(ticket.point)
                self.trials.tell(ticket, "failed")
                continue
            values = self._values(candidate, standing.ratio * scale)
            self.values[ticket.point] = values
            if standing.verdict == "hopeless":
                self.dropped += 1
                self.hopeless.add(ticket.point)
                self.trials.tell(ticket, "ended early", values)
            else:
                self.trials.tell(ticket, "measured", values)
        for standing in running:
            # By the reference's median: its own samples may be from a few rounds only.
            self.seconds[standing.candidate.point] = standing.ratio * running[0].seconds
        for _, candidate in batch:
            standing = standings[candidate.point]
            if standing.verdict != "failed":
                seconds, ratio = self.seconds[candidate.point], standing.ratio * scale
                self.noted(Measured(candidate, seconds, ratio, len(standing.samples)))
        self._choose(running)

    def _yardsticks(self) -> list[Candidate]:
        """Return what challengers are timed beside: the best so far, the first, others' best."""
        found = [self.incumbent]
        if self.model.first not in self.failed:
            found.append(self.model.candidate(self.model.first))
        for point in self.best_points(1):
            if self.incumbent is None or point not in {self.incumbent.point, *self._rivals}:
                self._rivals.add(point)
                found.append(self.model.candidate(point))
        return [candidate for candidate in found if candidate is not None]

    def _race(
        self, candidates: Sequence[Candidate], rules: Rules, tickets: Sequence[Ticket] = ()
    ) -> list[Standing[Candidate]]:
        bench = self.bench
        assert bench is not None

        def timed(runners: Sequence[Candidate], rounds: int) -> Sequence[Sequence[float] | None]:
            self.tape.check("timed", [[c.point for c in runners], rounds])
            fits = samples_of(len(runners), rounds)
            found = self.tape.take("samples", lambda: _plain(bench(runners, rounds)), fits)
            self.trials.renew(tickets)
            return found

        return race(timed, candidates, rules, self._may_drop)

    def _may_drop(self, candidate: Candidate) -> bool:
        """Return whether a slow candidate is no better in the other objectives either.

        Not known before its code is: with several objectives all are timed to the end.
        """
        return len(self.plan.objectives) == 1 and candidate.point != self.model.first

    def _scale(
        self,
        standings: dict[Point, Standing[Candidate]],
        running: Sequence[Standing[Candidate]],
    ) -> float:
        """Return what turns a ratio to the reference into one to the first schedule.

        Where that fails, into one to the first candidate that did not.
        """
        first = standings.get(self.model.first)
        if first is not None and first.verdict != "failed":
            return 1 / first.ratio
        if first is not None:
            self.failed.add(self.model.first)
        known = self.values.get(running[0].candidate.point) if running else None
        return known[0] if known else 1.0

    def _choose(self, running: Sequence[Standing[Candidate]]) -> None:
        """Keep the reference, or take what has proved to be faster in the same race."""
        if running:
            faster = [standing for standing in running if standing.verdict == "faster"]
            best = min(faster, key=lambda standing: standing.ratio, default=running[0])
            self.incumbent = best.candidate
            self.tape.check("best so far", best.candidate.point)

    # --- the end --------------------------------------------------------------------------------
    def settle(self) -> Standing[Candidate] | None:
        """Time the best few and the first schedule once more; return the best beside the first.

        Without the first, the best stands beside itself.  None where nothing runs.
        """
        self.tell("tune: comparing the best with the first schedule")
        points = [*self.best_points(_FINALISTS), self.model.first]
        if self.incumbent is not None:
            points.insert(0, self.incumbent.point)
        candidates = [self.model.candidate(p) for p in dict.fromkeys(points)]
        rules = replace(self.plan.rules, stages=_FINAL_STAGES)
        usable = [c for c in candidates if c is not None and c.point not in self.failed]
        found = [s for s in self._race(usable, rules) if s.verdict != "failed"] if usable else []
        if not found:
            return None
        best = min(found, key=lambda standing: standing.ratio)
        first = next((s for s in found if s.candidate.point == self.model.first), None)
        if first is None:
            self.failed.add(self.model.first)
            first = best
        beside = against(best, first)
        if beside.ratio > 1:  # in the rounds that both have
            beside = against(first, first)
        self.incumbent = beside.candidate
        self.tape.check("best", beside.candidate.point)
        return beside

    def _said(self) -> str:
        of = f" of {self.budget.trials}" if self.budget.trials else ""
        text = f"tune: {self.made}{of} tried"
        if self.bench is None:
            least = min((values[0] for values in self.values.values()), default=float("inf"))
            return f"{text}, best {least:.4g} cycles"
        if self.incumbent is None:
            return f"{text}, none of them runs"
        text += f", best {self.seconds[self.incumbent.point] * 1e3:.4g} ms"
        known = self.values.get(self.incumbent.point)
        return f"{text}, {known[0]:.3g} times the first schedule's" if known else text


def _plain(found: Sequence[Sequence[float] | None]) -> list[list[float] | None]:
    return [None if samples is None else list(map(float, samples)) for samples in found]
