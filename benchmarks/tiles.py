"""Cycles of what moves tiles of matrices (AMX), and of what follows their products.

    python benchmarks/tiles.py [--core 0]

Figures of hwdesc/x86_amx.yaml are from here.  Prints a line for each; "none" where the CPU or
the system has no tiles.
"""

import argparse
import os
import sys

from compiled import run

FLAGS = (
    "-O2", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512bf16", "-mbmi2", "-mamx-tile",
    "-mamx-bf16",
)  # fmt: skip


def main() -> int:
    """Compile the program and run it on one core."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    given = parser.parse_args()
    os.sched_setaffinity(0, {given.core})
    return run(__file__, FLAGS)


if __name__ == "__main__":
    sys.exit(main())
