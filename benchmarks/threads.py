"""What two cores hand over to each other, and how long it takes them to meet.

    python benchmarks/threads.py

Reads and writes lines that lie in the caches of this core or of another one, on two cores, medians
of many rounds; a line is read by one load.  MEETING in isamap/lower/cost.py, and that data of
others come at the rate of the last cache, are from here.
"""

import argparse
import os
import sys

from compiled import run


def main() -> int:
    """Compile the program and run it on two cores."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("none: this process has one core", file=sys.stderr)
        return 1
    return run(__file__, ("-O2", "-Wall", "-pthread"), [str(core) for core in cores])


if __name__ == "__main__":
    sys.exit(main())
