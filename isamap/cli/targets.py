"""``isamap targets``: machines other than this one, their tools, and tests of descriptions."""

import json

import click

from isamap.cli.progress import progress
from isamap.cli.tables import table

_INSTALL = """Fetch what descriptions need to be compiled and run: all of them, or those named.

A tool may be named as well, such as bochs-x86_64: an emulator of what this CPU is itself is
fetched only so.

Compilers and emulators come from the Python Package Index and from Debian, into a
folder of your own ($ISAMAP_TOOLS, else isamap/tools in $XDG_DATA_HOME or ~/.local/share).
Nothing is installed system-wide, and nothing needs root. Offline they work on.
"""


class _Group(click.Group):
    """The commands of this file, and one that is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), "test"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "test":
            return super().get_command(ctx, cmd_name)
        from isamap.cli.targets_test import command as test

        return test


@click.group(
    "targets",
    cls=_Group,
    help="Compilers and emulators of machines other than this one; tests of descriptions.",
)
def command() -> None:
    """Hold the commands below."""


@command.command("install", help=_INSTALL)
@click.argument("names", metavar="[NAME]...", nargs=-1)
def install_tools(names: tuple[str, ...]) -> int:
    """Fetch, and say what was fetched; return the exit code."""
    from isamap.targets.install import check_commands, install
    from isamap.targets.state import asked, emulated

    tools = [asked(name) for name in names] or [target.tools for target in emulated()]
    lacking = dict.fromkeys(t.name for own in tools for t in own if not t.is_there)
    with progress() as tell:
        found = install(list(lacking), tell) if lacking else ()
    rows = [(one.name, one.version, f"{one.bytes / 1e6:.0f} MB", one.source) for one in found]
    if rows:
        click.echo("\n".join(table(("tool", "version", "size", "from"), rows, frozenset({2}))))
    check_commands(names)
    if not rows:
        click.echo("all tools are there")
    return 0


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def list_targets(as_json: bool) -> None:
    """List the shipped machines: what runs their code, and what is missing."""
    from isamap.targets.state import targets

    found = targets()
    if as_json:
        documents = [
            {
                "name": one.name,
                "title": one.title,
                "runnable": not one.missing,
                "version": one.by,
                "tools": {tool.name: tool.version for tool in one.tools},
                "missing": one.missing or None,
                "enable": one.remedy or None,
            }
            for one in found
        ]
        click.echo(json.dumps(documents, indent=2))
        return
    rows = [(one.name, one.by, one.missing or "runs", one.remedy) for one in found]
    click.echo("\n".join(table(("target", "run by", "here", "to enable it"), rows)))
