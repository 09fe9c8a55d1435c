"""The cycles that a program takes to compute, of counts of all that it does.

A program does more than compute: it starts, reads, prepares constants and writes.  So it is run
with everything but the computing, too, and what that takes is subtracted.  A command that counts
the same twice, each way, is exact: it is not asked again.  One that does not has noise, more of it
of starting programs than of computing: then the program computes so often that most of its time is
that.
"""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np

from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.run.arguments import check_arrays
from isamap.run.board import WHAT, count_run
from isamap.run.build import require_toolchain
from isamap.run.outcome import Crash

_SHARE = 4
"""Computing takes so many times what the rest takes, where counts differ from run to run."""

_MOST_RUNS = 1 << 20
_STEP = 32
# Runs that take longer than this are not made longer.
_SECONDS = 2.0
_IDLE_COUNTS = 5


class Counter:
    """Counts the cycles that one program takes to compute on given arrays.

    ``outputs`` are what it wrote when it first computed, None before.
    """

    def __init__(
        self,
        path: Path,
        source: CSource,
        accelerator: Accelerator,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int],
        threads: int = 1,
    ) -> None:
        """ToolError if the description is not trusted, ArgumentsError if arrays do not fit."""
        check_arrays(source, arrays, symbols)
        self.path = path
        self._at = require_toolchain(accelerator).measure_at
        self._program = path, source, accelerator, arrays, symbols, threads
        self._idle: list[float] = []
        self._once: list[float] = []
        self._exact: float | None = None
        self._runs = 0
        self.outputs: dict[str, np.ndarray] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the command counted the same each time."""
        return self._exact is not None

    def run(self) -> Crash | None:
        """Compute once, for the outputs; return why there are none.

        ToolError if the command cannot be started.
        """
        found = self._count(1)
        if isinstance(found, Crash):
            return found
        self._once.append(found)
        return None

    def sample(self) -> float | Crash:
        """Return the cycles of computing once; ToolError if the command cannot be started."""
        if self._runs == 0 and (crash := self._begin()) is not None:
            return crash
        if self._exact is not None:
            return self._exact
        computing = self._count(self._runs)
        if isinstance(computing, Crash):
            return computing
        if len(self._idle) < _IDLE_COUNTS:
            idle = self._count(0)
            if isinstance(idle, Crash):
                return idle
            self._idle.append(idle)
        rest = median(self._idle)
        return (computing - rest) / self._runs if computing > rest else self._level(computing, rest)

    def typical(self, most: int, seconds: float) -> float | Crash:
        """Return the median of up to ``most`` samples, as many as begin within ``seconds``."""
        samples: list[float] = []
        start = monotonic()
        while not samples or (len(samples) < most and monotonic() - start < seconds):
            found = self.sample()
            if isinstance(found, Crash) or self.is_exact:
                return found
            samples.append(found)
        return median(samples)

    def _begin(self) -> Crash | None:
        """Find out whether counts are exact, and how often to compute in a run if they are not."""
        for taken, runs in ((self._once, 1), (self._idle, 0)):
            while len(taken) < 2:
                found = self._count(runs)
                if isinstance(found, Crash):
                    return found
                taken.append(found)
        (one, other), rest = self._once[:2], median(self._idle)
        if one == other and self._idle[0] == self._idle[1] and one > rest:
            self._exact = one - rest
        runs, computing, start = 1, min(one, other), 0.0
        while self._exact is None and computing - rest < _SHARE * rest and runs < _MOST_RUNS:
            if start and monotonic() - start > _SECONDS:
                break
            each = max(computing - rest, rest / _STEP) / runs
            runs = min(_MOST_RUNS, runs * _STEP, max(2 * runs, int(1.2 * _SHARE * rest / each)))
            start = monotonic()
            found = self._count(runs)
            if isinstance(found, Crash):
                return found
            computing = found
        if computing <= rest:
            return self._level(computing, rest)
        self._runs = runs
        return None

    def _level(self, computing: float, rest: float) -> Crash:
        text = (
            f"{WHAT} counts {computing:.10g} cycles for the program and {rest:.10g} for the same "
            "without computing"
        )
        return Crash("level", None, text, "", self._at)

    def _count(self, runs: int) -> float | Crash:
        found = count_run(*self._program, runs)
        if isinstance(found, Crash):
            return found
        if runs == 1 and self.outputs is None:
            self.outputs = found.outputs
        return found.cycles
