"""``isamap targets test``: whether instructions do what their descriptions say."""

import json
from pathlib import Path
from typing import Any

import click

from isamap.cli.progress import progress
from isamap.cli.tables import wrap
from isamap.targets.probe.finding import Finding
from isamap.targets.table import Untested, verdict, write_tables
from isamap.targets.test import (
    Outcome,
    check_target,
    compiler_version,
    every,
    is_other_size,
    runner_version,
    why_untested,
)

_DIFFERS, _UNKNOWN = 4, 6

_NAMED = 8
"""Instructions that are named where one thing is to be told of many."""

_HELP = """Execute each instruction of a description, and compare with its statements.

Operands are random numbers of every magnitude and those at which rules change:
infinities, not-a-number, subnormal numbers, ties, the ends of integers. Immediates,
partial counts and pitches take all their values, or a part of very many. Floats are
compared bit for bit; any not-a-number is as good as another.

What differs is told with its operands, and the exit code is 4; it is 6 where
nothing does, but some could not be tried. What a tool is recorded to compute
wrongly is told as that.

\b
Examples
  isamap targets test aarch64_neon
  isamap targets test mine.yaml --trust --instruction dot4 --samples 1000
  isamap targets test --all --markdown docs/targets.md
"""


@click.command("test", help=_HELP)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All shipped descriptions that run here, and the own instructions of those with a "
    "parameter in another size.",
)
@click.option("--instruction", metavar="I", help="Only this one, with or without its types.")
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=1),
    help="Operand sets of each instruction.  [default: 10000]",
)
@click.option("--seed", metavar="S", type=int, default=0, help="Other operands.  [default: 0]")
@click.option("--own", is_flag=True, help="Not the instructions of extended descriptions.")
@click.option("--trust", is_flag=True, help="Compile and run what a file of yours says.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option(
    "--markdown",
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Write tables between the marks in FILE; others' stay.",
)
def command(
    names: tuple[str, ...],
    everything: bool,
    instruction: str | None,
    samples: int | None,
    seed: int,
    own: bool,
    trust: bool,
    as_json: bool,
    markdown: Path | None,
) -> int:
    """Test, and tell; return the exit code."""
    from isamap.hw.load import load_hardware, shipped_names
    from isamap.targets.probe.probe import SAMPLES

    if everything == bool(names):
        raise click.UsageError("give names of descriptions, or --all")
    machines = [load_hardware(name, trust=trust) for name in names or every(shipped_names())]
    results: list[Outcome | Untested] = []
    for machine in machines:
        if everything and machine.toolchain is None:
            continue
        if everything and (reason := why_untested(machine)) is not None:
            results.append(Untested(machine, reason))
            continue
        with progress() as tell:
            count = SAMPLES if samples is None else samples
            few = own or (everything and is_other_size(machine))
            found = check_target(machine, count, seed, instruction, few, tell=tell)
        results.append(found)
        if not as_json:
            click.echo("\n".join(_told(found)))
    if as_json:
        click.echo(json.dumps([_document(result) for result in results], indent=2))
    else:
        for result in results:
            if isinstance(result, Untested):
                click.echo(f"{result.machine.name}: not tested here: {result.reason}")
    if markdown is not None:
        write_tables(markdown, results, everything)
    faults = {f.status for r in results if not isinstance(r, Untested) for f in r.faults}
    return (_UNKNOWN if faults == {"not tried"} else _DIFFERS) if faults else 0


def _told(tested: Outcome) -> list[str]:
    """Return a paragraph of what was done, and what is not right."""
    count = len(tested.findings)
    text = (
        f"{tested.name}: {count} instruction{'s' * (count != 1)}, {tested.sets:,} sets of operands "
        f"(seed {tested.seed}); compiled by {compiler_version(tested)}, run on "
        f"{runner_version(tested)}: {verdict(tested.findings)}"
    )
    lines = wrap(text, "", "    ")
    alike: dict[tuple[str, str], list[str]] = {}
    for finding in tested.findings:
        if finding.status != "right":
            alike.setdefault((finding.status, finding.text), []).append(finding.name)
    for (status, told), names in alike.items():
        left = len(names) - _NAMED
        more = f", and {left} more (--json names them)" if left > 0 else ""
        lines += wrap(f"{', '.join(names[:_NAMED])}{more}: {status}", "  ", "    ")
        lines += [f"      {line}" for line in told.splitlines()]
    return lines


def _document(result: Outcome | Untested) -> dict[str, Any]:
    if isinstance(result, Untested):
        return {"name": result.machine.name, "tested": False, "reason": result.reason}
    return {
        "name": result.name,
        "tested": True,
        "ok": result.ok,
        "compiler": result.compiler,
        "runner": result.runner or None,
        "tools": {tool.name: tool.version for tool in result.tools},
        "samples": result.samples,
        "seed": result.seed,
        "instructions": [_instruction(finding) for finding in result.findings],
    }


def _instruction(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "status": finding.status,
        "sets": finding.sets,
        "extents": finding.combinations,
        "variants": finding.variants,
        "detail": finding.text or None,
    }
