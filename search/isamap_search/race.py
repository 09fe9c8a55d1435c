"""Candidates timed by turns against a reference, each until it is clear how it compares.

Everything is compared within one race: the reference, which is the best so far, is timed again
beside its challengers, because a machine is not equally fast from minute to minute.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Generic, Literal, Protocol, TypeVar

from isamap_search.evidence import is_below, ratio, spread

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Verdict = Literal["faster", "no better", "hopeless", "level", "failed"]
"""``faster`` than the reference; ``no better``: not faster by the margin; ``hopeless``: slower in
every round by far, and dropped after the first few; ``level``: the rounds were used up before
it was clear; ``failed``: crashed, was refused or did not end."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a race ends.

    ``stages`` are the rounds after which it is looked at, ascending.  ``margin`` is the gain that
    is worth telling apart: a challenger that is not faster by it is dropped.  ``hopeless`` is the
    ratio to the reference that ends a challenger which exceeds it in every round so far.
    Beyond the second stage a race takes at most ``seconds``, by what its first samples say.
    """

    stages: tuple[int, ...] = (3, 7, 13, 21, 31)
    margin: float = 0.01
    hopeless: float = 1.25
    seconds: float = 4.0


class Timer(Protocol[T_contra]):
    """Takes samples."""

    def __call__(
        self, candidates: Sequence[T_contra], rounds: int, /
    ) -> Sequence[Sequence[float] | None]:
        """Return for each candidate seconds a call in each round, None if it failed.

        The candidates are run in turn in each round; those that do not fail get equally many
        samples, at least one and at most ``rounds``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Standing(Generic[T]):
    """How a candidate ended: its seconds a round, and the reference's in the same rounds."""

    candidate: T
    verdict: Verdict
    samples: tuple[float, ...] = ()
    beside: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """Its time over the reference's, the median of the rounds."""
        return ratio(self.samples, self.beside)

    @property
    def spread(self) -> tuple[float, float]:
        """An interval for that ratio, of 95 % where there are six rounds or more."""
        return spread(self.samples, self.beside)

    @property
    def seconds(self) -> float:
        """The median of its own samples."""
        return median(self.samples)


@dataclass(slots=True)
class _Lane(Generic[T]):
    candidate: T
    samples: list[float] = field(default_factory=list)
    verdict: Verdict | None = None


def race(
    timer: Timer[T],
    candidates: Sequence[T],
    rules: Rules | None = None,
    may_drop: Callable[[T], bool] = lambda _: True,
    heard: Callable[[T, int, float], None] = lambda _candidate, _rounds, _ratio: None,
) -> list[Standing[T]]:
    """Time candidates by turns and return their standings in order.

    The first that runs is the reference, and its verdict is ``level``; all are ``failed`` where
    none runs.  ``may_drop`` says of a hopeless candidate whether it may be given up.  ``heard``
    gets a challenger's rounds and its ratio to the reference at every stage.
    """
    rules = rules or Rules()
    lanes = [_Lane(candidate) for candidate in candidates]
    done = 0
    for stage, until in enumerate(rules.stages):
        running = [lane for lane in lanes if lane.verdict is None]
        if stage and (len(running) < 2 or (stage > 1 and _too_long(running, until, rules))):
            break
        # Nobody always runs behind the same neighbour.
        turned = running[stage % len(running) :] + running[: stage % len(running)]
        taken = timer([lane.candidate for lane in turned], until - done)
        for lane, samples in zip(turned, taken, strict=True):
            if samples is None:
                lane.verdict = "failed"
            else:
                lane.samples += samples
        running = [lane for lane in running if lane.verdict is None]
        if not running:
            break
        done = len(running[0].samples)
        assert all(len(lane.samples) == done for lane in running)
        for lane in running[1:]:
            heard(lane.candidate, done, ratio(lane.samples, running[0].samples))
            lane.verdict = _verdict(lane, running[0].samples, rules, may_drop)
    return _standings(lanes)


def _verdict(
    lane: _Lane[T], beside: Sequence[float], rules: Rules, may_drop: Callable[[T], bool]
) -> Verdict | None:
    """Return how a challenger stands to the reference; None while that is open."""
    ratios = [one / other for one, other in zip(lane.samples, beside, strict=True)]
    if min(ratios) > rules.hopeless and may_drop(lane.candidate):
        return "hopeless"
    if is_below(lane.samples, beside):
        return "faster"
    if is_below(beside, lane.samples, 1 / (1 - rules.margin)):
        return "no better"
    return None


def _too_long(running: Sequence[_Lane[T]], until: int, rules: Rules) -> bool:
    return until * sum(median(lane.samples) for lane in running) > rules.seconds


def _standings(lanes: Sequence[_Lane[T]]) -> list[Standing[T]]:
    reference = next((lane for lane in lanes if lane.verdict != "failed"), None)
    standings = []
    for lane in lanes:
        if reference is None or lane.verdict == "failed":
            standings.append(Standing(lane.candidate, "failed"))
            continue
        rounds = min(len(lane.samples), len(reference.samples))
        samples, beside = tuple(lane.samples[:rounds]), tuple(reference.samples[:rounds])
        standings.append(Standing(lane.candidate, lane.verdict or "level", samples, beside))
    return standings


def against(standing: Standing[T], other: Standing[T]) -> Standing[T]:
    """Return a standing with ``other`` of the same race as its reference, in their common rounds.

    The verdict says what those rounds show of the two: ``faster`` or ``level``.
    """
    rounds = min(len(standing.samples), len(other.samples))
    samples, beside = standing.samples[:rounds], other.samples[:rounds]
    verdict: Verdict = "faster" if is_below(samples, beside) else "level"
    return replace(standing, samples=samples, beside=beside, verdict=verdict)
