"""Whether one thing orders as another does."""

from collections.abc import Sequence
from math import sqrt

LEAST = 3
"""Fewer pairs have no order to speak of."""


def rank_correlation(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Return Spearman's coefficient of pairs: 1 for the same order, -1 for the opposite one.

    That is Pearson's coefficient of the ranks, equal values having the mean of theirs (Kendall and
    Gibbons, Rank Correlation Methods, 1990, chapters 1 and 3).  None where there are fewer than
    three pairs, or all values of one side are equal.
    """
    if len(ones) < LEAST:
        return None
    first, second = _ranks(ones), _ranks(others)
    mean = (len(ones) + 1) / 2
    both = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second)
    return max(-1.0, min(1.0, both / sqrt(spread))) if spread else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the position of each value in ascending order, from 1."""
    ordered = sorted(values)
    first = {value: at for at, value in reversed(list(enumerate(ordered, 1)))}
    last = {value: at for at, value in enumerate(ordered, 1)}
    return [(first[value] + last[value]) / 2 for value in values]
