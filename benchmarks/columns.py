"""What it costs to store lines down columns, by how far rows lie apart.

    python benchmarks/columns.py

Stores 128 rows of 48 lines along rows, and down columns of 1 to 16 lines, best of many rounds, on
one core.  Prints the nanoseconds of a line.  Rows a multiple of four lines apart fall into few
sets of the first cache.  The constants of isamap/lower/crowded.py are from here.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def main() -> int:
    """Compile the program and run it on one core."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "columns"
        flags = ["-O2", "-march=native", "-Wall"]
        subprocess.run(["gcc", *flags, str(SOURCE), "-o", str(program)], check=True)
        return subprocess.run([str(program)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
