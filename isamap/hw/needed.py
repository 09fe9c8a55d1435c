"""What there is of the tools that a description needs: where they are, and whether they will do."""

import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache

from isamap.hw.accelerator import Accelerator
from isamap.hw.catalogue import Tool, catalogue
from isamap.hw.faults import older
from isamap.hw.tools import find_tool

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Needed:
    """A tool of a description: its path and version, None where it is not found.

    ``is_old`` says that it is older than will do, or tells no version.
    """

    name: str
    path: str | None
    version: str | None
    is_old: bool

    @property
    def is_there(self) -> bool:
        """Whether it can be used."""
        return self.path is not None and not self.is_old


def needed(machine: Accelerator) -> tuple[Needed, ...]:
    """Return the tools of the catalogue that a description's code is built and run with."""
    toolchain = machine.toolchain
    if toolchain is None:
        return ()
    words = (toolchain.compiler[:1], () if toolchain.measure else toolchain.runner[:1])
    names = dict.fromkeys(name for own in words for name in own if name in catalogue())
    return tuple(map(looked_up, names))


def looked_up(name: str) -> Needed:
    """Return what there is of a tool of the catalogue."""
    path, tool = find_tool(name), catalogue()[name]
    if path is None:
        return Needed(name, None, None, False)
    version = told_version(path, tool)
    return Needed(name, path, version, version is None or older(version, tool.least))


def told_version(path: str, tool: Tool) -> str | None:
    """Return the version that a program tells, None if it tells none."""
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        return None
    return _told(path, tool.version, changed)


@lru_cache
def _told(path: str, words: tuple[str, ...], _changed: int) -> str | None:
    try:
        done = subprocess.run(
            [path, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+(?:\.\d+)+", done.stdout.decode(errors="replace"))
    return match[0] if match and done.returncode == 0 else None
