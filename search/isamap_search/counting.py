"""Counting the cycles of candidates by the description's measuring command."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from isamap.diagnostics import HardwareError, NoMappingError, ToolError
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.run.build import build_program
from isamap.run.counter import Counter
from isamap.run.outcome import Crash
from isamap_search.clock import Emit
from isamap_search.code_size import code_bytes
from isamap_search.objective import Candidate, Point
from isamap_search.race import Rules

RULES = Rules(seconds=0.0)
"""A race ends with its second stage: starting programs takes far longer than what they compute."""


class Counting:
    """Measures candidates of one kernel on given arrays: cycles, as seconds at the described clock.

    A candidate that the compiler refuses, or of which the command gives no count, has no samples.
    The first reason is kept in ``fault``, for a search in which all of them fail.
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
        self._emit = emit
        self._bound = bind_extents(kernel)
        self._accelerator = accelerator
        self._given = arrays, symbols, threads
        self._counters: dict[Point, Counter | None] = {}
        self._begun: set[Point] = set()
        self.fault: ToolError | None = None

    def __call__(
        self, candidates: Sequence[Candidate], rounds: int
    ) -> list[tuple[float, ...] | None]:
        """Return samples of each candidate, taken by turns; None for one that fails."""
        new = [c for c in candidates if c.point not in self._counters]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            built = list(pool.map(self._build, new))
        self._counters |= {c.point: counter for c, counter in zip(new, built, strict=True)}
        taken: dict[Point, list[float]] = {c.point: [] for c in candidates}
        for _ in range(rounds):
            for candidate in candidates:
                if (seconds := self._sample(candidate.point)) is not None:
                    taken[candidate.point].append(seconds)
        return [tuple(taken[c.point]) if self._counters[c.point] else None for c in candidates]

    def code_bytes(self, candidate: Candidate) -> int:
        """Return the bytes of machine code of a candidate's program."""
        counter = self._counters[candidate.point]
        assert counter is not None
        return code_bytes(counter.path)

    def _sample(self, point: Point) -> float | None:
        if (counter := self._counters[point]) is None:
            return None
        if point not in self._begun:
            # Candidates of one kernel take about as long: none of them need find out again.
            begun = [own for p in self._begun if (own := self._counters[p]) is not None]
            counter.runs = max((own.runs for own in begun), default=1)
            self._begun.add(point)
        try:
            cycles = counter.sample()
        except ToolError as error:  # the command cannot be started
            self._fail(point, error)
            return None
        if isinstance(cycles, Crash):
            self._fail(point, ToolError(cycles.diagnostic))
            return None
        return cycles / float(self._accelerator.clock)

    def _build(self, candidate: Candidate) -> Counter | None:
        try:
            source = self._emit(candidate.lowered, self._accelerator, self._bound)
            path = build_program(source, self._accelerator)
            return Counter(path, source, self._accelerator, *self._given)
        except (ToolError, HardwareError, NoMappingError) as error:
            self.fault = self.fault or ToolError(error.diagnostics)
            return None

    def _fail(self, point: Point, error: ToolError) -> None:
        self._counters[point] = None
        self.fault = self.fault or error
