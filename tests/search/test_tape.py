import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from isamap.diagnostics import ArgumentsError
from isamap_search.budget import Budget
from isamap_search.objective import Candidate, Point
from isamap_search.plan import Found, Plan
from isamap_search.settings import SAMPLERS, Place
from isamap_search.study import search
from isamap_search.tape import Recorder, Replay, ReplayError, read_log
from tests.search.bowl import Bench, model


class NoBench:
    def __call__(self, candidates: Sequence[Candidate], rounds: int) -> list[None]:
        raise AssertionError("a replay measures nothing")

    def code_bytes(self, candidate: Candidate) -> int:
        raise AssertionError("a replay measures nothing")


def _record(
    path: Path,
    plan: Plan,
    budget: Budget,
    bench: Bench | None = None,
    remembered: Sequence[Point] = (),
) -> Found:
    with Recorder(path, {"header": True}) as tape:
        return search(model(), budget, 3, bench or Bench(noise=0.3), plan, tape, remembered)


def _replay(path: Path, plan: Plan, budget: Budget, seed: int = 3, recalled: bool = False) -> Found:
    header, events = read_log(path)
    assert header["header"]
    order = list if recalled else None  # the log has what records made of it
    return search(model(), budget, seed, NoBench(), plan, Replay(events), order=order)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_replay_comes_to_the_same(tmp_path: Path, sampler: str) -> None:
    plan, log = Plan(sampler=sampler), tmp_path / "log"
    assert _record(log, plan, Budget(25)) == _replay(log, plan, Budget(25))


def test_a_replay_of_several_objectives_comes_to_the_same(tmp_path: Path) -> None:
    plan, log = Plan(sampler="nsga2", objectives=("time", "size", "memory")), tmp_path / "log"
    assert _record(log, plan, Budget(25)) == _replay(log, plan, Budget(25))


def test_a_search_by_the_clock_is_replayed_whatever_the_clock_says_now(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorded = _record(log, Plan(), Budget(seconds=0.3))
    assert _replay(log, Plan(), Budget(seconds=1e-9)) == recorded


def test_a_study_that_went_on_is_replayed_with_what_it_knew(tmp_path: Path) -> None:
    plan, log = Plan(place=Place(path=tmp_path / "study")), tmp_path / "log"
    search(model(), Budget(10), 3, Bench(), plan)
    recorded = _record(log, plan, Budget(25))
    assert recorded.others == 10
    assert _replay(log, Plan(), Budget(25)) == recorded


def test_an_interrupted_search_is_replayed_up_to_there(tmp_path: Path) -> None:
    class Interrupted(Bench):
        def __call__(
            self, candidates: Sequence[Candidate], rounds: int
        ) -> list[list[float] | None]:
            if len(self.asked) == 5:
                raise KeyboardInterrupt
            return super().__call__(candidates, rounds)

    log = tmp_path / "log"
    recorded = _record(log, Plan(), Budget(25), Interrupted())
    assert recorded.interrupted
    assert _replay(log, Plan(), Budget(25)) == recorded


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_a_log_of_a_killed_search_is_replayed_as_far_as_it_goes(
    tmp_path: Path, kept: float
) -> None:
    log = tmp_path / "log"
    _record(log, Plan(), Budget(25))
    whole = log.read_bytes()
    log.write_bytes(whole[: int(kept * len(whole))])
    assert _replay(log, Plan(), Budget(25)).interrupted


def test_other_measurements_lead_to_another_decision_which_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _record(log, Plan(), Budget(25), Bench())
    lines = log.read_text().splitlines()
    taken = [n for n, line in enumerate(lines) if line.startswith('{"samples"')]
    at = taken[1]  # the first schedule runs alone before others run beside it
    samples = json.loads(lines[at])["samples"]
    lines[at] = json.dumps({"samples": [[s * (n + 1) for s in own] for n, own in
                                        enumerate(samples[::-1])]})  # fmt: skip
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(ReplayError, match=r"line [0-9]+ of the log says"):
        _replay(log, Plan(), Budget(25))


WRONG: dict[str, list[object]] = {
    "ranked": ["x", None, -1, 2.5, True],
    "early": [5, "abc", [[0]], [[[1]]], [[999, 0, 0]], [[-1, 0, 0]]],
    "wanted": [None, ["ab"], [[0, 0]], [[0, 0, 99]], [[0, 0, 0.5]]],
    "early trials": ["x", 2.5, -1],
    "left": [None, "4", -4],
    "alone": [5, None],
    "samples": [None, [None, None, None], [[]], [["x"]], [[-1.0]], [[float("nan")]]],
    "news": [[1, 2], [[[0, 0, 0], "won", []]], {}, None],
}


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in WRONG.items() for value in values]
)
def test_what_cannot_be_in_a_log_is_told_with_its_line(
    tmp_path: Path, kind: str, value: object
) -> None:
    log = tmp_path / "log"
    known = [(5, 3, 1)]
    _record(log, Plan(), Budget(9), Bench(), known)
    lines = log.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f'{{"{kind}"'))
    lines[at] = json.dumps({kind: value})
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(ArgumentsError, match=f"line {at + 1} of the log: '{kind}' cannot be"):
        _replay(log, Plan(), Budget(9), recalled=True)


def test_another_seed_does_not_replay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _record(log, Plan(), Budget(60))
    with pytest.raises(ReplayError):
        _replay(log, Plan(), Budget(60), seed=4)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ("{}\n", "no search log"),
        ('{"isamap search log": 99}\n', "no search log"),
        ('{"isamap search log": 2}\nnonsense\n', "line 2"),
        ('{"isamap search log": 2}\n[1]\n', "line 2"),
        ("[" * 100_000 + "\n", "line 1"),
    ],
)
def test_what_is_no_log_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "log").write_text(content)
    with pytest.raises(ArgumentsError, match=told):
        read_log(tmp_path / "log")


def test_a_log_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentsError, match="cannot read the log"):
        read_log(tmp_path / "none")
    with pytest.raises(ArgumentsError, match="cannot write the log"):
        Recorder(tmp_path / "no folder" / "log", {})
