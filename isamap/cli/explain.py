"""``isamap explain``: why instructions match, match badly, or do not."""

import json
from pathlib import Path

import click

from isamap.cli.options import kernel_options
from isamap.cli.progress import progress

_HELP = """Explain what each instruction of a machine has to do with a kernel.

For an instruction that computes a statement: which operand stands for what, what lies on its axes,
and why axes are empty. For one that does not: the fewest reasons, with places in both files, and
the nearest change of the kernel with which it does. Each change told was tried.

\b
Examples
  isamap explain mm.ir --hw gemm16
  isamap explain mm.ir --hw x86_avx512 --instruction vpdpbusd
  isamap explain conv.ir --hw gemm16 --all --json
"""


@click.command("explain", help=_HELP)
@kernel_options
@click.option(
    "--instruction",
    metavar="NAME",
    help="Only this instruction, alone or in sequence with others; 'isamap hw show HW' lists them.",
)
@click.option("--all", "everything", is_flag=True, help="Explain every instruction.")
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
    """Explain and print; return 3 where nothing computes a statement."""
    from isamap.cli.explanation import explanation_lines
    from isamap.cli.text import head_lines, rewriting_lines
    from isamap.explain.explain import explain_started
    from isamap.explain.facts import explanation_facts
    from isamap.pipeline.source import load_hardware, load_kernel
    from isamap.rewrite.apply import told

    with progress() as tell:
        tell("read")
        kernel = load_kernel(path, dict(sizes), name)
        machine = load_hardware(hardware, trust)
        tell("explain")
        mapped, statements = explain_started(kernel, machine, instruction, everything)
    if as_json:
        facts = explanation_facts(kernel, machine, statements, mapped.rewritings)
        click.echo(json.dumps(facts, indent=2))
    else:
        lines = head_lines(kernel, machine)
        for before, rewriting in told(kernel, mapped.rewritings):
            lines += ["", *rewriting_lines(before, rewriting)]
        pictures = len(machine.entries) if everything or instruction else 1
        click.echo("\n".join([*lines, *explanation_lines(statements, pictures)]))
    maps = [statement.maps for statement in statements]
    return 0 if all(maps) or (instruction and any(maps)) else 3
