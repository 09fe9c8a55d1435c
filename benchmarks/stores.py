"""How much it helps to store past the caches, and to ask for lines ahead.

    python benchmarks/stores.py [--rounds 9] [--most 24]

Times ``Y = max((X + Z) * 0.5, 0)`` over f32 as isamap writes it, with ordinary stores, with stores
past the caches, and with the places of results prefetched, for arrays of 2^16 bytes to 2^MOST: by
turns, best of all rounds, on one core.  Prints GB/s of the three arrays together.
"""

import argparse
import os
import time
from collections.abc import Mapping

import numpy as np

import isamap
from isamap.diagnostics import Source
from isamap.run.callable import Compiled
from isamap.schedule.reader import parse_schedule
from isamap.text.load import parse_module

KERNEL = """kernel residual(R, C = 1024) {
  in X : f32[R, C]  in Z : f32[R, C]  local T : f32[R, C]  out Y : f32[R, C]
  T[r, c] = X[r, c] + Z[r, c]
  Y[r, c] = max(T[r, c] * 0.5, 0)
}"""

WAYS = {
    "ordinary stores": "results cached",
    "past the caches": "results uncached",
    "results prefetched": "results cached\n    prefetch T 16 of c",
}

SCHEDULE = (
    "schedule residual {{\n  T {{\n    axes i <- c\n    loops r/4, c/32\n    {clauses}\n  }}\n}}\n"
)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each way is timed")
    parser.add_argument("--most", type=int, default=26, help="arrays of 2^MOST bytes at most")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sizes = list(range(16, given.most + 1, 2))
    ways = {name: compiled(clauses) for name, clauses in WAYS.items()}
    columns = [measured(ways, size, given.rounds) for size in sizes]
    print("| bytes of each array |", " | ".join(shown(size) for size in sizes), "|")
    print("|---" * (len(sizes) + 1) + "|")
    for name in WAYS:
        print(f"| {name} |", " | ".join(f"{column[name]:.3g}" for column in columns), "|")


def measured(ways: Mapping[str, Compiled], size: int, rounds: int) -> dict[str, float]:
    """Return the best GB/s of each way over arrays of 2^size bytes."""
    one = np.ones(((1 << size) // 4096, 1024), np.float32)
    other = one.copy()
    calls = {name: way.bind(X=one, Z=other) for name, way in ways.items()}
    repeats = max(1, (1 << 23) >> size)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats)
    return {name: 3e-9 * (1 << size) / seconds for name, seconds in best.items()}


def compiled(clauses: str) -> Compiled:
    """Return the kernel with a schedule of these clauses."""
    kernel = parse_module(KERNEL, "residual.ir").kernels[0]
    source = Source("residual.schedule", SCHEDULE.format(clauses=clauses))
    options = isamap.Options(schedule=parse_schedule(source))
    return isamap.map(kernel, isamap.load_hardware("native"), options).compile()


def shown(size: int) -> str:
    """Return 2^size bytes in KiB or MiB."""
    return f"{1 << (size - 20)} MiB" if size >= 20 else f"{1 << (size - 10)} KiB"


if __name__ == "__main__":
    main()
