"""How many bytes a cycle loops copy that pack operands, row by row and weaving several rows.

    python benchmarks/copies.py

Copies pieces of 64 columns of rows that lie 576 elements apart, and weaves 2, 4, 8 and 16 of them,
element by element; best of many rounds, on one core.  The clock is measured beside, by
multiplications that wait for each other.  The rule of isamap/lower/copying.py is from here.
"""

import argparse
import os
import sys

from compiled import run

FLAGS = ("-O3", "-march=native", "-fno-predictive-commoning", "-fno-tree-slp-vectorize", "-Wall")


def main() -> int:
    """Compile the program and run it on one core."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return run(__file__, FLAGS)


if __name__ == "__main__":
    sys.exit(main())
