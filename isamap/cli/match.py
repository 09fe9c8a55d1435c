"""``isamap match``: the legal mappings alone."""

import json
from pathlib import Path

import click

from isamap.cli.options import kernel_options
from isamap.cli.progress import progress

_HELP = """List the legal mappings of a kernel; nothing is scheduled or run.

\b
Examples
  isamap match mm.ir --hw gemm16 --all
  isamap match conv.ir --hw x86_avx512 --instruction vfmadd_f32
"""


@click.command("match", help=_HELP)
@kernel_options
@click.option(
    "--instruction",
    metavar="NAME",
    help="Only mappings to this instruction; 'isamap hw show HW' lists them.",
)
@click.option("--all", "everything", is_flag=True, help="List every legal mapping.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    path: Path,
    hardware: str,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    instruction: str | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Enumerate and print; return the exit code."""
    from isamap.cli.tables import wrap
    from isamap.cli.text import head_lines, mapping_lines
    from isamap.ir.printer import print_statement
    from isamap.pipeline.facts import match_facts
    from isamap.pipeline.mapped import enumerate_all, enumerate_each, only_instruction
    from isamap.pipeline.source import load_hardware, load_kernel

    with progress() as tell:
        tell("read")
        kernel = load_kernel(path, dict(sizes), name)
        machine = load_hardware(hardware, trust)
        if instruction:
            machine = only_instruction(machine, instruction)
        tell("match")
        enumerations = enumerate_each(kernel, machine)
        if not instruction or not any(found.mappings for found in enumerations):
            enumerations = enumerate_all(kernel, machine)
    if as_json:
        click.echo(json.dumps(match_facts(kernel, machine, enumerations), indent=2))
        return 0
    lines = head_lines(kernel, machine)
    for statement, found in zip(kernel.statements, enumerations, strict=True):
        lines += ["", *wrap(print_statement(statement).strip(), "", "    ")]
        lines += mapping_lines(found, kernel, {}, everything)
    click.echo("\n".join(lines))
    return 0
