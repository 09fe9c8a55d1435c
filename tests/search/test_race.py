import random
from collections.abc import Sequence

from isamap_search.race import Rules, against, race


class Machine:
    """Times named candidates: their milliseconds times a drift that all share, and noise."""

    def __init__(self, seconds: dict[str, float | None], noise: float = 0.0, seed: int = 0) -> None:
        self.seconds = seconds
        self.noise = noise
        self.random = random.Random(seed)
        self.taken: dict[str, int] = dict.fromkeys(seconds, 0)
        self.order: list[tuple[str, ...]] = []
        self.drift = 1.0

    def __call__(self, candidates: Sequence[str], rounds: int) -> list[list[float] | None]:
        self.order.append(tuple(candidates))
        samples: list[list[float]] = [[] for _ in candidates]
        for _ in range(rounds):
            self.drift *= self.random.choice((0.8, 1.0, 1.25))
            for name, own in zip(candidates, samples, strict=True):
                noise = 1 + self.noise * self.random.expovariate(1.0)
                own.append((self.seconds[name] or 0.0) * 1e-3 * self.drift * noise)
        for name in candidates:
            self.taken[name] += rounds
        return [
            None if self.seconds[name] is None else own
            for name, own in zip(candidates, samples, strict=True)
        ]


def test_what_is_clearly_faster_needs_few_rounds() -> None:
    machine = Machine({"best": 1.0, "faster": 0.9})
    _, standing = race(machine, ["best", "faster"])
    assert standing.verdict == "faster"
    assert len(standing.samples) == 7
    assert 0.89 < standing.ratio < 0.91


def test_hopeless_candidates_are_dropped_after_the_first_stage() -> None:
    machine = Machine({"best": 1.0, "poor": 2.0, "good": 0.95}, noise=0.02)
    standings = race(machine, ["best", "poor", "good"])
    assert [s.verdict for s in standings] == ["level", "hopeless", "faster"]
    assert machine.taken["poor"] == 3


def test_what_may_not_be_dropped_is_timed_until_it_is_no_better() -> None:
    machine = Machine({"best": 1.0, "poor": 2.0})
    _, poor = race(machine, ["best", "poor"], may_drop=lambda _: False)
    assert poor.verdict == "no better"
    assert len(poor.samples) == 7


def test_equals_end_as_no_better_by_the_margin() -> None:
    machine = Machine({"best": 1.0, "same": 1.0}, noise=0.001)
    _, same = race(machine, ["best", "same"])
    assert same.verdict == "no better"


def test_noise_asks_for_more_rounds() -> None:
    quiet = Machine({"best": 1.0, "faster": 0.97})
    noisy = Machine({"best": 1.0, "faster": 0.97}, noise=0.05)
    assert len(race(quiet, ["best", "faster"])[1].samples) == 7
    assert len(race(noisy, ["best", "faster"])[1].samples) > 7


def test_the_order_changes_from_stage_to_stage() -> None:
    machine = Machine({"best": 1.0, "other": 0.999}, noise=0.5)
    race(machine, ["best", "other"])
    assert machine.order[:2] == [("best", "other"), ("other", "best")]


def test_what_fails_is_told_and_the_next_one_becomes_the_reference() -> None:
    machine = Machine({"best": None, "next": 1.0, "faster": 0.5})
    standings = race(machine, ["best", "next", "faster"])
    assert [s.verdict for s in standings] == ["failed", "level", "faster"]
    assert all(s.verdict == "failed" for s in race(Machine({"a": None}), ["a"]))


def test_long_races_end_after_two_stages() -> None:
    machine = Machine({"best": 10_000.0, "other": 9_990.0}, noise=0.1)
    _, other = race(machine, ["best", "other"], Rules(seconds=4.0))
    assert len(other.samples) == 7
    assert other.verdict == "level"


def test_standings_of_one_race_are_compared_in_their_common_rounds() -> None:
    machine = Machine({"best": 1.0, "poor": 2.0, "good": 0.95}, noise=0.01)
    best, poor, good = race(machine, ["best", "poor", "good"])
    beside = against(good, poor)
    assert len(beside.samples) == 3
    assert 0.4 < beside.ratio < 0.55
    assert against(best, good).verdict == "level"


def test_equal_candidates_are_called_faster_in_at_most_one_of_twenty_races() -> None:
    wrong = 0
    for seed in range(300):
        machine = Machine({"best": 1.0, "same": 1.0}, noise=0.1, seed=seed)
        wrong += race(machine, ["best", "same"])[1].verdict == "faster"
    assert wrong <= 15
