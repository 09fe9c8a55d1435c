"""What there is of the tools that a description needs."""

from collections.abc import Iterable
from dataclasses import dataclass

from isamap.hw.accelerator import Accelerator
from isamap.hw.catalogue import catalogue
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import remedy, runnable
from isamap.hw.needed import Needed, looked_up, needed
from isamap.hw.tools import find_tool


@dataclass(frozen=True, slots=True)
class Target:
    """A shipped description: what its code is run by, and what is missing for that.

    ``by`` is an emulator's name and version, 'this CPU' or 'simulator'.  ``tools`` are those of
    the catalogue that are needed.  ``missing`` is why it does not run here, '' if it does;
    ``remedy`` the command that helps, '' where none does.
    """

    name: str
    title: str
    by: str
    tools: tuple[Needed, ...]
    missing: str
    remedy: str


def targets() -> tuple[Target, ...]:
    """Return the shipped descriptions."""
    return tuple(_target(load_hardware(name, instructions=False)) for name in shipped_names())


def emulated() -> tuple[Target, ...]:
    """Return the shipped descriptions whose code runs through tools of the catalogue."""
    return tuple(target for target in targets() if target.tools)


def asked(name: str) -> tuple[Needed, ...]:
    """Return the tool of the catalogue that has a name, else those of a description.

    HardwareError if there is neither.
    """
    if name in catalogue():
        return (looked_up(name),)
    return needed(load_hardware(name, instructions=False))


def unknown(name: str) -> tuple[str, ...]:
    """Return the commands of a description that are not here, and that nothing is known to fetch.

    None of a tool of the catalogue.  HardwareError if there is neither.
    """
    if name in catalogue():
        return ()
    tools = load_hardware(name, instructions=False).toolchain
    if tools is None or tools.measure:
        return ()
    commands = dict.fromkeys((*tools.compiler[:1], *tools.runner[:1]))
    return tuple(
        command
        for command in commands
        if command not in catalogue() and find_tool(command, tools.folder) is None
    )


def _target(machine: Accelerator) -> Target:
    if machine.toolchain is None:
        return Target(machine.name, machine.title, "simulator", (), "", "")
    tools = needed(machine)
    by = _runs_by(machine.toolchain.runner, tools)
    missing = runnable(machine) or ""
    return Target(machine.name, machine.title, by, tools, missing, remedy(machine))


def _runs_by(runner: tuple[str, ...], tools: tuple[Needed, ...]) -> str:
    return with_version(runner[0], tools) if runner else "this CPU"


def with_version(name: str, tools: Iterable[Needed]) -> str:
    """Return a tool's name and the version at hand, if that is known."""
    version = next((tool.version for tool in tools if tool.name == name), None)
    return f"{name} {version}" if version else name
