"""What it gains to have several steps of a reduction in one register block.

    python benchmarks/unrolled.py [--rounds 9]

Times products of f32 whose blocks have one and four vectors of columns, with one, two, four and
eight steps of the sum in a block.  By turns, medians of all rounds, on one core.  Prints the time
of each as a multiple of the first one's.
"""

import argparse
import os

from flows import measured

import isamap

KERNEL = """kernel product(M = {rows}, N = {columns}, K = {depth}) {{
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}}"""
SCHEDULE = """schedule product {{
  C {{
    axes i <- n
    loops {loops}, k/{steps}
    operands A direct, B direct
  }}
}}"""
SIZES = (
    (512, 16, 512, "m/16"),
    (1024, 16, 512, "m/16"),
    (1760, 32, 1760, "m/14"),
    (256, 256, 256, "n/64, m/6"),
    (1760, 64, 1760, "m/6"),
)
STEPS = (1, 2, 4, 8)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each schedule is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    print(f"| product | block | {' | '.join(f'{n} steps' for n in STEPS)} |")
    print("|---" * (2 + len(STEPS)) + "|")
    for rows, columns, depth, loops in SIZES:
        text = KERNEL.format(rows=rows, columns=columns, depth=depth)
        schedules = {str(n): SCHEDULE.format(loops=loops, steps=n) for n in STEPS}
        times = measured(text, schedules, machine, given.rounds)
        ratios = (f"{times[str(n)] / times['1']:.2f}" for n in STEPS)
        print(f"| {rows} x {columns} x {depth} | {loops} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
