"""Where the time of a kernel goes, statement by statement.

    python benchmarks/parts.py                                     # soft-max and layer norm
    python benchmarks/parts.py --kernel FILE.ir --hw native --set R=64

A kernel is timed as its first statement alone, as its first two, and so on: what one more takes is
its part.  What later statements would read is written to memory in each of them, as in the whole
kernel.  All are mapped by rule and timed in turn on one core, medians of all rounds; beside them a
copy of as many bytes as all inputs and outputs of the whole kernel have.

Each of them has a schedule of its own, and the first statement waits for what all of them read: of
kernels whose data no near cache holds, the shares of later statements are too small, even negative.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np

import isamap
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses, bind_extents
from isamap.text.load import parse_module

sys.path.insert(0, str(Path(__file__).parent))

from beside import inputs
from beside.cases import cases, title

FAMILIES = ("softmax_f32", "layernorm_f32")
WINDOW = 0.004
"""Seconds of calls of one time, at least."""

Row: TypeAlias = tuple[str, list[tuple[str, float]], float]
"""A case, the seconds of each statement, and those of the copy."""


def cut(kernel: Kernel, count: int) -> Kernel:
    """Return the kernel of the first ``count`` statements.

    Its outputs are what they write for outside, or for the statements that are left out.
    """
    kept, left = kernel.statements[:count], kernel.statements[count:]
    later = {access.buffer for one in left for access in accesses(one.value)}
    later |= {kept[-1].target.buffer}
    used = {access.buffer for one in kept for access in accesses(one.value)}
    used |= {one.target.buffer for one in kept}
    names = {variable.name for one in kept for variable in one.variables}
    buffers = tuple(
        replace(b, role="out") if b.role == "local" and b.name in later else b
        for b in kernel.buffers
        if b.name in used
    )
    ranges = tuple(one for one in kernel.ranges if one.name in names)
    return replace(kernel, buffers=buffers, statements=kept, ranges=ranges)


def parts(name: str, kernel: Kernel, hardware: str, rounds: int) -> Row:
    """Return the times of a kernel's statements."""
    machine = isamap.load_hardware(hardware)
    counts = range(1, len(kernel.statements) + 1)
    whole = [cut(kernel, count) for count in counts]
    compiled = [isamap.map(one, machine, isamap.Options(prove=False)).compile() for one in whole]
    calls: list[Callable[[], object]] = [
        code.bind(**random_inputs(one, {}, 0)) for code, one in zip(compiled, whole, strict=True)
    ]
    calls.append(_copy(kernel))
    times: list[list[float]] = [[] for _ in calls]
    repeats = [max(1, int(WINDOW / max(1e-7, _seconds(call, 1)))) for call in calls]
    for _ in range(rounds):
        for own, call, count in zip(times, calls, repeats, strict=True):
            own.append(_seconds(call, count))
    ends = [median(own) for own in times]
    targets = [statement.target.buffer for statement in kernel.statements]
    steps = [after - before for before, after in zip([0.0, *ends[:-2]], ends[:-1], strict=True)]
    return name, list(zip(targets, steps, strict=True)), ends[-1]


def _copy(kernel: Kernel) -> Callable[[], object]:
    buffers = [b for b in bind_extents(kernel).buffers if b.role in ("in", "out", "const")]
    sizes = [b.dtype.bytes * int(np.prod([e.evaluate({}) for e in b.shape])) for b in buffers]
    source = np.ones(sum(sizes) // 2, np.uint8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def _seconds(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table: the share of each statement, in order."""
    lines = ["| case | time | share of each statement | of a copy |", "|---|---|---|---|"]
    for name, steps, copy in rows:
        whole = sum(seconds for _, seconds in steps)
        shares = ", ".join(f"{target} {seconds / whole:.0%}" for target, seconds in steps)
        lines.append(f"| {name} | {whole * 1e6:.4g} us | {shares} | {copy / whole:.0%} |")
    return lines


def asked(given: argparse.Namespace) -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels to be timed, with their names."""
    if given.kernel is not None:
        sizes = {k: int(v) for k, v in (pair.split("=") for pair in given.set)}
        kernel = isamap.load_kernel(given.kernel, set=sizes)
        yield kernel.name, kernel
        return
    sys.modules["data"] = inputs  # what peer_cases imports
    from peer_cases import problems

    for family in given.families.split(","):
        for case in cases(family):
            for problem in problems(case):
                yield title(case), parse_module(problem.text).kernels[0]


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", default=",".join(FAMILIES), help="of side_by_side.py")
    parser.add_argument("--kernel", type=Path, help="a kernel of your own instead")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--hw", default="native", help="a description that runs here")
    parser.add_argument("--rounds", type=int, default=15, help="how often each part is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    for name, kernel in asked(given):
        rows.append(parts(name, kernel, given.hw, given.rounds))
        print("\n".join(table(rows)[-1:] if len(rows) > 1 else table(rows)), flush=True)


if __name__ == "__main__":
    main()
