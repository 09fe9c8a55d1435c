"""What emitted code takes of memory beside inputs and outputs, and what a search takes.

    python benchmarks/memory.py --limit 3 --search 5s --markdown docs/performance.md
    python benchmarks/memory.py --hw x86_amx --families conv_u8s8

First schedules of some cases of each family.  ``copies`` are operands that are packed, padded or
transformed, those of constants, which are kept, included; ``locals`` are what a kernel's text
itself holds between its statements, where that is not kept in registers.  Both are given as a part
of the bytes of the inputs and outputs: the mean over the cases, and the most.  With ``--search``
the case of each family that takes most is tuned for so long, in a process of its own; its peak
counts, or that of a compiler that it calls, if that is higher.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from beside import inputs
from beside.cases import cases, families, spread, title
from beside.report import put
from peer import mapped

from isamap.pipeline.result import Result
from isamap.schedule.shape import ASSUMED_EXTENT

PEAK_OF = """
import os, sys
process = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(process, 0)
print(used.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command and tells its peak in KiB; a small program, for Linux counts to the peak of a
process what the one that starts it has at that time."""


@dataclass(frozen=True)
class Taken:
    """Bytes of one case: its arrays, and those that the code has beside them."""

    title: str
    text: str
    given: int
    copies: int
    locals: int

    @property
    def share(self) -> float:
        """Copies as a part of inputs and outputs."""
        return self.copies / self.given


def taken(name: str, text: str, result: Result) -> Taken:
    """Return the bytes of a case that is mapped for one thread."""
    values = dict.fromkeys(result.kernel.symbols, ASSUMED_EXTENT)
    held = {buffer.name for buffer in result.kernel.buffers if buffer.role == "local"}
    given = copies = kept = 0
    for array in result.lowered.arrays:
        size = int(array.size.evaluate(values)) * array.dtype.bytes
        if array.contents is not None:
            continue
        if array.role not in ("local", "prepared"):
            given += size
        elif array.name in held:
            kept += size
        else:
            copies += size
    return Taken(name, text, given, copies, kept)


def searched(one: Taken, hardware: str, budget: str) -> float:
    """Return the peak of a search in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.ir"
        path.write_text(one.text)
        command = [sys.executable, "-m", "isamap", "map", str(path), "--hw", hardware]
        command += ["--tune", budget, "--no-records"]
        done = subprocess.run(
            [sys.executable, "-c", PEAK_OF, *command], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"the search of {one.title} ended with {done.returncode}")
    return int(done.stderr.splitlines()[-1]) / 1024


def line(family: str, found: Sequence[Taken], peak: float | None) -> str:
    """Return the row of a family."""
    most = max(found, key=lambda one: one.share)
    held = max(one.locals / one.given for one in found)
    cells = [
        family,
        str(len(found)),
        f"{fmean(one.share for one in found):.2f}",
        f"{most.share:.2f} ({most.title.partition(' ')[2]})",
        f"{held:.2f}",
        "" if peak is None else f"{peak:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hw", default="native", help="a description")
    parser.add_argument("--limit", type=int, default=3, help="cases of each family")
    parser.add_argument("--families", help="these only, separated by commas")
    parser.add_argument("--search", metavar="BUDGET", help="how long a search is, such as 5s")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into FILE")
    arguments = parser.parse_args()
    os.environ["ISAMAP_PEER_HW"] = arguments.hw
    sys.modules["data"] = inputs  # what peer_cases imports
    from peer_cases import problems

    rows = [
        "| family | cases | copies: mean | most | locals: most | search, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for family in arguments.families.split(",") if arguments.families else families():
        found = []
        for case in spread(cases(family), arguments.limit):
            made = mapped(problems(case), 1)
            if made is not None:
                found.append(taken(title(case), made[0].text, made[1]))
        if not found:
            continue
        most = max(found, key=lambda one: one.share)
        peak = searched(most, arguments.hw, arguments.search) if arguments.search else None
        rows.append(line(family, found, peak))
        print(rows[-1], flush=True)
    if arguments.markdown:
        put(arguments.markdown, "memory", rows)


if __name__ == "__main__":
    main()
