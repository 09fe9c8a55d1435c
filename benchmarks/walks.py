"""What it costs to read rows side by side, by their length.

    python benchmarks/walks.py [--rounds 5] [--bytes 134217728]

Times the greatest elements of rows in 64 lanes, one row after the other and two, four and seven
side by side, by turns, medians of all rounds, on one core.  Prints the time of each as a multiple
of the first one's.
"""

import argparse
import os

from flows import measured

import isamap

KERNEL = """kernel rows(R = {rows}, S = {steps}) {{
  in X : f32[R, S, 64]  out Y : f32[R, 64]
  Y[r, l] max= X[r, s, l]
}}"""
SCHEDULE = """schedule rows {{
  Y {{
    axes i <- l
    loops r/{rows}, s/1
    operands X direct
  }}
}}"""
BESIDE = (1, 2, 4, 7)
LENGTHS = (1024, 4096, 8192, 16384, 65536)
"""Bytes of a row."""


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each schedule is timed")
    parser.add_argument("--bytes", type=int, default=1 << 27, help="of all rows together")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    print(f"| bytes of a row | {' | '.join(f'{n} side by side' for n in BESIDE)} |")
    print("|---" * (1 + len(BESIDE)) + "|")
    for length in LENGTHS:
        kernel = KERNEL.format(rows=given.bytes // length, steps=length // 256)
        schedules = {str(n): SCHEDULE.format(rows=n) for n in BESIDE}
        times = measured(kernel, schedules, machine, given.rounds)
        first = times[str(BESIDE[0])]
        print(f"| {length} | {' | '.join(f'{t / first:.2f}' for t in times.values())} |")


if __name__ == "__main__":
    main()
