"""A seeded search over a space of schedules: the model proposes, Optuna explores, the clock judges.

The model is asked first, many times; Optuna sees only what is worth a trial (search costs
milliseconds a trial, the model microseconds to milliseconds a schedule).
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from statistics import median
from time import monotonic

from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError

from isamap_search.budget import Budget
from isamap_search.diverse import best_and_diverse
from isamap_search.explore import Explorer
from isamap_search.logged import is_count, list_of, point_of
from isamap_search.objective import Candidate, Model, Point, rank
from isamap_search.plan import Bench, Found, Measured, Order, Plan, Scored
from isamap_search.race import Standing
from isamap_search.storage import close, failed
from isamap_search.tape import Tape, Untaped
from isamap_search.trials import open_trials

# Points the model looks at before the first trial, per trial and at most.
_POOL_PER_TRIAL, _POOL_MOST = 12, 300
# A trial that is built and timed takes about this long.
_RANKING_SECONDS_PER_TRIAL = 0.5


def search(
    model: Model,
    budget: Budget,
    seed: int,
    bench: Bench | None = None,
    plan: Plan | None = None,
    tape: Tape | None = None,
    remembered: Sequence[Point] = (),
    order: Order | None = None,
    tell: Callable[[str], None] = lambda _: None,
    noted: Callable[[Measured], None] = lambda _: None,
) -> Found:
    """Return the best schedule of a space within a budget.

    ``bench`` times candidates; without it the model's cycles are the score, and the same seed with
    a budget of trials gives the same schedule.  ``remembered`` points are tried early; ``order``
    replaces the model's order of what is tried first.  Each measurement is told to the study and
    handed to ``noted`` at once.  An interruption ends the search and keeps what it found.

    ToolError when the study's storage fails, ReplayError when ``tape`` replays another search.
    """
    plan, tape, start = plan or Plan(), tape or Untaped(), monotonic()
    try:
        trials = open_trials(
            plan.place, plan.identity, model.space.choices, plan.sampler, seed, plan.objectives
        )
    except (SQLAlchemyError, StorageInternalError) as error:
        raise failed(plan.place, error) from error
    explorer = Explorer(
        model, budget, bench, plan, tape, trials, start, float("inf"), frozenset(), tell, noted
    )
    interrupted, beside = False, None
    try:
        if bench is not None:
            # What is likely to be good is timed at once; the model takes seconds to rank others.
            early = _early(model, remembered, order, tape)
            explorer.wanted = frozenset(early)
            explorer.begin(trials.enqueue(early))
        tell("tune: ranking by the model")
        ranked = _ranked(model, seed, budget, bench is not None, tape)
        explorer.floor = ranked[0].cycles if ranked else float("inf")
        wanted = _wanted(model, budget, ranked, remembered, order, tape)
        explorer.wanted = frozenset(wanted)
        trials.enqueue(wanted)
        explorer.explore()
        if bench is not None:
            beside = explorer.settle()
    except KeyboardInterrupt:
        interrupted = True
        tape.interrupted()
    except (SQLAlchemyError, StorageInternalError) as error:
        raise failed(plan.place, error) from error
    finally:
        close(trials.storage)
    return _found(explorer, beside, interrupted)


def _ranked(model: Model, seed: int, budget: Budget, timed: bool, tape: Tape) -> list[Candidate]:
    """Return what the model thinks of some points, the best first.

    Where trials are ``timed`` the model takes no longer than they are likely to; where it is the
    only judge it is not stopped, so that the same seed gives the same schedule.
    """
    trials, seconds = budget.trials, budget.seconds
    count = _POOL_MOST if trials is None else min(_POOL_MOST, _POOL_PER_TRIAL * trials)
    # By the clock, the model gets a quarter of it.
    limit = float("inf") if seconds is None else seconds / 4
    if timed and trials is not None:
        limit = min(limit, _RANKING_SECONDS_PER_TRIAL * trials)
    start = monotonic()
    found: list[Candidate] | None = None

    def look() -> int:
        nonlocal found
        allowed = 0

        def go_on() -> bool:
            nonlocal allowed
            goes_on = monotonic() - start < limit
            allowed += goes_on
            return goes_on

        found = rank(model, count, seed, go_on)
        return allowed

    allowed = iter(range(tape.take("ranked", look, is_count)))
    if found is None:  # a replay: as far as the clock allowed then
        found = rank(model, count, seed, lambda: next(allowed, None) is not None)
    return found


def _early(
    model: Model, remembered: Sequence[Point], order: Order | None, tape: Tape
) -> list[Point]:
    """Return what is worth the clock whatever else there is."""
    points = dict.fromkeys([model.first, *remembered])
    if not (order or remembered):
        return list(points)
    # From records, which a replay does not have.
    fits = list_of(point_of(model.space.choices))
    return [tuple(p) for p in tape.take("early", lambda: [list(p) for p in points], fits)]


def _wanted(
    model: Model,
    budget: Budget,
    ranked: Sequence[Candidate],
    remembered: Sequence[Point],
    order: Order | None,
    tape: Tape,
) -> list[Point]:
    """Return what is tried first: the heuristics' schedule, remembered ones, those of the suggested
    ones that are worth it, the model's choice of all."""
    # Half of the trials go to what the models like, the other half to what the sampler makes of it.
    trials = 64 if budget.trials is None else min(budget.trials, 64)

    def choose() -> list[list[int]]:
        ordered = order(ranked) if order else ranked
        suggested = set(model.suggested)
        tiled = best_and_diverse([c for c in ordered if c.point in suggested], trials // 4)
        liked = best_and_diverse(ordered, trials // 2 + 1 - len(tiled))
        # By turns, as time may be too short for all.
        pairs = zip_longest(liked, tiled)
        chosen = [one.point for pair in pairs for one in pair if one is not None]
        points = dict.fromkeys([model.first, *remembered, *chosen])
        return [list(point) for point in points]

    if order or remembered:  # from records, which a replay does not have
        fits = list_of(point_of(model.space.choices))
        return [tuple(point) for point in tape.take("wanted", choose, fits)]
    tape.check("wanted", points := choose())
    return [tuple(point) for point in points]


def _found(explorer: Explorer, beside: Standing[Candidate] | None, interrupted: bool) -> Found:
    model, measured = explorer.model, explorer.bench is not None
    points = explorer.best_points(1)
    best = explorer.incumbent
    score: float | None
    first: float | None
    if not measured:
        best = model.candidate(points[0]) if points else None
        score = explorer.values[points[0]][0] if points else None
        first = explorer.values.get(model.first, (None,))[0]
    elif beside is not None:
        # The first's own median times the ratio: what is not slower by turns is not slower here.
        score = median(beside.beside) * beside.ratio
        first = None if model.first in explorer.failed else median(beside.beside)
    else:
        score = explorer.seconds.get(best.point) if best else None
        first = explorer.seconds.get(model.first)
    several = len(explorer.plan.objectives) > 1
    front = explorer.front() if several else []
    return Found(
        best=best,
        score=score,
        first=first,
        beside=beside if beside and beside.candidate.point != model.first else None,
        trials=explorer.made,
        failed=explorer.failures,
        dropped=explorer.dropped,
        others=explorer.others,
        measured=measured,
        interrupted=interrupted,
        values=tuple(sorted(explorer.values.items(), key=lambda item: (item[1], item[0]))),
        front=tuple(Scored(point, explorer.values[point]) for point in front),
        warnings=explorer.trials.warnings,
    )
