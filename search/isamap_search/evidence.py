"""Which of two candidates, timed by turns, is the faster one: a test to be looked at often.

A round times both.  If the challenger were no faster, it would win a round with a probability of at
most one half, whatever the noise is like and however it drifts from round to round.  A gambler who
bets on its wins at those odds therefore cannot expect to gain.  The evidence is his gain if he
spreads his stake evenly over all probabilities above one half: the expectation of

    2 * integral over p from 1/2 to 1 of (2 p)^wins * (2 (1 - p))^losses

is at most 1 at every time at once, and so it ever reaches 20 with a probability of at most 1 in 20
(Ville's inequality).  No correction is needed for looking after every round.
"""

from collections.abc import Sequence
from math import comb
from statistics import median

ENOUGH = 20.0
"""Evidence that decides: wrong in at most one comparison in this many."""


def evidence(wins: int, rounds: int) -> float:
    """Return the evidence that ``wins`` of ``rounds`` are more than luck; see above."""
    assert 0 <= wins <= rounds
    above = sum(comb(rounds + 1, k) for k in range(wins + 1))
    return above / ((rounds + 1) * comb(rounds, wins))


def is_below(ones: Sequence[float], others: Sequence[float], factor: float = 1.0) -> bool:
    """Return whether ``ones`` are less than ``factor`` times ``others``, which are of the same
    rounds.  A tie counts against it.
    """
    wins = sum(one < factor * other for one, other in zip(ones, others, strict=True))
    return evidence(wins, len(ones)) >= ENOUGH


def ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """Return the median over the rounds of ``ones`` over ``others``."""
    return median(one / other for one, other in zip(ones, others, strict=True))


def spread(ones: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return an interval that holds the true median ratio in at least 95 % of all cases.

    The order statistics that a binomial count gives; the extremes where there are too few rounds
    (below six the interval holds it less often).
    """
    ratios = sorted(one / other for one, other in zip(ones, others, strict=True))
    rounds, cut = len(ratios), 0
    while 2 * (cut + 1) < rounds and _tail(cut + 1, rounds) <= 0.025:
        cut += 1
    return ratios[cut], ratios[rounds - 1 - cut]


def _tail(most: int, rounds: int) -> float:
    """Return the probability of at most ``most`` heads: that the median is beyond the interval."""
    return float(sum(comb(rounds, k) for k in range(most + 1))) / float(2**rounds)
