"""``isamap match``: the legal mappings alone, or the matchings that they are made of."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isamap.cli.options import optional_kernel_options
from isamap.cli.progress import progress

if TYPE_CHECKING:
    from isamap.hw.accelerator import Accelerator
    from isamap.ir.nodes import Kernel
    from isamap.mapping.laws.family import Family
    from isamap.mapping.laws.placements import Listed
    from isamap.mapping.needles.orders import OperandOrders
    from isamap.pipeline.count import Query

_HELP = """List the legal mappings of a kernel; nothing is scheduled or run, so that whether
code can be made of them is told by 'isamap map' and 'isamap explain'.

A mapping is a matching (which index expressions are on which axes of an
instruction) with a tile (how many iterations of each variable). Without further
options mappings are listed, those that use the instruction best first.

With any of --family, --every, --maximal, --nonempty, --count, --operand-orders or
--suite the matchings themselves are listed or counted, on the instructions that
compute the whole of a statement's body. Numbers are products over independent
variables: they are exact, and nothing is listed to get them.

\b
Examples
  isamap match mm.ir --hw gemm16 --all
  isamap match conv.ir --hw x86_avx512 --instruction vfmadd_f32
  isamap match conv.ir --hw gemm16 --family exact --every --count
  isamap match --suite operators --hw gemm16 --family exact --every

\b
Families, the first four nested
  exact      single variables, each on at most one axis, seen by exactly the
             operands in which they occur
  broadcast  single variables, each on at most one axis
  diagonal   single variables, on any axes
  embedded   index expressions such as p + r, too
  split      as diagonal, but with partial sums that are added up afterwards
