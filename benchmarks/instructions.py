"""Instructions that a packed product executes per multiply-accumulate, beside the fewest.

    python benchmarks/instructions.py                           # all targets that run here
    python benchmarks/instructions.py aarch64_neon --types "s8 to s32" --profile
    python benchmarks/instructions.py --markdown docs/matrix.md

For each type that a target multiplies with an instruction of several elements: the register block
that the rules choose, as a kernel of its own whose factors are packed ahead; the instructions that
the emulator executes for two lengths of the inner loop, of which the difference is counted; and the
fewest that the description allows (see executed/minimum.py).  With --profile the inner loop is
printed where there are more than 1.15 times as many, or spills.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from beside.report import put
from executed.measured import Measured, measure, profile, shortly
from executed.products import TYPES

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import runnable

HEAD = (
    "| target | product | instruction | block | executed | fewest | ratio | spills |",
    "|---|---|---|---|---:|---:|---:|---|",
)


def main() -> int:
    """Count, and print or write a table; return 1 where something is worse than it should be."""
    asked = _arguments()
    bad = 0
    for name in asked.names or shipped_names():
        machine = load_hardware(name, trust=asked.trust)
        if machine.toolchain is None:
            continue
        if machine.scratchpads:
            new = [f"| `{machine.name}` | | | | | | | its products are of whole scratchpads |"]
        elif reason := runnable(machine):
            new = [f"| `{machine.name}` | | | | | | | not run here: {reason} |"]
        else:
            found = measure(machine, asked.types)
            bad += sum(not one.good for one in found)
            new = [_row(machine, one) for one in found]
            new = new or [f"| `{machine.name}` | | no instruction has several elements | | | | | |"]
            if asked.profile:
                new = [line for one in found for line in _with_profile(machine, one)]
        print("\n".join([*HEAD, *new]), flush=True)
        if asked.markdown is not None:
            put(asked.markdown, f"products {name}", [*HEAD, *new])
    return int(bad > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="HW", help="descriptions, not all that ship")
    parser.add_argument("--types", choices=TYPES, help="one product only, as in 's8 to s32'")
    parser.add_argument("--trust", action="store_true", help="compile and run what is described")
    parser.add_argument("--profile", action="store_true", help="print inner loops that are long")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into FILE")
    return parser.parse_args()


def _row(machine: Accelerator, one: Measured) -> str:
    product, least = one.product, one.fewest
    executed = "not counted" if one.executed is None else f"{one.executed:.4f}"
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    return (
        f"| `{machine.name}` | {product.types} | `{product.instruction}` | "
        f"{product.rows} x {product.columns} | {executed} | "
        f"{least.instructions:.4f} | {ratio} | {shortly(one.spilled)} |"
    )


def _with_profile(machine: Accelerator, one: Measured) -> list[str]:
    inner = [] if one.good or one.deep is None else profile(one.deep)
    return [_row(machine, one), *inner]


if __name__ == "__main__":
    sys.exit(main())
