from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from isamap.schedule.schedule import Schedule
from isamap_search.budget import Budget
from isamap_search.objective import Candidate, Point, rank
from isamap_search.plan import Measured, Plan
from isamap_search.settings import SAMPLERS, Place
from isamap_search.study import search
from tests.search.bowl import FIRST, POINTS, Bench, Bowl, BowlModel, distance, model


def test_ranking_finds_the_best_of_the_model() -> None:
    assert rank(model(), 100, seed=0)[0].point == (5, 3, 1)


def test_ranking_is_sorted_and_leaves_out_what_cannot_be_built() -> None:
    ranked = rank(model(), 60, seed=1)
    assert [c.cycles for c in ranked] == sorted(c.cycles for c in ranked)
    assert all(c.point[1] != c.point[2] for c in ranked)


def test_ranking_ends_when_the_space_is_used_up() -> None:
    assert len(rank(model(), 10_000, seed=0)) == POINTS


def test_the_search_finds_the_best_of_the_model() -> None:
    found = search(model(), Budget(trials=20), seed=0)
    assert found.best is not None
    assert (found.best.point, found.score, found.measured) == ((5, 3, 1), 10.0, False)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("trials", [1, 7, 30])
def test_the_same_seed_gives_the_same_search(sampler: str, trials: int) -> None:
    plan = Plan(sampler=sampler)
    first, second = (search(model(), Budget(trials), 3, plan=plan) for _ in range(2))
    assert first == second


def test_another_seed_gives_another_search() -> None:
    bench = [Bench() for _ in range(2)]
    one, two = (search(model(), Budget(40), seed, bench[seed]).values for seed in range(2))
    assert one != two


@pytest.mark.parametrize("trials", [1, 2, 5, 25])
def test_the_budget_of_trials_is_kept(trials: int) -> None:
    assert search(model(), Budget(trials), seed=0).trials == trials
    assert search(model(), Budget(trials), seed=0, bench=Bench()).trials == trials


def test_what_is_likely_to_be_good_is_timed_before_the_model_ranks_others() -> None:
    bench, told = Bench(), list[str]()
    asked_when: list[int] = []

    def tell(text: str) -> None:
        told.append(text)
        asked_when.append(len(bench.asked))

    known = (5, 3, 1)
    found = search(model(), Budget(9), 0, bench, remembered=[known], tell=tell)
    ranking = next(n for n, text in enumerate(told) if "ranking" in text)
    assert asked_when[ranking] > 0
    assert {point for points, _ in bench.asked[:1] for point in points} == {FIRST, known}
    assert found.trials == 9


def test_a_study_that_is_gone_on_with_does_not_begin_anew(tmp_path: Path) -> None:
    plan = Plan(place=Place(path=tmp_path / "study", name="study"))
    search(model(), Budget(3), 0, Bench(), plan)
    bench = Bench()
    search(model(), Budget(6), 0, bench, plan)
    assert bench.asked
    assert any(point != FIRST for point in bench.asked[0][0])


def test_the_first_schedule_is_always_tried() -> None:
    found = search(model(), Budget(trials=1), seed=0)
    assert found.first == distance(FIRST)
    assert found.best is not None


def test_what_is_suggested_is_ranked_first_and_tried_early() -> None:
    far: tuple[Point, ...] = ((7, 5, 3), (0, 5, 3), (7, 0, 3))
    ranked = rank(model(*far), 4, seed=0)
    assert {c.point for c in ranked} == {FIRST, *far}
    bench = Bench()
    found = search(model(*far), Budget(trials=12), 0, bench)
    tried = [point for point, _ in found.values]
    # Others are better by the model; what is suggested gets its share of the trials all the same.
    assert set(far) <= set(tried)
    assert not set(far) & {point for point, _ in search(model(), Budget(12), 0, Bench()).values}


class Same(Bowl):
    """A space in which only the first choice makes a difference."""

    def build(self, assignment: Mapping[str, int]) -> Schedule:
        super().build(assignment)
        return cast(Schedule, assignment["a"])


class Flat(BowlModel):
    def _make(self, point: Point) -> Candidate | None:
        made = super()._make(point)
        return made and replace(made, cycles=float(point[0]))


def flat() -> Flat:
    nothing = cast(Any, None)
    return Flat(nothing, nothing, cast(Any, Same()), {})


def test_one_schedule_is_ranked_once() -> None:
    ranked = rank(flat(), 10_000, seed=0)
    assert [c.point[0] for c in ranked] == list(range(8))
    assert ranked[0].point == FIRST


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_schedule_is_timed_once(sampler: str) -> None:
    """Whichever point of it a sampler proposes: what is known of one is known of all."""
    for bench in (None, Bench()):
        found = search(flat(), Budget(40), 0, bench, Plan(sampler=sampler))
        tried = [point[0] for point, _ in found.values]
        assert len(tried) == len(set(tried)) <= 8
        assert found.trials == len(tried)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_clock_overrules_the_model(sampler: str) -> None:
    bench = Bench(lambda point: 1.0 + abs(point[0] - 6) + abs(point[1] - 4))
    found = search(model(), Budget(trials=90), 0, bench, Plan(sampler=sampler))
    assert found.measured
    assert found.best is not None
    assert found.score is not None
    assert found.score <= 2.0
    assert found.beside is not None
    assert found.beside.verdict == "faster"