"""


@click.command("match", help=_HELP)
@optional_kernel_options
@click.option(
    "--suite",
    metavar="NAME",
    help="In place of a kernel, count for every kernel of a suite: 'operators', the fifteen of "
    "the mapping literature.",
)
@click.option(
    "--instruction",
    metavar="NAME",
    help="Only mappings to this instruction, alone or in sequence with others; 'isamap hw show HW' "
    "lists them.",
)
@click.option(
    "--family",
    type=click.Choice(["exact", "broadcast", "diagonal", "embedded", "split"]),
    help="Which placements are wanted (see above); embedded unless given.",
)
@click.option("--every", is_flag=True, help="All legal matchings, the empty one included.")
@click.option(
    "--maximal",
    is_flag=True,
    help="Those to which nothing can be added and from which nothing can be dropped. Without "
    "--every and --maximal: of these the tight ones, which need least room.",
)
@click.option("--nonempty", is_flag=True, help="Only those that use every axis longer than 1.")
@click.option(
    "--operand-orders",
    type=click.Choice(["given", "distinct", "all"]),
    help="Operands in the order written; in every order; or in every order of which those that a "
    "symmetry of the instruction exchanges count once (distinct, unless given).",
)
@click.option(
    "--rewrites", is_flag=True, help="List also what rewriting makes of each statement, and maps."
)
@click.option("--count", is_flag=True, help="Print numbers only.")
@click.option("--all", "everything", is_flag=True, help="List all, not the first few.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    path: Path | None,
    hardware: str,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    suite: str | None,
    instruction: str | None,
    family: "Family | None",
    every: bool,
    maximal: bool,
    nonempty: bool,
    operand_orders: "OperandOrders | None",
    rewrites: bool,
    count: bool,
    everything: bool,
    as_json: bool,
) -> int:
    """Enumerate and print; return the exit code."""
    from isamap.pipeline.count import Query, load_suite
    from isamap.pipeline.mapped import only_instruction
    from isamap.pipeline.source import load_hardware, load_kernel

    if suite is not None and (path or sizes or name):
        raise click.UsageError(
            "a suite is counted whole: give no kernel, --set or --kernel with it"
        )
    if every and maximal:
        raise click.UsageError("--every lists more than --maximal: give one of them")
    listed: Listed | None = "every" if every else "maximal" if maximal else None
    matchings = bool(suite or family or listed or nonempty or operand_orders or count)
    if matchings and rewrites:
        raise click.UsageError(
            "--rewrites lists mappings: it does not go with what lists or counts matchings"
        )
    with progress() as tell:
        tell("read")
        if suite is not None:
            kernels = load_suite(suite)
        elif path is not None:
            kernels = (load_kernel(path, dict(sizes), name),)
        else:
            raise click.UsageError("give a kernel, or --suite NAME")
        machine = load_hardware(hardware, trust)
        chosen = only_instruction(machine, instruction) if instruction else machine
        tell("match")
        if matchings:
            query = Query(
                family or "embedded", listed or "tight", nonempty, operand_orders or "distinct"
            )
            counting = bool(suite) or count
            return _matchings(kernels, machine, query, instruction, counting, everything, as_json)
        return _mappings(kernels[0], machine, chosen, instruction, rewrites, everything, as_json)


def _matchings(
    kernels: "tuple[Kernel, ...]",
    machine: "Accelerator",
    query: "Query",
    instruction: str | None,
    count: bool,
    everything: bool,
    as_json: bool,
) -> int:
    from isamap.cli.listing import count_lines, matching_lines, query_line
    from isamap.cli.tables import wrap
    from isamap.pipeline.count import LIMIT, count_matchings, listed_facts

    rows = count_matchings(kernels, machine, query, instruction)
    if as_json:
        limit = None if everything else LIMIT
        facts = [row.facts() if count else listed_facts(row, limit) for row in rows]
        click.echo(json.dumps(facts, indent=2))
        return 0
    lines = wrap(f"on {machine.name}: {query_line(query)}", "", "    ")
    lines += ["", *count_lines(rows)] if count else matching_lines(rows, everything)
    click.echo("\n".join(lines))
    return 0


def _mappings(
    kernel: "Kernel",
    machine: "Accelerator",
    chosen: "Accelerator",
    instruction: str | None,
    rewrites: bool,
    everything: bool,
    as_json: bool,
) -> int:
    from isamap.cli.mappings import mapping_lines
    from isamap.cli.tables import wrap
    from isamap.cli.text import head_lines, together_lines, ways_lines
    from isamap.ir.printer import print_statement
    from isamap.ir.statements import statement_names
    from isamap.lower.grouping import group_mappings
    from isamap.mapping.groups import grouped
    from isamap.mapping.needles.needles import needles
    from isamap.pipeline.facts import match_facts
    from isamap.pipeline.offered import offered
    from isamap.pipeline.sequences import Sequences
    from isamap.pipeline.unmapped import enumerate_each, nothing

    enumerations = enumerate_each(kernel, machine, instruction)
    together = group_mappings(kernel, needles(chosen))
    ways, refused = offered(kernel, chosen) if rewrites else ((), ())
    mapped = {n for n, found in enumerate(enumerations) if found.mappings}
    mapped |= {n for group, _ in together for n in range(group.first, group.first + group.count)}
    lacks = not ways and (not mapped if instruction else len(mapped) < len(enumerations))
    if lacks and (as_json or not mapped):
        raise nothing(kernel, chosen, enumerations)
    if as_json:
        facts = match_facts(kernel, machine, enumerations, ways if rewrites else None, together)
        click.echo(json.dumps(facts, indent=2))
        return 0
    lines = head_lines(kernel, machine)
    sequences = Sequences(kernel, machine)
    for statement, found in zip(kernel.statements, enumerations, strict=True):
        lines += ["", *wrap(print_statement(statement).strip(), "", "    ")]
        lines += mapping_lines(found, sequences, {}, everything)
    names = statement_names(kernel)
    for group, found in together:
        own = names[group.first : group.first + group.count]
        one = Sequences(grouped(kernel, (group,)), machine)
        lines += ["", *together_lines(own, found, one, everything)]
    lines += ways_lines(ways, machine, everything)
    for text in refused:
        lines += ["", *wrap(f"not offered: {text}", "", "    ")]
    click.echo("\n".join(lines))
    if lacks:
        raise nothing(kernel, chosen, enumerations)  # after what the others have
    return 0
