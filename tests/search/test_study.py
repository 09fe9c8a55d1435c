from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from isamap.diagnostics import ScheduleError, fail
from isamap.lower.nodes import LoweredKernel
from isamap.schedule.schedule import Schedule
from isamap_search.budget import Budget
from isamap_search.objective import Candidate, Model, Point, rank
from isamap_search.study import search


@dataclass(frozen=True)
class _Choice:
    name: str
    options: tuple[int, ...]


@dataclass(frozen=True)
class _Bowl:
    """A space whose cycles are the distance from (5, 3, 1); ``b`` and ``c`` may not be equal."""

    choices: tuple[_Choice, ...] = (
        _Choice("a", tuple(range(8))),
        _Choice("b", tuple(range(6))),
        _Choice("c", tuple(range(4))),
    )

    @property
    def first(self) -> Mapping[str, int]:
        return {"a": 0, "b": 1, "c": 0}

    def build(self, assignment: Mapping[str, int]) -> Schedule:
        if assignment["b"] == assignment["c"]:
            raise ScheduleError(fail("E400", "b is c"))
        return Schedule(())


class _Distance(Model):
    """The bowl's cycles, without lowering anything."""

    def _make(self, point: Point) -> Candidate | None:
        try:
            schedule = self.space.build(self.assignment(point))
        except ScheduleError:
            return None
        return Candidate(point, schedule, LoweredKernel("k", (), (), ()), _distance(point))


def _distance(point: Point) -> float:
    return 10.0 + sum((x - y) ** 2 for x, y in zip(point, (5, 3, 1), strict=True))


def _model() -> Model:
    nothing = cast(Any, None)
    return _Distance(nothing, nothing, cast(Any, _Bowl()), {})


def test_ranking_finds_the_best_of_the_model() -> None:
    assert rank(_model(), 100, seed=0)[0].point == (5, 3, 1)


def test_ranking_is_sorted_and_leaves_out_what_cannot_be_built() -> None:
    ranked = rank(_model(), 60, seed=1)
    assert [c.cycles for c in ranked] == sorted(c.cycles for c in ranked)
    assert all(c.point[1] != c.point[2] for c in ranked)


def test_ranking_ends_when_the_space_is_used_up() -> None:
    assert len(rank(_model(), 10_000, seed=0)) == 8 * 6 * 4 - 8 * 4


def test_the_search_finds_the_best_of_the_model() -> None:
    found = search(_model(), Budget(trials=20), seed=0)
    assert found.best is not None
    assert (found.best.point, found.score, found.measured) == ((5, 3, 1), 10.0, False)


@pytest.mark.parametrize("trials", [1, 7, 30])
def test_the_same_seed_gives_the_same_search(trials: int) -> None:
    assert search(_model(), Budget(trials), 3) == search(_model(), Budget(trials), 3)


@pytest.mark.parametrize("trials", [1, 2, 5, 25])
def test_the_budget_of_trials_is_kept(trials: int) -> None:
    assert search(_model(), Budget(trials), seed=0).trials == trials


def test_the_first_schedule_is_always_tried() -> None:
    found = search(_model(), Budget(trials=1), seed=0)
    assert found.first == _distance((0, 1, 0))
    assert found.best is not None


def test_the_clock_overrules_the_model() -> None:
    def measure(candidates: Sequence[Candidate]) -> list[float | None]:
        return [1.0 + abs(c.point[0] - 6) + abs(c.point[1] - 4) for c in candidates]

    found = search(_model(), Budget(trials=60), seed=0, measure=measure)
    assert found.measured
    assert found.best is not None
    assert found.best.point[:2] == (6, 4)


def test_what_fails_is_counted_and_never_the_best() -> None:
    def measure(candidates: Sequence[Candidate]) -> list[float | None]:
        return [None if c.point[0] == 5 else _distance(c.point) for c in candidates]

    found = search(_model(), Budget(trials=30), seed=0, measure=measure)
    assert found.failed > 0
    assert found.best is not None
    assert found.best.point[0] != 5


def test_nothing_is_found_where_all_fail() -> None:
    found = search(_model(), Budget(trials=5), 0, measure=lambda c: [None] * len(c))
    assert found.best is None
    assert (found.trials, found.failed) == (5, 5)


def test_an_interruption_keeps_what_was_found() -> None:
    calls = 0

    def measure(candidates: Sequence[Candidate]) -> list[float | None]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return [_distance(c.point) for c in candidates]

    found = search(_model(), Budget(trials=100), seed=0, measure=measure)
    assert found.interrupted
    assert found.best is not None
    assert found.trials == 8


def test_remembered_points_are_tried() -> None:
    found = search(_model(), Budget(trials=2), 0, remembered=[(7, 5, 3)])
    assert (7, 5, 3) in dict(found.scores)


def test_a_budget_of_seconds_ends_the_search() -> None:
    found = search(_model(), Budget(seconds=0.5), seed=0)
    assert found.best is not None


def test_a_study_is_kept_in_a_journal(tmp_path: Path) -> None:
    journal = tmp_path / "study.log"
    first = search(_model(), Budget(trials=5), 0, storage=journal)
    size = journal.stat().st_size
    assert size > 0
    second = search(_model(), Budget(trials=5), 0, storage=journal)
    assert journal.stat().st_size > size
    assert first.best is not None
    assert second.best is not None


def test_progress_is_told() -> None:
    told: list[str] = []
    search(_model(), Budget(trials=6), 0, tell=told.append)
    assert told[-1] == "tune: 6 of 6 tried, best 10 cycles"
