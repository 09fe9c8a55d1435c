"""How often vector instructions of 256 bits start: what hwdesc/x86_avx2.yaml says of them.

    python benchmarks/throughputs.py

Times loops of independent instructions beside a chain of additions, each of which takes one cycle:
no clock has to be known.  Prints the cycles of each instruction, and of pairs that might share a
unit.  Best of many rounds, on one core.
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
    return run(__file__, ("-O1", "-mavx2", "-mfma", "-Wall"))


if __name__ == "__main__":
    sys.exit(main())
