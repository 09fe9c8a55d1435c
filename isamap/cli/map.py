"""``isamap map``: the whole path, and everything it found out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isamap.cli.options import kernel_options, run_options, search_options
from isamap.cli.progress import progress
from isamap.cli.stages import STAGES, Stage, stage_text
from isamap_search.budget import Budget

if TYPE_CHECKING:  # commands import what they need
    from isamap.pipeline.result import Report

_HELP = """Map a kernel on to a machine, run the result and check it.

Prints the legal mappings of each statement (instruction, which forms of the kernel's variables lie
on which axis of it, the tile, how much of the instruction is used, and the cycles its calls take),
the chosen one and why, the schedule, the estimate, and whether the result was compiled, run and
checked against the reference interpreter.

\b
Examples
  isamap map mm.ir --hw native
  isamap map mm.ir --hw x86_avx512 --set M=61 --emit mm.c
  isamap map conv.ir --hw gemm16 --all
  isamap map mm.ir --hw native --tune 50 --threads 2
  isamap map mm.ir --hw native --tune 1m --save-schedule mm.schedule
  isamap map mm.ir --hw native --schedule mm.schedule
  isamap map mm.ir --hw mine.yaml --trust --json | jq .estimate
  isamap map mm.ir --hw gemm16 --print lowered
"""


@click.command("map", help=_HELP)
@kernel_options
@click.option(
    "--emit",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the C to PATH, which ends in .c; or the C and its header into the folder PATH, "
    "which is made if its name has no suffix.",
)
@click.option(
    "--save-schedule",
    "save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the chosen schedule to FILE, for --schedule.",
)
@click.option(
    "--print",
    "stage",
    type=click.Choice(STAGES),
    help="Print what a stage hands on instead of the report, and run nothing: the kernel as "
    "rewritings leave it, the schedule, the lowered kernel (loops, registers and calls of "
    "instructions), or the C.",
)
@run_options
@click.option(
    "--proof/--no-proof",
    "prove",
    default=True,
    show_default=True,
    help="Prove mapping and code as far as a second allows; see 'isamap prove'.",
)
@click.option(
    "--instruction",
    metavar="NAME",
    help="Compute with this instruction whatever it can compute, alone, in the registers of "
    "another statement, in sequence with others ('a + b' names a sequence) or after a rewriting; "
    "the rest is free.",
)
@click.option("--all", "everything", is_flag=True, help="List every legal mapping.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    path: Path,
    hardware: str,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    emit: Path | None,
    save: Path | None,
    stage: Stage | None,
    written: Path | None,
    tune: Budget | None,
    seed: int,
    threads: int,
    simulate: bool,
    records: Path | None,
    forget: bool,
    objectives: tuple[str, ...],
    sampler: str | None,
    study: str | None,
    storage: str | None,
    log: Path | None,
    rewrite: tuple[str, ...] | None,
    prove: bool,
    instruction: str | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Run the path and print its report; return the exit code."""
    from isamap.cli.emit import check_code, check_emit, emitted_files, write_c
    from isamap.cli.output import check_apart, check_file, write_text
    from isamap.pipeline.mapped import map_kernel
    from isamap.pipeline.options import Clock, Options
    from isamap.pipeline.report import make_report
    from isamap.pipeline.result import exit_code
    from isamap.pipeline.schedule_text import schedule_text
    from isamap.pipeline.source import files_read, load_hardware, load_kernel, load_schedule

    if stage and (as_json or everything):
        other = "--json" if as_json else "--all"
        raise click.UsageError(f"--print {stage} prints no report: {other} contradicts it")
    search = search_options(tune, records, forget, objectives, sampler, study, storage, log)
    options = Options(
        threads,
        seed,
        tune,
        simulate,
        search.records,
        rewrite,
        prove,
        instruction,
        search.settings,
        None if written is None else load_schedule(written),
    )
    check_file(save)
    with progress() as tell:
        clock = Clock(tell)
        with clock.stage("read"):
            kernel = load_kernel(path, dict(sizes), name)
        with clock.stage("hardware"):
            machine = load_hardware(hardware, trust)
        outputs = {**search.written, "--emit": emitted_files(emit, kernel.name) if emit else ()}
        check_apart({**outputs, "--save-schedule": (save,)}, files_read(path, hardware))
        check_apart(outputs, () if written is None else (written,))  # a schedule may be renewed
        if emit:
            check_emit(emit, machine)
        if stage == "code":
            check_code(machine)
        report = None
        if stage is None:
            report = make_report(kernel, machine, options, clock)
        result = report.result if report else map_kernel(kernel, machine, options, tell)
    if emit:
        write_c(result, emit)
    if save:
        write_text({save: schedule_text(result)})
    if stage is not None:
        click.echo(stage_text(result, stage), nl=False)
    elif report is not None:
        _print_report(report, everything, as_json)
    for warning in result.tuning.warnings if result.tuning else ():
        click.echo(warning.render(), err=True)
    if report is None:
        return exit_code(result)
    _print_faults(report)
    return report.exit_code


def _print_report(report: "Report", everything: bool, as_json: bool) -> None:
    if as_json:
        from isamap.pipeline.facts import report_facts

        click.echo(json.dumps(report_facts(report), indent=2))
    else:
        from isamap.cli.text import report_lines

        click.echo("\n".join(report_lines(report, everything)))


def _print_faults(report: "Report") -> None:
    """Print on stderr what went wrong when a mapped kernel was run, checked and proved."""
    from isamap.diagnostics import fail

    if report.fault is not None:
        click.echo(str(report.fault), err=True)
    if report.check and not report.check.ok:
        text = f"the result differs from the interpreter's: {report.check.text}"
        click.echo(fail("E761", text, hint=_known(report)).render(), err=True)
    if report.certificate and report.certificate.verdict == "refuted":
        text = "a claim about the mapping or its code is refuted; 'isamap prove' tells which"
        click.echo(fail("E762", text).render(), err=True)


def _known(report: "Report") -> str | None:
    """Return what tools are recorded to compute wrongly of what was executed."""
    from isamap.emit.liveness import calls
    from isamap.targets.known import recorded_of

    if report.execution.way != "program":
        return None
    names = (call.instruction for call in calls(report.result.lowered.code))
    return recorded_of(report.result.accelerator, names) or None
