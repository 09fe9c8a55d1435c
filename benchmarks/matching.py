"""How long matching takes, and how time and counts grow with the number of variables.

    python benchmarks/matching.py                  # prints the figures
    python benchmarks/matching.py --write          # and renews docs/matching-speed.md and its plot
    python benchmarks/matching.py --rounds 9

One core, after imports; every round begins with empty caches, proofs included.  The medians of the
rounds are printed, in seconds of processor time, so that neighbours do not count.  The plot needs
matplotlib (the extra ``plots``).
"""

import argparse
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from isamap.ir.nodes import Kernel
from isamap.mapping import find
from isamap.mapping.axes import linear, room
from isamap.mapping.checks import lemmas
from isamap.mapping.laws import clauses, killing, placements
from isamap.mapping.tiles import tile
from isamap.pipeline.count import Query, count_matchings, load_suite
from isamap.pipeline.mapped import only_instruction
from isamap.pipeline.source import load_hardware, load_kernel
from isamap.pipeline.unmapped import enumerate_each
from isamap.solver.models import load
from isamap.text.load import parse_module

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "matching-speed.md"
PLOT = ROOT / "docs" / "matching-growth.svg"
MODULES = (clauses, find, killing, lemmas, linear, placements, room, tile)


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel of a growing series: matchings (all, and tight) and seconds of both."""

    variables: int
    every: int
    tight: int
    every_seconds: float
    tight_seconds: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long matching takes.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="renew the page and the plot in docs/")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    load()
    table = figures(given.rounds)
    series = {
        "one input and the output, by turns with the other input": [
            measured(contraction(n), given.rounds) for n in range(1, 17)
        ],
        "one index that is the sum of all": [
            measured(window(n), min(given.rounds, 3)) for n in range(1, 6)
        ],
    }
    for line in table:
        print(line)
    for name, points in series.items():
        print(f"\n{name}")
        for line in rows(points):
            print(line)
    if given.write:
        PAGE.write_text(page(table, series), encoding="utf-8")
        plot(series)


# --- measuring ------------------------------------------------------------------------------------
def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median processor time of some work that finds all caches empty."""
    times = []
    for _ in range(rounds):
        for module in MODULES:
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
        started = process_time()
        work()
        times.append(process_time() - started)
    return median(times)


def figures(rounds: int) -> list[str]:
    """Return the figures as the lines of a table."""
    gemm = only_instruction(load_hardware("gemm16"), "gemm_f32")
    avx512 = load_hardware("x86_avx512")
    operators = load_suite("operators")
    both = Query(orders="all")
    each = {
        kernel.name: seconds(lambda k=kernel: count_matchings([k], gemm, both), rounds)  # type: ignore[misc]
        for kernel in operators
    }
    slowest = max(each, key=each.__getitem__)
    twelve = contraction(12)
    layers = [load_kernel(path) for path in sorted((ROOT / "examples" / "resnet50").glob("*.ir"))]
    measured_ = [
        (
            "fifteen operators on one matrix unit, embedded, both orders of operands, with proofs",
            seconds(lambda: count_matchings(operators, gemm, both), rounds),
        ),
        (f"the slowest of them alone ({slowest})", each[slowest]),
        (
            "a contraction of twelve variables on the matrix unit: all matchings, with proofs",
            seconds(lambda: count_matchings([twelve], gemm, Query(listed="every")), rounds),
        ),
        (
            "the same: tight matchings and their tiles",
            seconds(lambda: enumerate_each(twelve, gemm), rounds),
        ),
        (
            f"all {len(avx512.entries)} instructions of x86_avx512 on the {len(layers)} distinct "
            "layers of ResNet-50, with tiles",
            seconds(lambda: [enumerate_each(layer, avx512) for layer in layers], rounds),
        ),
    ]
    lines = ["| what | seconds |", "|---|---|"]
    return lines + [f"| {what} | {time:.2f} |" for what, time in measured_]


