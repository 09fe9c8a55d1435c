"""Where compilers and emulators are found: in the user's folder of tools, else on the PATH."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def tools_folder() -> Path:
    """Return the folder in which ``isamap targets install`` puts tools.

    That is ``$ISAMAP_TOOLS``, else ``isamap/tools`` in ``$XDG_DATA_HOME`` or ``~/.local/share``.
    """
    if given := os.environ.get("ISAMAP_TOOLS"):
        return Path(given).absolute()
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "isamap" / "tools"


def find_tool(name: str, folder: str = "") -> str | None:
    """Return the path of a program, None if there is none.

    What is named by a path is looked for in ``folder``.
    """
    return _own(name) or shutil.which(os.path.join(folder, name) if os.sep in name else name)


def located(command: Sequence[str]) -> list[str]:
    """Return a command with the path of its program, if that is one of the user's tools."""
    return [_own(command[0]) or command[0], *command[1:]] if command else []


def _own(name: str) -> str | None:
    return shutil.which(name, path=str(tools_folder() / "bin")) if os.sep not in name else None
