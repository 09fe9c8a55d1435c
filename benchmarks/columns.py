"""What it costs to store lines down columns, by how far rows lie apart.

    python benchmarks/columns.py

Stores 128 rows of 48 lines along rows, and down columns of 1 to 16 lines, best of many rounds, on
one core.  Prints the nanoseconds of a line.  Rows a multiple of four lines apart fall into few
sets of the first cache.  The constants of isamap/lower/columns.py are from here.
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
