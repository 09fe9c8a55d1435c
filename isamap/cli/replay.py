"""``isamap replay``: a logged search, run again on the measurements of its log."""

from pathlib import Path

import click

from isamap.cli.progress import progress

_HELP = """Run a logged search again, on the measurements that it made then.

Comes to the same decisions and the same C, or tells at which line of the log it does
not. Nothing is compiled or executed. Exit code 4 where a decision differs.

\b
Examples
  isamap map mm.ir --hw native --tune 30s --log mm.log
  isamap replay mm.log --emit mm.c
"""


@click.command("replay", help=_HELP)
@click.argument("path", metavar="LOG", type=click.Path(path_type=Path))
@click.option(
    "--hw",
    "hardware",
    metavar="HW",
    help="The description, where it does not ship with isamap.",
)
@click.option(
    "--emit",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the C to PATH, which ends in .c; or the C and its header into the folder PATH, "
    "which is made if its name has no suffix.",
)
def command(path: Path, hardware: str | None, emit: Path | None) -> int:
    """Replay and print the schedule; return the exit code."""
    from isamap.cli.emit import check_path, emitted_files, write_c
    from isamap.cli.output import check_apart
    from isamap.cli.text import head_lines, schedule_lines
    from isamap.cli.tuned import tuning_lines
    from isamap.pipeline.replay import replay
    from isamap.pipeline.source import files_read, load_hardware

    if emit:
        check_path(emit)
    with progress() as tell:
        replayed = replay(path, None if hardware is None else load_hardware(hardware), tell)
    result = replayed.result
    if emit:
        read = (path, *files_read(None, hardware))
        check_apart({"--emit": emitted_files(emit, replayed.kernel.name)}, read)
    lines = [*head_lines(replayed.kernel, replayed.hardware), "", *schedule_lines(result), ""]
    lines += tuning_lines(result.tuning)
    interrupted = result.tuning is not None and result.tuning.interrupted
    lines.append("replay    the same decisions" + (", up to where the log ends" * interrupted))
    if emit:
        write_c(result, emit)
    click.echo("\n".join(lines))
    return 0
