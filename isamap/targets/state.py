"""What there is of the tools that a description needs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from isamap.hw.accelerator import Accelerator
from isamap.hw.catalogue import Tool, catalogue
from isamap.hw.faults import older
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import install_command, runnable
from isamap.hw.tools import find_tool
from isamap.run.process import run_limited

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Needed:
    """A tool of a description: its path and version, None where it is not found.

    ``is_old`` says that it is older than will do.
    """

    name: str
    path: str | None
    version: str | None
    is_old: bool

    @property
    def is_there(self) -> bool:
        """Whether it can be used."""
        return self.path is not None and not self.is_old


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


def needed(machine: Accelerator) -> tuple[Needed, ...]:
    """Return the tools of the catalogue that a description's code is built and run with."""
    if machine.toolchain is None:
        return ()
    words = (machine.toolchain.compiler[:1], machine.toolchain.runner[:1])
    names = dict.fromkeys(name for own in words for name in own if name in catalogue())
    return tuple(_looked_up(name, catalogue()[name]) for name in names)


def targets() -> tuple[Target, ...]:
    """Return the shipped descriptions."""
    return tuple(_target(load_hardware(name)) for name in shipped_names())


def emulated() -> tuple[Target, ...]:
    """Return the shipped descriptions whose code runs through tools of the catalogue."""
    return tuple(target for target in targets() if target.tools)


def _target(machine: Accelerator) -> Target:
    if machine.toolchain is None:
        return Target(machine.name, machine.title, "simulator", (), "", "")
    tools = needed(machine)
    missing = runnable(machine) or ""
    old = [f"{t.name} {t.version} is too old" for t in tools if t.is_old]
    lacking = bool(old) or not all(tool.is_there for tool in tools)
    remedy = install_command(machine) if lacking else ""
    by = _runs_by(machine.toolchain.runner, tools)
    return Target(machine.name, machine.title, by, tools, missing or ", ".join(old), remedy)


def _runs_by(runner: tuple[str, ...], tools: tuple[Needed, ...]) -> str:
    return with_version(runner[0], tools) if runner else "this CPU"


def with_version(name: str, tools: Iterable[Needed]) -> str:
    """Return a tool's name and the version at hand, if that is known."""
    version = next((tool.version for tool in tools if tool.name == name), None)
    return f"{name} {version}" if version else name


def _looked_up(name: str, tool: Tool) -> Needed:
    path = find_tool(name)
    if path is None:
        return Needed(name, None, None, False)
    version = told_version(path, tool)
    return Needed(name, path, version, version is None or older(version, tool.least))


def told_version(path: str, tool: Tool) -> str | None:
    """Return the version that a program tells, None if it tells none."""
    try:
        done = run_limited([path, *tool.version], _SECONDS)
    except OSError:
        return None
    match = re.search(r"\d+(?:\.\d+)+", done.stdout.decode(errors="replace"))
    return match[0] if match and done.code == 0 else None