def test_noise_does_not_hide_what_is_faster() -> None:
    found = search(model(), Budget(trials=60), 0, Bench(noise=0.1))
    assert found.best is not None
    assert distance(found.best.point) <= 12.0


def test_the_first_schedule_stays_where_nothing_is_faster() -> None:
    bench = Bench(lambda point: 1.0 if point == FIRST else 1.1)
    found = search(model(), Budget(trials=30), 0, bench)
    assert found.best is not None
    assert found.best.point == FIRST
    assert found.beside is None
    assert found.score == found.first == 1.0


def test_incumbents_are_timed_again_beside_their_challengers() -> None:
    bench = Bench()
    search(model(), Budget(trials=20), 0, bench)
    races = [points for points, rounds in bench.asked if rounds == 3]  # each begins so
    assert all(FIRST in points for points in races)
    best = FIRST
    for points in races:
        assert best in points
        best = min(points, key=distance)


def test_what_fails_is_counted_and_never_the_best() -> None:
    bench = Bench(lambda point: None if point[0] == 5 else distance(point))
    found = search(model(), Budget(trials=30), 0, bench)
    assert found.failed > 0
    assert found.best is not None
    assert found.best.point[0] != 5


def test_where_the_first_schedule_fails_another_is_found() -> None:
    bench = Bench(lambda point: None if point == FIRST else distance(point))
    found = search(model(), Budget(trials=30), 0, bench)
    assert found.first is None
    assert found.best is not None
    assert found.best.point == (5, 3, 1)


def test_nothing_is_found_where_all_fail() -> None:
    found = search(model(), Budget(trials=5), 0, Bench(lambda _: None))
    assert (found.best, found.score) == (None, None)
    assert (found.trials, found.failed) == (5, 5)


def test_hopeless_candidates_end_after_few_repeats() -> None:
    bench = Bench()
    found = search(model(), Budget(trials=30), 0, bench)
    assert found.dropped > 5
    repeats: dict[Point, int] = {}
    for points, rounds in bench.asked:
        for point in points:
            repeats[point] = repeats.get(point, 0) + rounds
    assert sum(count == 3 for count in repeats.values()) >= found.dropped


def test_an_interruption_keeps_what_was_found() -> None:
    class Interrupted(Bench):
        def __call__(
            self, candidates: Sequence[Candidate], rounds: int
        ) -> list[list[float] | None]:
            if len(self.asked) == 8:
                raise KeyboardInterrupt
            return super().__call__(candidates, rounds)

    found = search(model(), Budget(trials=100), 0, Interrupted())
    assert found.interrupted
    assert found.best is not None
    assert found.score == pytest.approx(distance(found.best.point))
    assert 0 < found.trials < 100


def test_remembered_points_are_tried() -> None:
    found = search(model(), Budget(trials=2), 0, remembered=[(7, 5, 3)])
    assert (7, 5, 3) in dict(found.values)


def test_the_order_that_is_given_replaces_the_models() -> None:
    found = search(model(), Budget(trials=3), 0, order=lambda ranked: ranked[::-1])
    worst = rank(model(), 36, seed=0)[-1].point
    assert worst in dict(found.values)


def test_a_budget_of_seconds_ends_the_search() -> None:
    found = search(model(), Budget(seconds=0.5), seed=0)
    assert found.best is not None


def test_progress_is_told() -> None:
    told: list[str] = []
    search(model(), Budget(trials=6), 0, tell=told.append)
    assert told[-1] == "tune: 6 of 6 tried, best 10 cycles"
    search(model(), Budget(trials=6), 0, Bench(lambda point: 1e-3), tell=told.append)
    assert told[-2] == "tune: 6 of 6 tried, best 1 ms, 1 times the first schedule's"
    assert told[-1] == "tune: comparing the best with the first schedule"


def test_measurements_are_noted_with_their_ratio_to_the_first() -> None:
    noted: list[Measured] = []
    search(model(), Budget(trials=12), 0, Bench(), noted=noted.append)
    assert {one.candidate.point for one in noted} > {FIRST}
    for one in noted:
        assert one.seconds == pytest.approx(distance(one.candidate.point))
        assert one.ratio == pytest.approx(distance(one.candidate.point) / distance(FIRST))
        assert one.rounds >= 3


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "random"])
def test_several_objectives_have_a_front(sampler: str) -> None:
    plan = Plan(sampler=sampler, objectives=("time", "size"))
    found = search(model(), Budget(trials=60), 0, Bench(), plan)
    assert found.best is not None
    assert found.front[0].point == found.best.point
    times, sizes = zip(*(scored.values for scored in found.front), strict=True)
    assert list(times) == sorted(times)
    assert list(sizes) == sorted(sizes, reverse=True)
    assert len(found.front) > 1
    for point, values in found.values:
        assert any(
            all(a <= b for a, b in zip(scored.values, values, strict=True))
            for scored in found.front
        ), point


def test_a_study_in_a_journal_goes_on_where_it_ended(tmp_path: Path) -> None:
    plan = Plan(place=Place(path=tmp_path / "study"))
    first = search(model(), Budget(trials=10), 0, Bench(), plan)
    again = search(model(), Budget(trials=10), 0, Bench(), plan)
    more = search(model(), Budget(trials=25), 0, Bench(), plan)
    assert (first.trials, again.trials, more.trials) == (10, 0, 15)
    assert again.others == 10
    assert again.best is not None
    assert first.best is not None
    assert again.best.point == first.best.point
    assert again.values == first.values
