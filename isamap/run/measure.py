"""Measuring candidates against each other on a machine that others use too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from isamap.run.outcome import Crash
from isamap.run.worker import Loaded, Worker


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds per call: ``typical`` is the median of ``samples``, ``best`` their least."""

    samples: tuple[float, ...]

    @property
    def typical(self) -> float:
        """The median."""
        return median(self.samples)

    @property
    def best(self) -> float:
        """The least."""
        return min(self.samples)


def measure(
    worker: Worker,
    candidates: Sequence[Loaded],
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int = 1,
    repeats: int = 7,
    window: float = 0.001,
) -> tuple[Measurement | Crash, ...]:
    """Time candidates of one kernel by turns; return one result for each, in order.

    A candidate that crashes, hangs or refuses is left out of the comparison and reported.
    """
    results: dict[int, Measurement | Crash] = {}
    healthy = []
    for number, candidate in enumerate(candidates):
        # Alone first: what crashes must not take the others' samples along.
        first = worker.run(candidate, arrays, symbols, threads)
        if isinstance(first, Crash):
            results[number] = first
        else:
            healthy.append(number)
    if healthy:
        chosen = [candidates[number] for number in healthy]
        timed = worker.time(chosen, arrays, symbols, threads, repeats, window)
        for place, number in enumerate(healthy):
            results[number] = timed if isinstance(timed, Crash) else Measurement(timed[place])
    return tuple(results[number] for number in range(len(candidates)))
