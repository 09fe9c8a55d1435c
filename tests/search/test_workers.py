import os
import time
from dataclasses import replace
from subprocess import PIPE, Popen
from sys import executable

import optuna
import pytest

from isamap_search.sampling import distributions
from isamap_search.settings import Place
from isamap_search.trials import Trials, open_trials
from isamap_search.workers import ATTRIBUTE, LEASE_SECONDS, UNSIGNED_SECONDS, Worker, is_lost
from tests.search.bowl import Bowl, model

NOW = time.time()


def _other() -> Worker:
    """A process that lives: our parent."""
    pid = os.getppid()
    with open(f"/proc/{pid}/stat") as file:
        return Worker(Worker.own().host, pid, file.read().rpartition(")")[2].split()[19])


def test_a_living_worker_keeps_its_trials_until_its_lease_is_over() -> None:
    lease = Worker.own().lease()
    assert not is_lost(lease, 1e6, lease["until"] - 1)
    assert is_lost(lease, 0.0, lease["until"] + 1)
    assert not is_lost(_other().lease(), 1e6, NOW)


def test_a_worker_that_has_ended_is_seen_at_once_on_its_own_machine() -> None:
    child = Popen([executable, "-c", "input()"], stdin=PIPE)
    with open(f"/proc/{child.pid}/stat") as file:
        started = file.read().rpartition(")")[2].split()[19]
    worker = Worker(Worker.own().host, child.pid, started)
    assert not is_lost(worker.lease(), 0.0, NOW)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_lost(worker.lease(), 0.0, NOW)  # though it is still a zombie
    child.communicate()
    assert is_lost(worker.lease(), 0.0, NOW)


def test_another_process_with_the_same_number_is_another_worker() -> None:
    assert replace(Worker.own(), started="1").is_gone


def test_of_workers_elsewhere_only_the_lease_is_known() -> None:
    elsewhere = Worker("another host", 1, "1")
    assert not is_lost(elsewhere.lease(), 0.0, NOW)
    assert is_lost(elsewhere.lease(-1.0), 0.0, time.time())


@pytest.mark.parametrize("lease", [None, {}, {"host": "h"}, "x", {"host": 1, "pid": "p"}])
def test_what_nobody_signed_is_lost_after_a_while(lease: object) -> None:
    assert not is_lost(lease, UNSIGNED_SECONDS - 1, NOW)
    assert is_lost(lease, UNSIGNED_SECONDS + 1, NOW)
    assert UNSIGNED_SECONDS < LEASE_SECONDS


def _trials(sampler: str = "tpe") -> Trials:
    return open_trials(Place(), {}, Bowl().choices, sampler, 0, ("time",))  # type: ignore[arg-type]


def _joined(trials: Trials) -> Trials:
    """The same study as another worker sees it."""
    drawn = distributions(Bowl().choices)  # type: ignore[arg-type]
    return Trials(trials.study, trials.names, trials.objectives, drawn, trials.storage)


def test_a_lost_trial_is_tried_once_more_and_not_a_third_time() -> None:
    trials = _trials()
    gone = {**Worker.own().lease(), "started": "1"}
    points = []
    for _ in range(2):
        ticket = trials.ask()
        points.append(ticket.point)
        assert ticket.trial is not None
        ticket.trial.set_user_attr(ATTRIBUTE, gone)
        assert _joined(trials).recover() == 1
        assert _joined(trials).recover() == 0
    assert points[0] == points[1]
    states = [trial.state for trial in trials.study.trials]
    assert states == [optuna.trial.TrialState.FAIL] * 2


def test_what_was_timed_before_its_worker_ended_is_told() -> None:
    trials = _trials()
    ticket = trials.ask()
    assert ticket.trial is not None
    ticket.trial.set_user_attr(ATTRIBUTE, {**Worker.own().lease(), "started": "1"})
    ticket.trial.set_user_attr("isamap:values", [0.5])
    ticket.trial.set_user_attr("isamap:outcome", "measured")
    other = _joined(trials)
    assert other.recover() == 1
    (told,) = other.news()
    assert (told.point, told.outcome, told.values) == (ticket.point, "measured", (0.5,))


def test_trials_of_living_workers_are_left_alone() -> None:
    trials = _trials()
    trials.ask()
    assert _joined(trials).recover() == 0


def test_telling_a_trial_that_was_taken_for_lost_is_no_fault() -> None:
    trials = _trials()
    ticket = trials.ask()
    assert ticket.trial is not None
    ticket.trial.set_user_attr(ATTRIBUTE, Worker("elsewhere", 1, "1").lease(-1.0))
    assert _joined(trials).recover() == 1
    trials.renew([ticket])
    trials.tell(ticket, "measured", [0.5])
    assert trials.study.trials[0].state == optuna.trial.TrialState.FAIL


def test_points_are_queued_once() -> None:
    trials = _trials()
    trials.enqueue([(1, 2, 3), (1, 2, 3), (0, 1, 0)])
    trials.enqueue([(0, 1, 0), (2, 2, 2)])
    assert [trials.ask().point for _ in range(3)] == [(1, 2, 3), (0, 1, 0), (2, 2, 2)]
    assert model().point(Bowl().first) == (0, 1, 0)


def test_ordered_choices_are_numbers_and_others_are_not() -> None:
    drawn = distributions(Bowl().choices)  # type: ignore[arg-type]
    kinds = [type(d).__name__ for d in drawn.values()]
    assert kinds == ["IntDistribution", "IntDistribution", "CategoricalDistribution"]
