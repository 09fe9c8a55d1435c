"""Timing candidates: compiled side by side, then run by turns in one worker process."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeAlias

import numpy as np

from isamap.diagnostics import HardwareError, NoMappingError, ToolError
from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import LoweredKernel
from isamap.run.build import build_shared
from isamap.run.outcome import Crash
from isamap.run.worker import Limits, Loaded, Worker
from isamap_search.code_size import code_bytes
from isamap_search.objective import Candidate, Point

Emit: TypeAlias = Callable[[LoweredKernel, Accelerator, Kernel], CSource]
"""Makes the C of a lowered kernel; raises HardwareError or NoMappingError where it cannot."""

# A search does not wait long for one candidate.
_LIMITS = Limits(seconds=30.0)


class Clock:
    """Measures candidates of one kernel on given arrays; a context manager, as it has a process.

    A candidate that the compiler refuses, that crashes or that does not end has no samples.  The
    first reason is kept in ``fault``, for a search in which all of them fail.
    """

    def __init__(
        self,
        kernel: Kernel,
        accelerator: Accelerator,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int],
        threads: int,
        emit: Emit = emit_c,
    ) -> None:
        self._bound = bind_extents(kernel)
        self._accelerator = accelerator
        self._arrays = arrays
        self._symbols = symbols
        self._threads = threads
        self._emit = emit
        self._worker = Worker(_LIMITS)
        self._ready: dict[Point, Loaded | None] = {}
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

    def __call__(
        self, candidates: Sequence[Candidate], rounds: int
    ) -> list[tuple[float, ...] | None]:
        """Return samples of each candidate, taken by turns; None for one that fails."""
        self._prepare([c for c in candidates if c.point not in self._ready])
        running = [c.point for c in candidates if self._ready[c.point]]
        taken: dict[Point, tuple[float, ...]] = {}
        while running:
            found = self._time(running, rounds)
            if not isinstance(found, Crash):
                taken = dict(zip(running, found, strict=True))
                break
            # One of them, which ran alone before, fails by turns with the others: which one?
            alone = {point: self._time([point], 1) for point in running}
            failing = {p: one for p, one in alone.items() if isinstance(one, Crash)}
            # Where each runs alone all the same, none of them is to be had in this comparison.
            for point, crash in (failing or dict.fromkeys(running, found)).items():
                self._fail(point, crash)
            running = [point for point in running if self._ready[point]]
        return [taken.get(c.point) for c in candidates]

    def _time(self, points: Sequence[Point], rounds: int) -> tuple[tuple[float, ...], ...] | Crash:
        together = [loaded for point in points if (loaded := self._ready[point])]
        return self._worker.time(together, self._arrays, self._symbols, self._threads, rounds)

    def code_bytes(self, candidate: Candidate) -> int:
        """Return the bytes of machine code of a candidate that was timed."""
        loaded = self._ready[candidate.point]
        assert loaded is not None
        return code_bytes(loaded.path)

    def _prepare(self, candidates: Sequence[Candidate]) -> None:
        """Compile candidates and run each once, alone: a crash takes nothing along."""
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            built = list(pool.map(self._build, candidates))
        for candidate, loaded in zip(candidates, built, strict=True):
            self._ready[candidate.point] = loaded
            if loaded is not None:
                once = self._worker.run(loaded, self._arrays, self._symbols, self._threads)
                if isinstance(once, Crash):
                    self._fail(candidate.point, once)

    def _build(self, candidate: Candidate) -> Loaded | None:
        try:
            source = self._emit(candidate.lowered, self._accelerator, self._bound)
            return Loaded(build_shared(source, self._accelerator), source)
        except (ToolError, HardwareError, NoMappingError) as error:
            self.fault = self.fault or ToolError(error.diagnostics)
            return None

    def _fail(self, point: Point, crash: Crash) -> None:
        self._ready[point] = None
        self.fault = self.fault or ToolError(crash.diagnostic)
