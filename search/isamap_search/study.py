"""A seeded study over a space of schedules: the model proposes, Optuna explores, the clock judges.

The model is asked first, many times; Optuna sees only what is worth a trial (search costs
milliseconds a trial, the model microseconds to milliseconds a schedule).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import Trial, TrialState

from isamap_search.budget import Budget
from isamap_search.objective import Candidate, Measure, Model, Point, rank

# Points the model looks at before the first trial, per trial and at most.
_POOL_PER_TRIAL, _POOL_MOST = 12, 300
# A trial that is built and timed takes about this long.
_RANKING_SECONDS_PER_TRIAL = 0.5
# A candidate this much worse than the best, by the model, is not worth the clock.
_HOPELESS = 3.0
# Candidates that are built together and then timed in turns.
_BATCH = 4
# A space that is nearly used up proposes what is known; so often in a row ends the search.
_STALE = 64


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: its best candidate, and scores of all that were tried.

    A score is seconds a run if ``measured``, else cycles by the model; ``first`` is the score of
    the heuristics' schedule, None if that failed.
    """

    best: Candidate | None
    score: float
    first: float | None
    trials: int
    failed: int
    measured: bool
    interrupted: bool
    scores: tuple[tuple[Point, float], ...]


@dataclass(slots=True)
class _Progress:
    """The trials so far."""

    budget: Budget
    start: float = field(default_factory=monotonic)
    trials: int = 0
    failed: int = 0
    scores: dict[Point, float] = field(default_factory=dict)
    candidates: dict[Point, Candidate] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float:
        """Seconds of the budget; infinite without a clock."""
        limit = self.budget.seconds
        return float("inf") if limit is None else limit - (monotonic() - self.start)

    @property
    def trials_left(self) -> float:
        """Trials of the budget; infinite without a count."""
        limit = self.budget.trials
        return float("inf") if limit is None else limit - self.trials

    @property
    def goes_on(self) -> bool:
        """Whether the budget allows another trial."""
        return self.seconds_left > 0 and self.trials_left > 0

    def note(self, candidate: Candidate, score: float | None) -> None:
        """Count a trial."""
        self.trials += 1
        if score is None:
            self.failed += 1
        else:
            self.scores[candidate.point] = score
            self.candidates[candidate.point] = candidate

    def best_points(self, count: int) -> list[Point]:
        """Return the best points, the best first."""
        return sorted(self.scores, key=lambda point: (self.scores[point], point))[:count]


def search(
    model: Model,
    budget: Budget,
    seed: int,
    measure: Measure | None = None,
    remembered: Sequence[Point] = (),
    storage: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
    noted: Callable[[Candidate, float], None] = lambda _candidate, _seconds: None,
) -> Found:
    """Return the best schedule of a space within a budget.

    ``measure`` times candidates; without it the model's cycles are the score, and the same seed
    with a budget of trials gives the same schedule.  ``remembered`` points are tried early.
    ``storage`` is a journal file that keeps the study; by default it lives in memory.  Each
    measurement is handed to ``noted`` at once.  An interruption ends the search and keeps what it
    found.
    """
    progress = _Progress(budget)
    interrupted = False
    try:
        _explore(model, seed, measure, remembered, storage, progress, tell, noted)
        if measure:
            _settle(measure, progress, model.first, tell)
    except KeyboardInterrupt:
        interrupted = True
    best = next(iter(progress.best_points(1)), None)
    return Found(
        best=progress.candidates[best] if best else None,
        score=progress.scores[best] if best else float("inf"),
        first=progress.scores.get(model.first),
        trials=progress.trials,
        failed=progress.failed,
        measured=measure is not None,
        interrupted=interrupted,
        scores=tuple(sorted(progress.scores.items(), key=lambda item: item[1])),
    )


