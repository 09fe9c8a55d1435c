from math import isclose

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.pipeline.correlation import rank_correlation

numbers = st.integers(-20, 20).map(float)
pairs = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=12)


def test_known_values() -> None:
    ascending = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert rank_correlation(ascending, [10.0, 20.0, 35.0, 36.0, 1e9]) == 1
    assert rank_correlation(ascending, [5.0, 4.0, 3.0, 2.0, 1.0]) == -1
    # 1 - 6 * (1 + 1 + 1 + 1) / (5 * 24)
    assert rank_correlation(ascending, [2.0, 1.0, 4.0, 3.0, 5.0]) == 0.8


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
    found = rank_correlation([1.0, 7.0, 7.0, 9.0], [1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert isclose(found, (4.5 / 5) ** 0.5)


def test_there_is_none_of_too_few_or_of_equal_values() -> None:
    assert rank_correlation([], []) is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert rank_correlation([1.0, 2.0, 3.0], [4.0, 4.0, 4.0]) is None


@given(pairs)
def test_it_is_the_correlation_of_ranks(found: list[tuple[float, float]]) -> None:
    ones, others = [a for a, _ in found], [b for _, b in found]
    result = rank_correlation(ones, others)
    if len(set(ones)) == 1 or len(set(others)) == 1:
        assert result is None
        return
    ranks = [
        [sum(w < v for w in own) + (sum(w == v for w in own) + 1) / 2 for v in own]
        for own in (ones, others)
    ]
    assert result is not None
    assert isclose(result, float(np.corrcoef(np.array(ranks))[0, 1]), abs_tol=1e-12)
    assert rank_correlation(others, ones) == result
