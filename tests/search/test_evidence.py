import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap_search.evidence import ENOUGH, evidence, is_below, ratio, spread


@pytest.mark.parametrize("rounds", [0, 1, 5, 12, 31])
def test_the_gambler_cannot_expect_to_gain_on_a_fair_coin(rounds: int) -> None:
    expected = sum(comb(rounds, k) * evidence(k, rounds) for k in range(rounds + 1)) / 2**rounds
    assert expected == pytest.approx(1.0)


@pytest.mark.parametrize("rounds", [1, 4, 9])
def test_what_he_has_after_the_next_round_is_on_average_what_he_has_now(rounds: int) -> None:
    for wins in range(rounds + 1):
        later = (evidence(wins + 1, rounds + 1) + evidence(wins, rounds + 1)) / 2
        assert later == pytest.approx(evidence(wins, rounds))


def test_seven_rounds_won_in_a_row_are_enough_and_six_are_not() -> None:
    assert evidence(7, 7) > ENOUGH > evidence(6, 6)


def test_equal_candidates_are_told_apart_in_at_most_one_of_twenty_races() -> None:
    generator = random.Random(7)
    wrong = 0
    for _ in range(2000):
        wins, told = 0, False
        for rounds in range(1, 32):
            wins += generator.random() < 0.5
            told |= evidence(wins, rounds) >= ENOUGH
        wrong += told
    assert wrong / 2000 < 1 / ENOUGH


def test_a_tie_is_no_win() -> None:
    assert not is_below([1.0] * 31, [1.0] * 31)
    assert is_below([1.0] * 7, [1.1] * 7)
    assert not is_below([1.0] * 7, [1.1] * 7, 0.9)


def test_rounds_are_compared_one_by_one() -> None:
    # The machine becomes ten times slower half-way: neither median says that one is faster.
    slower = [1.0] * 8 + [10.0] * 8
    faster = [0.9 * s for s in slower]
    assert is_below(faster, slower)
    assert ratio(faster, slower) == pytest.approx(0.9)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=40))
def test_the_median_ratio_lies_within_its_interval(samples: list[float]) -> None:
    ones = [1.0] * len(samples)
    low, high = spread(samples, ones)
    assert low <= ratio(samples, ones) <= high


@pytest.mark.parametrize("rounds", [6, 7, 13, 31])
def test_the_interval_holds_the_true_median_in_nineteen_of_twenty_cases(rounds: int) -> None:
    generator = random.Random(3)
    held = 0
    for _ in range(1000):
        samples = [generator.lognormvariate(0, 1) for _ in range(rounds)]  # its median is 1
        low, high = spread(samples, [1.0] * rounds)
        held += low <= 1 <= high
    assert held >= 950
