"""The trials of a study that several processes may share: asked for, told, and recovered."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, get_args
from uuid import uuid4

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from isamap.diagnostics import ArgumentsError, Diagnostic, fail
from isamap.schedule.space import Choice
from isamap_search.objective import Point
from isamap_search.sampling import distributions, make_sampler
from isamap_search.settings import Place
from isamap_search.storage import DEFAULT, open_storage
from isamap_search.workers import ATTRIBUTE, Worker, is_lost

Outcome = Literal["measured", "ended early", "failed", "no schedule", "repeated"]
"""How a trial ended: timed to the end; dropped after a few repeats; its code failed; its choices
contradict; or it was known already."""

TRIED: tuple[Outcome, ...] = ("measured", "ended early", "failed")
"""Outcomes that a budget of trials counts."""

_OUTCOME, _VALUES, _IDENTITY, _WORKER = (
    "isamap:outcome",
    "isamap:values",
    "isamap:identity",
    "isamap:worker:",
)
_RETRY = "isamap:retry"


@dataclass(frozen=True, slots=True)
class Told:
    """A finished trial; ``values`` is empty unless it was timed."""

    point: Point
    outcome: Outcome
    values: tuple[float, ...]


@dataclass(slots=True)
class Ticket:
    """A trial that this worker has taken; ``trial`` None in a replay that asks nobody."""

    point: Point
    trial: Trial | None = None


@dataclass(slots=True)
class Trials:
    """A study, as one of its workers sees it; open with :func:`open_trials`.

    ``warnings`` are about what could not be read of it.
    """

    study: optuna.Study
    names: tuple[str, ...]
    objectives: tuple[str, ...]
    drawn: Mapping[str, BaseDistribution]
    storage: BaseStorage
    worker: Worker = field(default_factory=Worker.own)
    warnings: tuple[Diagnostic, ...] = ()
    _seen: set[int] = field(default_factory=set)

    def ask(self) -> Ticket:
        """Return the next trial: one that waits, else one that the sampler proposes."""
        trial = self.study.ask()
        trial.set_user_attr(ATTRIBUTE, self.worker.lease())
        self._seen.add(trial.number)
        return Ticket(tuple(_drawn(trial, name, self.drawn[name]) for name in self.names), trial)

    def renew(self, tickets: Iterable[Ticket]) -> None:
        """Say that this worker still works on some trials."""
        for ticket in tickets:
            if ticket.trial is not None:
                with suppress(UpdateFinishedTrialError):
                    ticket.trial.set_user_attr(ATTRIBUTE, self.worker.lease())

    def tell(self, ticket: Ticket, outcome: Outcome, values: Sequence[float] = ()) -> None:
        """Finish a trial, unless another worker took it for lost."""
        trial = ticket.trial
        if trial is None:
            return
        with suppress(UpdateFinishedTrialError):
            if values:
                trial.set_user_attr(_VALUES, list(values))
            trial.set_user_attr(_OUTCOME, outcome)
            if outcome == "failed":
                self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            elif not values or (outcome == "ended early" and len(self.objectives) == 1):
                if values:
                    trial.report(values[0], 1)
                self.study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
            else:
                self.study.tell(trial, list(values), skip_if_finished=True)

    def enqueue(self, points: Iterable[Point]) -> int:
        """Have points tried next, in their order; return how many the study did not hold yet."""
        found = self.study.get_trials(deepcopy=False)
        params = [trial.system_attrs.get("fixed_params", trial.params) for trial in found]
        held = {self._point(own) for own in params if self._is_whole(own)}
        new = [point for point in dict.fromkeys(points) if point not in held]
        for point in new:
            self.study.enqueue_trial(dict(zip(self.names, point, strict=True)))
        return len(new)

    @property
    def is_alone(self) -> bool:
        """Whether no other worker has ever joined the study."""
        return sum(key.startswith(_WORKER) for key in self.study.user_attrs) == 1

    def news(self) -> list[Told]:
        """Return what other workers, or earlier ones, have finished since the last call."""
        found = []
        for trial in self.study.get_trials(deepcopy=False):
            if trial.number not in self._seen and trial.state.is_finished():
                self._seen.add(trial.number)
                if (told := self._told(trial)) is not None:
                    found.append(told)
        return found

    @property
    def tried(self) -> int:
        """Trials of all workers that count."""
        finished = self.study.get_trials(deepcopy=False)
        return sum(trial.user_attrs.get(_OUTCOME) in TRIED for trial in finished)

    def recover(self) -> int:
        """Finish the trials of workers that are gone; return how many there were.

        What was timed is told; the others are to be tried again, but not a third time.
        """
        now, count = time.time(), 0
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            age = now - trial.datetime_start.timestamp() if trial.datetime_start else 0.0
            if trial.number not in self._seen and is_lost(
                trial.user_attrs.get(ATTRIBUTE), age, now
            ):
                count += self._finish(trial)
        return count

    def _finish(self, trial: FrozenTrial) -> bool:
        """Finish a lost trial; return whether no other worker did."""
        attributes = trial.user_attrs
        try:
            if attributes.get(_OUTCOME) == "measured" and _VALUES in attributes:
                self.study.tell(trial.number, attributes[_VALUES])
                return True
            self.study.tell(trial.number, state=TrialState.FAIL)
        except (UpdateFinishedTrialError, ValueError):
            return False
        params = trial.system_attrs.get("fixed_params", trial.params)
        if _OUTCOME not in attributes and _RETRY not in attributes and self._is_whole(params):
            self.study.enqueue_trial(params, user_attrs={_RETRY: trial.number})
        return True

    def _point(self, params: Mapping[str, Any]) -> Point:
        return tuple(params[name] for name in self.names)

    def _is_whole(self, params: Mapping[str, Any]) -> bool:
        return all(name in params for name in self.names)

    def _told(self, trial: FrozenTrial) -> Told | None:
        outcome: Any = trial.user_attrs.get(_OUTCOME)
        if outcome not in get_args(Outcome) or not self._is_whole(trial.params):
            return None
        values = tuple(map(float, trial.user_attrs.get(_VALUES, ())))
        return Told(self._point(trial.params), outcome, values)


def _drawn(trial: Trial, name: str, distribution: BaseDistribution) -> int:
    if isinstance(distribution, IntDistribution):
        return int(trial.suggest_int(name, distribution.low, distribution.high))
    assert isinstance(distribution, CategoricalDistribution)
    return int(str(trial.suggest_categorical(name, distribution.choices)))


def open_trials(
    place: Place,
    identity: Mapping[str, str],
    choices: Sequence[Choice],
    sampler: str,
    seed: int,
    objectives: Sequence[str],
) -> Trials:
    """Return a study at a place, begun or joined.

    ``identity`` says what is searched; ArgumentsError when the study there searches something else.
    The first worker of a study has ``seed`` itself, later ones seeds of their own, so that they do
    not propose the same.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings: list[Diagnostic] = []
    storage = open_storage(place, len(objectives), warnings.append)
    name = place.name or DEFAULT
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        directions=["minimize"] * len(objectives),
        load_if_exists=True,
    )
    known = study.user_attrs.get(_IDENTITY)
    wanted = {**identity, "objectives": ",".join(objectives)}
    if known is None:
        study.set_user_attr(_IDENTITY, wanted)
    elif known != wanted:
        differing = [key for key in wanted if known.get(key) != wanted[key]]
        text = f"the study '{name}' in {place} searches something else: another "
        hint = "--study names another one"
        raise ArgumentsError(fail("E738", text + " and another ".join(differing), hint=hint))
    study.set_user_attr(f"{_WORKER}{uuid4().hex}", Worker.own().lease())
    workers = sorted(key for key in study.user_attrs if key.startswith(_WORKER))
    own = seed
    if len(workers) > 1:
        own = int(sha256(f"{seed} {workers}".encode()).hexdigest()[:7], 16)
    study.sampler = make_sampler(sampler, own, objectives)
    names = tuple(choice.name for choice in choices)
    drawn = distributions(choices)
    return Trials(study, names, tuple(objectives), drawn, storage, warnings=tuple(warnings))
