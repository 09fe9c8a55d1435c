"""Several workers, on a real PostgreSQL server, of which some are killed."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from isamap.diagnostics import ToolError
from isamap_search.budget import Budget
from isamap_search.plan import Plan
from isamap_search.settings import Place
from isamap_search.storage import close, open_storage
from isamap_search.study import search
from isamap_search.workers import ATTRIBUTE
from tests.search import postgres
from tests.search.bowl import Bench, model
from tests.search.worker import ENVIRONMENT, ROOT, start

BEST = [5, 3, 1]


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    home = postgres.programs()
    if home is None:
        text = f"no PostgreSQL here; '{postgres.INSTALL}' enables this test"
        assert os.environ.get("CI") != "true", text
        pytest.skip(text)
    with postgres.server(home) as made:
        yield made


@pytest.fixture
def place(server: postgres.Server) -> Place:
    return Place(url=server.database(), name="bowl")


def _trials(place: Place) -> list[FrozenTrial]:
    storage = open_storage(place)
    try:
        return optuna.load_study(study_name=place.name, storage=storage).get_trials()
    finally:
        close(storage)


def _tried(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    return [t for t in trials if t.user_attrs.get("isamap:outcome") in ("measured", "ended early")]


def test_workers_share_a_study_and_one_that_is_killed_loses_nothing(place: Place) -> None:
    workers = [start(place, 28, seed) for seed in range(3)]
    for worker in workers:
        worker.wait_until_it_times()
    before = _trials(place)
    workers[0].kill()
    held = {t.number for t in before if t.state == TrialState.RUNNING}
    for worker in workers[1:]:
        worker.go_on()
    results = [worker.result() for worker in workers[1:]]
    after = {t.number: t for t in _trials(place)}
    assert len(held) >= 3
    assert [t.number for t in after.values() if t.state == TrialState.RUNNING] == []
    for trial in _tried(before):  # nothing that was measured is lost or changed
        assert after[trial.number].user_attrs["isamap:values"] == trial.user_attrs["isamap:values"]
    lost = [t for n, t in after.items() if n in held and t.state == TrialState.FAIL]
    assert lost
    known = {tuple(t.params.values()) for t in _tried(list(after.values()))}
    waiting = [t for t in after.values() if t.state == TrialState.WAITING]
    known |= {tuple(t.system_attrs["fixed_params"].values()) for t in waiting}
    for trial in lost:  # and what the dead one held was timed by another, or is the next to be
        assert tuple(trial.params.values()) in known
    assert [result["best"] for result in results] == [BEST, BEST]
    assert all(result["others"] > 0 for result in results)
    # Each may have taken a last batch when the budget was just not spent.
    assert 28 <= len(_tried(list(after.values()))) <= 28 + 2 * 4


def test_a_study_goes_on_after_all_of_its_workers_were_killed(place: Place) -> None:
    for seed in range(2):
        worker = start(place, 20, seed)
        worker.wait_until_it_times()
        worker.kill()
    before = _trials(place)
    found = search(model(), Budget(trials=20), 0, Bench(), Plan(place=place))
    assert found.others >= len(_tried(before)) > 0
    assert found.best is not None
    assert list(found.best.point) == BEST
    assert TrialState.RUNNING not in {t.state for t in _trials(place)}


def test_workers_may_all_begin_on_an_empty_database_at_once(place: Place) -> None:
    workers = [start(place, 8, seed) for seed in range(4)]
    for worker in workers:
        worker.go_on()
    assert all(worker.result()["best"] for worker in workers)
    assert len(_tried(_trials(place))) >= 8


def test_a_server_that_stops_is_told(server: postgres.Server) -> None:
    home = postgres.programs()
    assert home is not None
    with postgres.server(home) as own:
        place = Place(url=own.database(), name="bowl")

        class Stopping(Bench):
            def __call__(self, candidates, rounds):  # type: ignore[no-untyped-def]
                own.stop()
                return super().__call__(candidates, rounds)

        with pytest.raises(ToolError, match=r"the storage postgresql://isamap@/.* fails"):
            search(model(), Budget(trials=30), 0, Stopping(), Plan(place=place))
        with pytest.raises(ToolError, match="fails"):
            open_storage(place)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_the_command_shares_a_study_and_survives_a_kill(tmp_path: Path, place: Place) -> None:
    kernel = tmp_path / "mm.ir"
    kernel.write_text(
        "kernel mm(M = 24, N = 40, K = 16) {\n  in A : f32[M, K]\n  in B : f32[K, N]\n"
        "  out C : f32[M, N]\n  C[m, n] += A[m, k] * B[k, n]\n}\n"
    )
    assert place.url is not None
    command = [sys.executable, "-m", "isamap", "map", str(kernel), "--hw", "portable_c",
               "--storage", place.url, "--study", "bowl", "--no-records", "--tune"]  # fmt: skip
    first = Popen([*command, "500"], env=ENVIRONMENT, cwd=ROOT, stdout=PIPE, stderr=PIPE)
    _wait_for_a_running_trial(place, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wanted = str(len(_tried(_trials(place))) + 6)
    others = [
        Popen([*command, wanted], env=ENVIRONMENT, cwd=ROOT, stdout=PIPE, text=True)
        for _ in range(2)
    ]
    told = [other.communicate(timeout=300)[0] for other in others]
    assert [other.returncode for other in others] == [0, 0]
    for text in told:
        assert "study bowl (tpe) in postgresql://isamap@/" in " ".join(text.split())
        assert "agree with the interpreter" in text
    trials = _trials(place)
    signed = [t for t in trials if ATTRIBUTE in t.user_attrs]
    assert TrialState.RUNNING not in {t.state for t in signed}
    assert len(_tried(trials)) >= int(wanted)


def _wait_for_a_running_trial(place: Place, worker: "Popen[bytes]") -> None:
    """Return when a worker has signed a trial."""
    for _ in range(3000):
        assert worker.poll() is None, worker.communicate()[1].decode()
        try:
            trials = _trials(place)
        except (KeyError, ToolError):  # there is no study yet
            trials = []
        if any(t.state == TrialState.RUNNING and ATTRIBUTE in t.user_attrs for t in trials):
            return
        time.sleep(0.05)
    raise AssertionError("no trial was begun")
