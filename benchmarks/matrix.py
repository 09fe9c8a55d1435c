"""What becomes of each kernel of tests/targets/kernels.ir on each target: docs/matrix.md.

    python benchmarks/matrix.py aarch64_neon                       # one target
    python benchmarks/matrix.py aarch64_neon --kernels gemm_f32,dot
    python benchmarks/matrix.py --markdown docs/matrix.md          # all of them, into the page

A table for each target: the instruction of the statement that has most iterations, how much of it
is used, what the whole call executes for each iteration of the kernel (a multiply-accumulate, for
most), and the calls of the instruction alone if all of it were used.  Of targets that are simulated
it has cycles instead.  Machines whose memories a program fills store few types: their tables have
those kernels of tests/explicit, too, that they compute.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from beside.report import put
from executed.cells import Cell, cell

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import runnable
from isamap.text.load import load_module

TESTS = Path(__file__).parents[1] / "tests"
KERNELS, EXPLICIT = TESTS / "targets" / "kernels.ir", TESTS / "explicit"


def main() -> int:
    """Print the tables, or write them into a page."""
    asked = _arguments()
    kernels = load_module(KERNELS).kernels
    chosen = set((asked.kernels or ",".join(k.name for k in kernels)).split(","))
    for name in asked.names or shipped_names():
        machine = load_hardware(name, trust=asked.trust)
        if machine.toolchain is not None and (reason := runnable(machine)):
            lines = [f"### `{name}`", "", f"Not run here: {reason}."]
        else:
            rows = [_row(k.name, cell(k, machine)) for k in kernels if k.name in chosen]
            lines = [*_head(machine), *rows, *(() if asked.kernels else _explicit(machine))]
        print("\n".join(lines), flush=True)
        if asked.markdown is not None:
            put(asked.markdown, f"matrix {name}", lines)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="HW", help="descriptions, not all that ship")
    parser.add_argument("--kernels", metavar="NAME,...", help="only these")
    parser.add_argument("--trust", action="store_true", help="compile and run what is described")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into FILE")
    return parser.parse_args()


def _explicit(machine: Accelerator) -> list[str]:
    """Return rows of the kernels for machines whose memories a program fills, if this is one."""
    if machine.toolchain is not None or not machine.scratchpads:
        return []
    files = {path.stem: load_module(path).kernels for path in sorted(EXPLICIT.glob("*.ir"))}
    own = [(f"{file}: {k.name}", cell(k, machine)) for file, found in files.items() for k in found]
    return [_row(name, found) for name, found in own if found is not None]


def _head(machine: Accelerator) -> list[str]:
    what = "cycles" if machine.toolchain is None else "executed"
    return [
        f"### `{machine.name}`",
        "",
        f"| kernel | instruction | used | {what} | fewest |",
        "|---|---|---:|---:|---:|",
    ]


def _row(kernel: str, found: Cell | None) -> str:
    if found is None:
        return f"| {kernel} | nothing computes it | | | |"
    executed = "not counted" if found.executed is None else f"{found.executed:.3f}"
    scalar = ", one element" if found.scalar else ""
    return (
        f"| {kernel} | `{found.instruction}`{scalar} | {found.used:.0%} | "
        f"{executed} | {found.fewest:.3f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