def measured(kernel: Kernel, rounds: int) -> Point:
    """Return how many matchings a kernel has on the matrix unit, and what it takes to know."""
    gemm = only_instruction(load_hardware("gemm16"), "gemm_f32")
    found = {}
    for listed in ("every", "tight"):
        query = Query(listed=listed, orders="given")  # type: ignore[arg-type]
        (row,) = count_matchings([kernel], gemm, query)
        assert row.complete, row.reason
        time = seconds(lambda q=query: count_matchings([kernel], gemm, q), rounds)  # type: ignore[misc]
        found[listed] = row.count, time
    variables = len(kernel.statements[0].variables)
    return Point(
        variables, found["every"][0], found["tight"][0], found["every"][1], found["tight"][1]
    )


def contraction(count: int) -> Kernel:
    """Return a contraction of independent variables, each in two of the three arrays by turns."""
    names = [f"v{n}" for n in range(count)]
    inside = [
        ", ".join(name for n, name in enumerate(names) if n % 3 != without) for without in range(3)
    ]
    sizes = [", ".join("N" for n in range(count) if n % 3 != without) for without in range(3)]
    return parse_module(
        f"kernel contraction(N = 4) {{ in A : f32[{sizes[0]}] in B : f32[{sizes[1]}] "
        f"out C : f32[{sizes[2]}]\n C[{inside[2]}] += A[{inside[0]}] * B[{inside[1]}] }}"
    ).kernels[0]


def window(count: int) -> Kernel:
    """Return a convolution whose one window is the sum of all variables but the first."""
    names = [f"r{n}" for n in range(count - 1)]
    taps, sizes = ", ".join(names), ", ".join("3" for _ in names)
    return parse_module(
        f"kernel window {{ in X : f32[{64 + 2 * (count - 1)}] in W : f32[{sizes}] out Y : f32[64]\n"
        f" Y[p] += X[{' + '.join(['p', *names])}] * W[{taps}] }}"
    ).kernels[0]


# --- telling --------------------------------------------------------------------------------------
def rows(points: Sequence[Point]) -> list[str]:
    """Return the points of a series as the lines of a table."""
    lines = ["| variables | all | seconds | tight | seconds |", "|---|---|---|---|---|"]
    return lines + [
        f"| {p.variables} | {p.every} | {p.every_seconds:.3f} | {p.tight} | {p.tight_seconds:.3f} |"
        for p in points
    ]


def page(table: Sequence[str], series: dict[str, list[Point]]) -> str:
    """Return the text of the page."""
    parts = [
        "# How long matching takes",
        "Written by `python benchmarks/matching.py --write`: medians on one core of "
        f"{_processor()}, in seconds of processor time, after imports, with empty caches at the "
        "start of each round.",
        "\n".join(table),
        "## Growth",
        "Matchings of the embedded family on `C[i,j] += A[i,k]*B[k,j]`, operands in order, with "
        "the proof of each local placement. Variables that share no index expression are solved "
        "apart and once for each structure, so that time hardly grows with their number while the "
        "count is a product; those of one index expression are solved together: both grow.",
        f"![time and count against the number of variables]({PLOT.name})",
    ]
    for name, points in series.items():
        parts += [f"**Variables of {name}**", "\n".join(rows(points))]
    return "\n\n".join(parts) + "\n"


def plot(series: dict[str, list[Point]]) -> None:
    """Draw time and count against the number of variables."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "isamap"
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 7), sharex=True)
    for name, points in series.items():
        counts = [p.variables for p in points]
        above.plot(counts, [p.every for p in points], marker="o", label=f"all; {name}")
        above.plot(counts, [p.tight for p in points], marker="s", ls="--", label=f"tight; {name}")
        below.plot(counts, [p.every_seconds for p in points], marker="o")
        below.plot(counts, [p.tight_seconds for p in points], marker="s", ls="--")
    for axes, label in ((above, "matchings"), (below, "seconds, with proofs")):
        axes.set_yscale("log")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    below.set_xlabel("variables")
    above.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
