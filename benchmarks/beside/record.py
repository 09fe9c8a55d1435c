"""What was measured of a case, and the figures that follow from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, log
from statistics import median
from typing import Any

from beside.cases import Case
from beside.peers import OWN


@dataclass(frozen=True)
class Timing:
    """The times of one peer: seconds of a call in each round; ``wrong`` if its answer is."""

    peer: str
    way: str
    seconds: tuple[float, ...]
    wrong: str | None = None
    setup: float = 0.0

    @property
    def median(self) -> float:
        """Seconds of a call."""
        return median(self.seconds)


@dataclass(frozen=True)
class Record:
    """One case: its timings, the bound of them, and why a peer has none.

    ``work`` counts 1e9 operations, or 1e9 bytes where memory is the limit (``unit`` says which);
    ``least`` are the seconds that the machine takes at least, as it was in each round; none if
    nothing is known of that.  ``case`` are the sizes, by name.
    """

    family: str
    title: str
    work: float
    unit: str
    least: tuple[float, ...]
    timings: tuple[Timing, ...]
    absent: dict[str, str] = field(default_factory=dict)
    case: Case = field(default_factory=dict)

    def timing(self, peer: str) -> Timing | None:
        """Return the timing of a peer, if its answer was right."""
        return next((t for t in self.timings if t.peer == peer and t.wrong is None), None)

    @property
    def best(self) -> Timing | None:
        """The fastest other peer whose answer was right."""
        others = [t for t in self.timings if t.peer != OWN and t.wrong is None]
        return min(others, key=lambda t: t.median, default=None)

    @property
    def ratio(self) -> float | None:
        """How much faster isamap is than the best peer: median over rounds of their quotients.

        None if there is no such peer, or no right answer of isamap.
        """
        own, best = self.timing(OWN), self.best
        if own is None or best is None:
            return None
        return median(b / o for o, b in zip(own.seconds, best.seconds, strict=True))

    def rate(self, timing: Timing) -> float:
        """Return 1e9 operations, or bytes, a second."""
        return self.work / timing.median

    def share(self, timing: Timing) -> float | None:
        """Return the part of the bound that is reached: the median over rounds of the quotients."""
        if not self.least:
            return None
        return median(b / s for b, s in zip(self.least, timing.seconds, strict=True))

    @property
    def room(self) -> float | None:
        """How much faster than the best peer the bound is: no ratio can be more."""
        share = None if self.best is None else self.share(self.best)
        return None if share is None else 1 / share

    def to_json(self) -> dict[str, Any]:
        """Return everything that was measured, and what follows, for a file."""
        best = self.best
        return {
            "case": self.title,
            "unit": self.unit,
            "least_s": self.least,
            "room": self.room,
            "ratio": self.ratio,
            "best_peer": None if best is None else best.peer,
            "absent": self.absent,
            "peers": {
                t.peer: {
                    "way": t.way,
                    "median_s": t.median,
                    "rate": self.rate(t),
                    "share_of_bound": self.share(t),
                    "wrong": t.wrong,
                    "setup_s": t.setup,
                    "seconds": t.seconds,
                }
                for t in self.timings
            },
        }


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive numbers; None of none."""
    found = list(values)
    return exp(sum(map(log, found)) / len(found)) if found else None
