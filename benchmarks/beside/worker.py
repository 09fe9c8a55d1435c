"""One peer in a process of its own: computes and times the cases that it is told.

    python worker.py MODULE THREADS          reads and writes a JSON object a line

``{"case": CASE, "window": S, "answer": FILE}`` makes a case ready, and writes its answer as .npy;
``{"time": true}`` times one window of calls.  Only ``side_by_side.py`` starts it.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from beside import inputs
from beside.way import Way

TRIES = 5
"""Calls by which the fastest of several ways is chosen, after one that is not counted."""

WARM = 0.002
"""Seconds of calls before each window: others had the caches and the clock meanwhile."""


class Timed:
    """A case that is ready: calls of one way, as many in a window as fill it."""

    def __init__(self, way: Way, window: float) -> None:
        self.way = way
        self.one = _fastest(way.run)
        self.count = max(1, round(window / self.one))

    def seconds(self) -> float:
        """Return the mean time of a call over one window."""
        run, until = self.way.run, perf_counter() + WARM
        run()
        while perf_counter() < until:
            run()
        start = perf_counter()
        for _ in repeat(None, self.count):
            run()
        return (perf_counter() - start) / self.count


def ready(library: Any, request: dict[str, Any], threads: int) -> tuple[Timed | None, list[str]]:
    """Return the fastest way of a library for a case, None if it has none; and what went wrong."""
    best: Timed | None = None
    faults: list[str] = []
    found = library.ways(request["case"], threads)
    while True:
        try:
            way = next(found, None)
            if way is None:
                return best, faults
            timed = Timed(way, request["window"])
        except Exception as error:  # whatever a library raises: this way is none
            faults.append(f"{type(error).__name__}: {error}"[:300])
            print(request["case"], faults[-1], file=sys.stderr)
            continue
        if best is None or timed.one < best.one:
            best = timed


def _fastest(run: Callable[[], object]) -> float:
    run()
    taken = []
    for _ in range(TRIES):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return max(min(taken), 1e-7)


def main() -> None:
    """Answer requests until there are no more."""
    wire = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer

    def say(**answer: object) -> None:
        wire.write(json.dumps(answer) + "\n")
        wire.flush()

    # The kernels' inputs, for benchmarks/peer_cases as well.
    sys.modules["data"] = inputs
    threads = int(sys.argv[2])
    try:
        library = importlib.import_module(f"beside.libraries.{sys.argv[1]}")
    except ModuleNotFoundError as error:
        say(missing=error.name)
        return
    say(version=library.VERSION)
    timed: Timed | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if "time" in request:
            assert timed is not None
            say(seconds=timed.seconds())
            continue
        timed = None  # its memory is free before the next one's is taken
        start = perf_counter()
        timed, faults = ready(library, request, threads)
        if timed is None:
            say(way=None, faults=faults)
            continue
        np.save(request["answer"], timed.way.answer())
        say(way=timed.way.name, faults=faults, setup=perf_counter() - start)


if __name__ == "__main__":
    main()