def _explore(
    model: Model,
    seed: int,
    measure: Measure | None,
    remembered: Sequence[Point],
    storage: Path | None,
    progress: _Progress,
    tell: Callable[[str], None],
    noted: Callable[[Candidate, float], None],
) -> None:
    """Spend the budget: the first schedule, remembered ones, the model's best, then TPE."""
    tell("tune: ranking by the model")
    ranked = _ranked(model, seed, progress, measure is not None)
    study = _study(seed, storage)
    # Half of the trials go to what the model likes, the other half to what TPE makes of it.
    liked = int(min(progress.trials_left, 64) // 2) + 1
    points = dict.fromkeys([model.first, *remembered, *(c.point for c in ranked[:liked])])
    for point in points:
        study.enqueue_trial(model.assignment(point), skip_if_exists=True)
    floor = ranked[0].cycles if ranked else float("inf")
    queued, stale = len(points), 0
    distributions: dict[str, BaseDistribution] = {
        c.name: CategoricalDistribution(range(len(c.options))) for c in model.space.choices
    }
    while progress.goes_on and stale < _STALE:
        batch: list[tuple[Trial, Candidate]] = []
        while len(batch) < min(_BATCH, progress.trials_left) and stale < _STALE:
            trial = study.ask(distributions)
            point = model.point(trial.params)
            candidate = model.candidate(point)
            chosen, queued = queued > 0, queued - 1
            known = point in progress.scores or any(c.point == point for _, c in batch)
            if candidate is None:
                stale += 1
                study.tell(trial, state=TrialState.PRUNED)
            elif known or (not chosen and candidate.cycles > _HOPELESS * floor):
                stale += 1
                study.tell(trial, progress.scores.get(point), _state(progress, point))
            else:
                stale = 0
                batch.append((trial, candidate))
        _try(study, batch, measure, progress, noted)
        tell(_said(progress, measure is not None))


def _ranked(model: Model, seed: int, progress: _Progress, timed: bool) -> list[Candidate]:
    """Return what the model thinks of some points, the best first.

    Where trials are ``timed`` the model takes no longer than they are likely to; where it is the
    only judge it is not stopped, so that the same seed gives the same schedule.
    """
    trials = progress.budget.trials
    count = _POOL_MOST if trials is None else min(_POOL_MOST, _POOL_PER_TRIAL * trials)
    # By the clock, the model gets a quarter of it.
    limit = progress.seconds_left / 4
    if timed and trials is not None:
        limit = min(limit, _RANKING_SECONDS_PER_TRIAL * trials)
    return rank(model, count, seed, lambda: monotonic() - progress.start < limit)


def _study(seed: int, storage: Path | None) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept = None
    if storage:
        kept = JournalStorage(JournalFileBackend(str(storage)))
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=0)
    return optuna.create_study(
        storage=kept, sampler=sampler, study_name="isamap", load_if_exists=True
    )


def _state(progress: _Progress, point: Point) -> TrialState:
    return TrialState.COMPLETE if point in progress.scores else TrialState.PRUNED


def _try(
    study: optuna.Study,
    batch: Sequence[tuple[Trial, Candidate]],
    measure: Measure | None,
    progress: _Progress,
    noted: Callable[[Candidate, float], None],
) -> None:
    """Score a batch and tell the study."""
    candidates = [candidate for _, candidate in batch]
    scores = measure(candidates) if measure else [c.cycles for c in candidates]
    for (trial, candidate), score in zip(batch, scores, strict=True):
        progress.note(candidate, score)
        if score is None:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, score)
            noted(candidate, score)


def _settle(
    measure: Measure, progress: _Progress, first: Point, tell: Callable[[str], None]
) -> None:
    """Time the best few and the first once more, in turns, and keep the smaller times."""
    tell("tune: comparing the best")
    points = dict.fromkeys([*progress.best_points(3), *({first} & progress.scores.keys())])
    candidates = [progress.candidates[point] for point in points]
    for candidate, score in zip(candidates, measure(candidates), strict=True):
        if score is not None:
            earlier = progress.scores[candidate.point]
            progress.scores[candidate.point] = min(earlier, score)


def _said(progress: _Progress, measured: bool) -> str:
    best = min(progress.scores.values(), default=float("inf"))
    of = f" of {progress.budget.trials}" if progress.budget.trials else ""
    shown = f"{best * 1e3:.4g} ms" if measured else f"{best:.4g} cycles"
    return f"tune: {progress.trials}{of} tried, best {shown}"
