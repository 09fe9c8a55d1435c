"""``isamap measure``: what was predicted of schedules, beside what they take."""

import json
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import click

from isamap.cli.options import machine_options, measure_options
from isamap.cli.progress import progress
from isamap.cli.tables import listed, short, table, wrap

if TYPE_CHECKING:
    from isamap.hw.accelerator import Accelerator
    from isamap.pipeline.measured import Measured
    from isamap.pipeline.result import Prediction

_FAILED = 5

_WAYS = {
    "native": "timed on this CPU",
    "measured": "counted by the description's measuring command",
    "simulated": "simulated",
}

_HELP = """Measure several schedules of kernels, beside what was predicted of them.

Those are the first schedule, and of all that the cost model ranks the best and the most different
ones. They run natively, by the description's measuring command, or on its simulator. Cycles are
those of a call; seconds count at the description's clock. The rank correlation (Spearman's) says
how far the estimates order schedules as the machine does: 1 is the same order, 0 none.

\b
Examples
  isamap measure mm.ir conv.ir --hw native
  isamap measure mm.ir --hw mine.yaml --trust --schedules 20
  isamap measure mm.ir --hw gemm16 --json | jq .correlation
"""


@click.command("measure", help=_HELP)
@click.argument(
    "paths", metavar="KERNEL.ir...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@machine_options
@click.option(
    "--schedules",
    "count",
    type=click.IntRange(1, 300),
    metavar="N",
    default=8,
    show_default=True,
    help="How many of each kernel.",
)
@measure_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    paths: tuple[Path, ...],
    hardware: str,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    count: int,
    seed: int,
    threads: int,
    simulate: bool,
    rewrite: tuple[str, ...] | None,
    as_json: bool,
) -> int:
    """Measure and print; return the exit code."""
    from isamap.pipeline.measured import measure_schedules
    from isamap.pipeline.options import Options
    from isamap.pipeline.source import load_hardware, load_kernels

    options = Options(threads, seed, simulate=simulate, rewrite=rewrite)
    found: list[Measured] = []
    with progress() as tell:
        tell("read")
        kernels = [k for path in paths for k in load_kernels(path, dict(sizes), name)]
        machine = load_hardware(hardware, trust)
        for kernel in kernels:
            found.append(measure_schedules(kernel, machine, count, options, tell))
    if as_json:
        click.echo(json.dumps(_document(machine, found), indent=2))
    else:
        click.echo("\n".join(_lines(machine, found)))
    faults = [one.fault for one in found if one.fault is not None]
    for fault in faults:
        click.echo(str(fault), err=True)
    return _FAILED if faults else 0


def _lines(machine: "Accelerator", found: "list[Measured]") -> list[str]:
    text = f"{machine.name}: {machine.title}"
    lines = [click.style(line, bold=True) for line in wrap(text, "", "    ")]
    for one in found:
        lines += ["", *_kernel_lines(one)]
    if len(found) > 1:
        every = [prediction for one in found for prediction in one.predictions]
        lines += ["", *wrap(f"all {len(found)} kernels: {_said(every)}", "", "    ")]
    return lines


def _kernel_lines(one: "Measured") -> list[str]:
    sizes = {e.name: e.value for e in one.kernel.extents} | dict(one.symbols)
    text = f"{one.kernel.name}({', '.join(f'{n} = {v}' for n, v in sizes.items())})"
    text += f", {_WAYS[one.way]}" + (f", because {one.reason}" if one.reason else "")
    rows = []
    for row in one.rows:
        told = ", ".join(row.changes) or "(it is the first schedule)"
        if (found := row.prediction) is None:
            rows.append(("", "", "failed", "", told))
            continue
        bound = "" if found.bound is None else short(found.bound)
        times = f"{found.estimate / found.measured:.3g}"
        rows.append((bound, short(found.estimate), short(found.measured), times, told))
    headings = ("bound", "estimate", "measured", "est./meas.", "unlike the first schedule")
    lines = [*wrap(text, "", "    "), *table(headings, rows, frozenset(range(4)))]
    for text in (_left_out(one), _apart(one), _said(one.predictions)):
        lines += wrap(text, "    ")
    return lines


def _left_out(one: "Measured") -> str:
    """Return what the estimates of a simulated kernel have nothing of."""
    found = dict.fromkeys(word for p in one.predictions for word in p.left_out)
    return f"estimates without {listed(tuple(found))}, which take no simulated time" * bool(found)


def _apart(one: "Measured") -> str:
    """Return how far the samples lie apart of which each measurement is the median."""
    many = [row.samples for row in one.rows if len(row.samples) > 1]
    if not many:
        return ""
    quarters = [quantiles(own, method="inclusive") for own in many]
    widths = [(high - low) / middle for low, middle, high in quarters]
    slowest = max(max(own) / median(own) for own in many)
    return (
        f"{min(map(len, many))} samples of each, by turns: the middle half of them within "
        f"{median(widths):.1%} of the median ({max(widths):.1%} at most), the slowest "
        f"{slowest:.3g} times the median"
    )


def _said(predictions: "list[Prediction] | tuple[Prediction, ...]") -> str:
    from isamap.pipeline.correlation import LEAST
    from isamap.pipeline.measured import correlation

    count = f"{len(predictions)} schedule{'s' * (len(predictions) != 1)}"
    if (found := correlation(predictions)) is not None:
        return f"rank correlation {found:.2f} (Spearman's, {count})"
    if len(predictions) < LEAST:
        return f"no rank correlation of {count}"
    return f"no rank correlation: all estimates or all measurements are equal ({count})"


def _document(machine: "Accelerator", found: "list[Measured]") -> dict[str, Any]:
    from dataclasses import asdict

    from isamap import __version__
    from isamap.pipeline.measured import correlation

    return {
        "version": __version__,
        "hardware": machine.name,
        "correlation": correlation([p for one in found for p in one.predictions]),
        "kernels": [
            {
                "kernel": one.kernel.name,
                "sizes": {e.name: e.value for e in one.kernel.extents} | dict(one.symbols),
                "way": one.way,
                "reason": one.reason,
                "correlation": correlation(one.predictions),
                "schedules": [
                    {
                        "changes": list(row.changes),
                        "failed": row.prediction is None,
                        "samples": list(row.samples),
                        **(asdict(row.prediction) if row.prediction else {}),
                    }
                    for row in one.rows
                ],
            }
            for one in found
        ],
    }
