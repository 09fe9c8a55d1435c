"""Timing candidates: compiled side by side, then run by turns in one worker process."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np

from isamap.diagnostics import HardwareError, ToolError
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.run.build import build_shared
from isamap.run.measure import Measurement, measure
from isamap.run.outcome import Crash
from isamap.run.worker import Limits, Loaded, Worker
from isamap_search.objective import Candidate

_REPEATS = 7
# A search does not wait long for one candidate.
_LIMITS = Limits(seconds=30.0)


class Clock:
    """Measures candidates of one kernel on given arrays; a context manager, as it has a process.

    A candidate that the compiler refuses, that crashes or that does not end is a None among the
    seconds.  The first reason is kept in ``fault``, for a search in which all of them fail.
    """

    def __init__(
        self,
        kernel: Kernel,
        accelerator: Accelerator,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int],
        threads: int,
    ) -> None:
        self._bound = bind_extents(kernel)
        self._accelerator = accelerator
        self._arrays = arrays
        self._symbols = symbols
        self._threads = threads
        self._worker = Worker(_LIMITS)
        self.fault: ToolError | None = None

    def __enter__(self) -> "Clock":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    def __call__(self, candidates: Sequence[Candidate]) -> list[float | None]:
        """Return the least seconds of a few samples for each candidate."""
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            built = list(pool.map(self._build, candidates))
        together = [kernel for kernel in built if kernel]
        left = iter(
            measure(self._worker, together, self._arrays, self._symbols, self._threads, _REPEATS)
        )
        return [self._seconds(next(left)) if kernel else None for kernel in built]

    def _build(self, candidate: Candidate) -> Loaded | None:
        try:
            source = emit_c(candidate.lowered, self._accelerator, self._bound)
            return Loaded(build_shared(source, self._accelerator), source)
        except (ToolError, HardwareError) as error:
            self.fault = self.fault or ToolError(error.diagnostics)
            return None

    def _seconds(self, outcome: Measurement | Crash) -> float | None:
        if isinstance(outcome, Crash):
            self.fault = self.fault or ToolError(outcome.diagnostic)
            return None
        return outcome.best
