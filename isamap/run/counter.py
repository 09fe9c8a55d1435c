"""The cycles that a program takes to compute, of counts of all that it does.

A program does more than compute: it starts, reads, prepares constants and writes.  So it is run
with everything but the computing, too, and what that takes is subtracted.  A command that counts
the same twice, each way, is exact: it is not asked again.  One that does not has noise, more of it
of starting programs than of computing: then the program computes so often that most of its time is
that.
"""

from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import numpy as np

from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.run.arguments import check_arrays
from isamap.run.board import WHAT, count_run
from isamap.run.build import require_toolchain
from isamap.run.outcome import Crash
from isamap.run.program import to_repeat

_SHARE, _CLEAR = 2, 20
"""Where counts differ, computing takes so many times what the rest does, and its variation."""

_MOST_RUNS = 1 << 20
_STEP = 32
# Runs are not made longer than this, nor than half of what the description allows.
_SECONDS = 4.0
_IDLE_COUNTS = 5


class Counter:
    """Counts the cycles that one program takes to compute on given arrays.

    ``outputs`` are what it wrote when it first computed, None before.  ``runs`` says how often it
    computes in a run where counts are not exact; it grows, and may be set before the first sample.
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
        tools = require_toolchain(accelerator)
        self._at, self._longest = tools.measure_at, min(_SECONDS, tools.seconds / 2)
        self._program = path, source, accelerator, arrays, symbols, threads
        self._idle: list[float] = []
        self._once: list[float] = []
        self._exact: float | None = None
        self.runs, self._is_settled = 1, False
        self.outputs: dict[str, np.ndarray] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the command counted the same each time."""
        return self._exact is not None

    def run(self) -> Crash | None:
        """Compute once, for the outputs; return why there are none.

        ToolError if the command cannot be started.
        """
        return self._take(self._once, 1)

    def to_repeat(self) -> str:
        """Return the command that repeats a run, on copies that outlive this process."""
        return to_repeat(*self._program)

    def sample(self) -> float | Crash:
        """Return the cycles of computing once; ToolError if the command cannot be started."""
        if not self._idle and (crash := self._begin()) is not None:
            return crash
        if self._exact is not None:
            return self._exact
        if len(self._idle) < _IDLE_COUNTS and (crash := self._take(self._idle, 0)) is not None:
            return crash
        # What disturbs a count adds to it.
        rest = min(self._idle)
        computing = self._count(self.runs) if self._is_settled else self._settle(rest)
        if isinstance(computing, Crash):
            return computing
        return (computing - rest) / self.runs if computing > rest else self._level(computing, rest)

    def samples(self, most: int, seconds: float) -> tuple[float, ...] | Crash:
        """Return up to ``most`` samples, as many as begin within ``seconds``; of exact counts the
        two that were found to be the same.
        """
        samples: list[float] = []
        start = monotonic()
        while not samples or (len(samples) < most and monotonic() - start < seconds):
            found = self.sample()
            if isinstance(found, Crash):
                return found
            if self.is_exact:
                return found, found
            samples.append(found)
        return tuple(samples)

    def _begin(self) -> Crash | None:
        """Find out whether counts are exact."""
        for taken, runs in ((self._once, 1), (self._idle, 0)):
            while len(taken) < 2:
                if (crash := self._take(taken, runs)) is not None:
                    return crash
        (one, other), (rest, again) = self._once[:2], self._idle
        if one == other and rest == again and one > rest:
            self._exact = one - rest
        return None

    def _settle(self, rest: float) -> float | Crash:
        """Find out how often to compute in a run; return the count of the last one."""
        self._is_settled = True
        enough = max(_SHARE * rest, _CLEAR * (max(self._idle) - rest))
        while True:
            start = monotonic()
            one, other = self._count(self.runs), self._count(self.runs)
            if isinstance(one, Crash) or isinstance(other, Crash):
                return one if isinstance(one, Crash) else other
            computing = min(one, other)
            # So many times as often there is still time for.
            taken = (monotonic() - start) / 2
            room = min(_STEP, int(self._longest / taken), _MOST_RUNS // self.runs)
            if room < 2 or computing - rest >= enough:
                return computing
            self.runs *= min(room, max(2, int(1.5 * enough / max(computing - rest, 1))))

    def _take(self, counts: list[float], runs: int) -> Crash | None:
        found = self._count(runs)
        if isinstance(found, Crash):
            return found
        counts.append(found)
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
