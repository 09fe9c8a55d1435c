"""What it gains to pack a matrix of which every block passes a panel of rows that lie apart.

    python benchmarks/panels.py [--rounds 9]

Times products of f32 whose blocks pass the same panel of 64 columns 40, 80, 160 and 320 times, with
the matrix as it lies and packed.  By turns, medians of all rounds, on one core.  A ratio
above 1 says how many times as long it takes as it lies.
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
    loops n/64, m/6, k/1
    operands A direct, B {kind}
  }}
}}"""
SIZES = ((700, 2048), (704, 2048), (1000, 1000), (640, 512), (300, 1500))
PASSES = (40, 80, 160, 320)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each schedule is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    schedules = {kind: SCHEDULE.format(kind=kind) for kind in ("direct", "packed")}
    print(f"| columns x rows | {' | '.join(f'{n} passes' for n in PASSES)} |")
    print("|---" * (1 + len(PASSES)) + "|")
    for columns, depth in SIZES:
        ratios = []
        for passes in PASSES:
            text = KERNEL.format(rows=6 * passes, columns=columns, depth=depth)
            times = measured(text, schedules, machine, given.rounds)
            ratios.append(f"{times['direct'] / times['packed']:.2f}")
        print(f"| {columns} x {depth} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
