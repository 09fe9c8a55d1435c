"""What it costs to read panels of short rows from the second cache, by how far rows lie apart.

    python benchmarks/rows.py

Reads panels of 1, 2, 4 and 8 lines in each row, one panel after the other, of an array that the
second cache holds, best of many rounds, on one core.  Prints the time of a line as a multiple of
that of one of rows that follow each other.  The constant of isamap/lower/delivery.py is from here.
"""

import argparse
import os
import sys

from compiled import run


def main() -> int:
    """Compile the program and run it on one core."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return run(__file__, ("-O2", "-march=native", "-Wall"))


if __name__ == "__main__":
    sys.exit(main())
