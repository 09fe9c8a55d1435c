"""Rows of an element-wise block that lie side by side: what more of them cost.

    python benchmarks/blocks.py [--rounds 9]

Times a bias and a ReLU over matrices of f32, in blocks of 1 to 28 rows by so many columns that a
block has about 16 vectors, beside the first schedule.  By turns, medians of all rounds, on one
core.  A ratio above 1 says how many times as long as the first schedule it takes.
"""

import argparse
import os

from flows import measured

import isamap

KERNEL = """kernel biased(R = {rows}, C = {columns}) {{
  in X : f32[R, C]  const B : f32[C]  out Y : f32[R, C]
  Y[r, c] = max(X[r, c] + B[c], 0)
}}"""
SCHEDULE = """schedule biased {{
  Y {{
    axes i <- c
    loops r/{rows}, c/{columns}
  }}
}}"""
SIZES = ((100, 512), (128, 768), (1000, 1000), (1024, 1024), (512, 4096), (64, 16384), (4096, 4096))
ROWS = (1, 2, 4, 8, 11, 16, 28)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each schedule is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    print(f"| rows x columns | {' | '.join(f'{n} rows' for n in ROWS)} |")
    print("|---" * (1 + len(ROWS)) + "|")
    for rows, columns in SIZES:
        blocks = {
            str(n): SCHEDULE.format(rows=n, columns=max(16, 256 // n // 16 * 16)) for n in ROWS
        }
        text = KERNEL.format(rows=rows, columns=columns)
        first = "schedule biased {\n}\n"
        times = measured(text, {"first": first, **blocks}, machine, given.rounds)
        ratios = (f"{times[name] / times['first']:.2f}" for name in blocks)
        print(f"| {rows} x {columns} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
