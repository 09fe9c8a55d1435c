"""``isamap hw``: the hardware descriptions."""

import click

from isamap.cli.options import MachineType
from isamap.cli.tables import short, size, table, wrap
from isamap.hw.accelerator import Accelerator, Entry, Storage
from isamap.ir.nodes import Instruction
from isamap.ir.printer import print_buffer, print_extent, print_statement
from isamap.run.process import command_text


@click.group("hw", help="List and show the hardware descriptions.")
def command() -> None:
    """Hold the two commands below."""


@command.command("list")
def list_shipped() -> None:
    """List the shipped machines, and which run here."""
    from isamap.hw.load import load_hardware, shipped_names
    from isamap.hw.native import best_shipped, runnable

    rows = []
    for name in shipped_names():
        machine = load_hardware(name, instructions=False)
        here = "no toolchain: simulated" if machine.toolchain is None else runnable(machine)
        rows.append((name, machine.title, here or "runs here"))
    click.echo("\n".join(table(("name", "machine", "here"), rows)))
    click.echo(f"'native' is {best_shipped()} here.")


@command.command("show")
@click.argument("name", metavar="HW", type=MachineType())
@click.option("--all", "everything", is_flag=True, help="List inherited instructions too.")
def show(name: str, everything: bool) -> None:
    """Show a description: a shipped name, a YAML file or 'native'.

    Each instruction is shown with its operands and the statements that it computes.
    """
    from isamap.hw.load import load_hardware

    click.echo("\n".join(_shown(load_hardware(name), everything)))


def _shown(machine: Accelerator, everything: bool) -> list[str]:
    clock = float(machine.clock) / 1e9
    lines = [
        *wrap(f"{machine.name}: {machine.title}".removesuffix(": "), "", "    "),
        *wrap(
            f"{clock:.3g} GHz, {machine.cores} core{'s' * (machine.cores != 1)}, issues "
            f"{machine.issue} a cycle"
        ),
    ]
    if machine.features:
        lines += wrap(f"needs {', '.join(machine.features)}", "  ", "    ")
    if machine.toolchain is not None and machine.toolchain.measure:
        lines += wrap(f"measured by: {command_text(machine.toolchain.measure)}", "  ", "    ")
    for p in machine.parameters:
        values = ", ".join(map(str, p.values))
        said = f"{p.name} = {p.value}{': ' * bool(p.what)}{p.what}, one of {values}"
        lines += wrap(said, "  ", "    ")
    lines += ["", click.style("storages, the nearest first", bold=True)]
    lines += table(("name", "kind", "holds"), [_storage(s) for s in machine.storages])
    lines += ["", click.style("units", bold=True)]
    lines += wrap(", ".join(f"{u.name} x{u.count}" for u in machine.units) or "none")
    lines += ["", click.style("instructions", bold=True)]
    headings = ("name", "operands, and what it computes", "cycles", "latency")
    listed = machine.entries if everything else machine.own_entries
    lines += table(headings, [row for e in listed for row in _rows(e)], frozenset({2, 3}))
    if (rest := len(machine.entries) - len(listed)) > 0:
        text = f"and {rest} of the description that it extends (--all lists them)"
        lines += wrap(text, "    ")
    return lines


def _storage(storage: Storage) -> tuple[str, str, str]:
    if storage.kind == "registers":
        holds = f"{storage.count} of {storage.bits} bits" if storage.bits else f"{storage.count}"
        holds += f", within {storage.within}" if storage.within else ""
    elif storage.size is not None:
        holds = size(storage.size) + (f" in {storage.banks} banks" if storage.banks > 1 else "")
    else:
        holds = ""
    return storage.name, storage.kind, holds


def _rows(entry: Entry) -> list[tuple[str, str, str, str]]:
    """Return an instruction's operands and cycles, and a row for each of its statements."""
    instruction = entry.instruction
    kinds: dict[str, list[str]] = {}
    for operand in instruction.places:
        role, _, rest = print_buffer(operand).partition(f" {operand.name} : ")
        kinds.setdefault(f"{role} {rest}", []).append(operand.name)
    operands = []
    for kind, names in kinds.items():
        role, _, rest = kind.partition(" ")
        operands.append(f"{role} {', '.join(names)}: {rest}")
    first = (
        entry.name,
        "; ".join(operands),
        short(float(entry.throughput)),
        _latency(entry),
    )
    return [first, *(("", text, "", "") for text in _computed(instruction))]


def _latency(entry: Entry) -> str:
    """Return the cycles to the result, and from which operands they are fewer."""
    fewer = [f"{short(float(cycles))} from {name}" for name, cycles in entry.latency_from.items()]
    return ", ".join((short(float(entry.latency)), *fewer))


def _computed(instruction: Instruction) -> list[str]:
    """Return what an instruction computes: its tables and statements, and the ranges that it has"""
    texts = [print_buffer(o) for o in instruction.operands if o.role == "table"]
    texts += [print_statement(statement).strip() for statement in instruction.statements]
    for own in instruction.ranges:
        texts[-1] += f" for {own.name} in {own.lower}..{own.upper}"
    for extent in instruction.extents:
        if extent.range is not None or extent.least is not None:
            texts[-1] += f", {print_extent(extent)}"
    return texts
