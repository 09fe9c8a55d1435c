"""Cycles an element of copies that turn rows into columns: by blocks in vectors, and by loops.

    python benchmarks/turned.py

Turns 256 rows of 64 elements, so many at a time, as packed operands have them; best of many rounds,
on one core.  `loops` are what a compiler makes of the copy element by element, `blocks` the
functions that emitted C has (isamap/emit/turns.py).  With AMX also what a tile takes that is stored
as it is, and one that is stored aside and turned from there.  The clock is measured beside, by
multiplications that wait for each other.  The rules of isamap/lower/copying.py are from here.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from compiled import run

from isamap.emit.copies import ATTRIBUTE
from isamap.emit.turns import turns

FLAGS = ("-O2", "-march=native", "-Wall")


def main() -> int:
    """Compile the program with the functions of emitted C, and run it on one core."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    used = " ".join(f"isamap_turn{size}(" for size in (1, 2, 4, 8))
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "turns.h"
        includes = "#include <stdint.h>\n#include <string.h>\n"
        header.write_text(f"{includes}{ATTRIBUTE}{turns(used)}", encoding="utf-8")
        return run(__file__, (*FLAGS, "-include", str(header)))


if __name__ == "__main__":
    sys.exit(main())
