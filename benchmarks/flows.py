"""What a block makes of an operand that no second cache holds, and what asking ahead is worth.

    python benchmarks/flows.py [--rounds 9]

Times schedules of products of a few rows or columns by a matrix that comes from the third cache or
memory: in f32 with weights packed ahead, with and without asking for them ahead, in this panel and
the next; in bf16 by the
tiles of a matrix unit, where this CPU has them, with blocks of more and more rows.  By turns,
medians of all rounds, on one core.  Prints the time of each as a multiple of the first one's.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import isamap
from isamap.diagnostics import Source
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.schedule.reader import parse_schedule
from isamap.text.load import parse_module

WEIGHTS = """kernel few(M = 16, N = 1760, K = 1760) {
  in A : f32[M, K]  const B : f32[N, K]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[n, k]
}"""
PACKED = """schedule few {{
  C {{
    axes i <- n
    loops {loops}
    operands A direct, B packed
    prefetch {ahead}
  }}
}}"""
PRODUCTS = {
    f"{rows} rows, {ahead}": (loops, ahead)
    for rows, loops in (("8x48", "n/48, m/8, k/1"), ("16x16", "n/16, m/16, k/1"))
    for ahead in ("none", "B 16 of k", "B 64 of k", "B 256 of k")
}

PANELS = """kernel few(M = {rows}, N = 2048, K = 2048) {{
  in A : f32[M, K]  const B : f32[N, K]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[n, k]
}}"""
NEXT = {
    ahead: ("n/48, m/8, k/1", ahead)
    for ahead in ("none", "B 32 of k", "B next of n", "B 32 of k, B next of n")
}
ROWS = (32, 64, 128, 512)

TALL = """kernel tall(M = 2560, N = 16, K = 2560) {
  in A : bf16[M, K]  in B : bf16[K, N]  out C : f32[M, N]
  C[m, n] += f32(A[m, k]) * f32(B[k, n])
}"""
DIRECT = """schedule tall {{
  C {{
    instruction tdpbf16ps
    axes i <- m, j <- n, k*p <- k
    loops m/{rows}, k/32
    operands A direct, B packed
  }}
}}"""
TILES = (16, 32, 64, 80)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each schedule is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    blocks = {name: PACKED.format(loops=a, ahead=b) for name, (a, b) in PRODUCTS.items()}
    shown(
        "16 rows by 1760x1760 f32, block and hint", measured(WEIGHTS, blocks, machine, given.rounds)
    )
    panels = {name: PACKED.format(loops=a, ahead=b) for name, (a, b) in NEXT.items()}
    for rows in ROWS:
        times = measured(PANELS.format(rows=rows), panels, machine, given.rounds)
        shown(f"{rows} rows by 2048x2048 f32, what is asked for", times)
    if any(entry.name == "tdpbf16ps" for entry in machine.entries):
        tiles = {f"{rows} rows": DIRECT.format(rows=rows) for rows in TILES}
        shown("2560x2560 by 16 columns bf16, block", measured(TALL, tiles, machine, given.rounds))


def measured(
    text: str, schedules: dict[str, str], machine: Accelerator, rounds: int
) -> dict[str, float]:
    """Return the median seconds of each schedule."""
    calls = {name: bound(text, schedule, machine) for name, schedule in schedules.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(4):
                call()
            times[name].append((time.perf_counter() - start) / 4)
    return {name: statistics.median(own) for name, own in times.items()}


def bound(text: str, schedule: str, machine: Accelerator) -> Callable[[], object]:
    """Return a call of a kernel by a schedule, on inputs of its own."""
    kernel = parse_module(text, "kernel.ir").kernels[0]
    options = isamap.Options(schedule=parse_schedule(Source("schedule", schedule)))
    arrays = random_inputs(kernel, {}, seed=1)
    constants = {b.name: arrays[b.name] for b in kernel.buffers if b.role == "const"}
    given = {b.name: arrays[b.name] for b in kernel.buffers if b.role == "in"}
    ready = isamap.map(kernel, machine, options).compile().prepare(**constants)
    return ready.bind(**given)


def shown(title: str, times: dict[str, float]) -> None:
    """Print a table."""
    first = next(iter(times.values()))
    print(f"| {title} | time |\n|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {seconds / first:.2f} |")
    print()


if __name__ == "__main__":
    main()
