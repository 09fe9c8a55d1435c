"""Fetching tools into a folder of the user's: nothing system-wide, no root, usable offline after.

Packages of Debian are fetched by apt with lists of its own, which checks their signatures; those of
the Python Package Index by pip, into an environment of their own, which checks their hashes.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.hw.catalogue import Tool, catalogue
from isamap.hw.needed import told_version
from isamap.hw.tools import tools_folder
from isamap.run.process import command_text
from isamap.targets import debian
from isamap.targets.command import fetch, run
from isamap.targets.state import unknown

Tell = Callable[[str], None]

# Tools of the Python Package Index share an environment: the size of one is that of its own files.
_PACKAGE_SIZE = """\
import sys
from importlib.metadata import files
paths = [found.locate() for found in files(sys.argv[1]) or ()]
print(sum(path.stat().st_size for path in paths if path.is_file() and not path.is_symlink()))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """A tool that was fetched: its version, where it is from, and the bytes that it takes."""

    name: str
    version: str
    source: str
    bytes: int


def install(names: Sequence[str], tell: Tell) -> tuple[Installed, ...]:
    """Fetch tools of the catalogue and record what was fetched in ``installed.json``.

    ToolError if one cannot be had here, or does not run.
    """
    folder = tools_folder()
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    tools = {name: catalogue()[name] for name in names}
    found = [*_from_pip(tools, folder, tell), *_from_debian(tools, folder, tell)]
    _record(folder, found)
    return tuple(found)


def check_commands(names: Iterable[str]) -> None:
    """Raise ToolError where a description of some names is built or run by a command that is not
    here, and that nothing is known to fetch.
    """
    hint = "it is no tool that isamap fetches: put it on the PATH, or correct the description"
    missing = [(name, command) for name in names for command in unknown(name)]
    if missing:
        raise ToolError([fail("E541", f"{n}: '{c}' is not here", hint=hint) for n, c in missing])


def _from_pip(tools: dict[str, Tool], folder: Path, tell: Tell) -> list[Installed]:
    wanted = {name: tool for name, tool in tools.items() if tool.pip}
    if not wanted:
        return []
    place = folder / "python"
    python = place / "bin" / "python"
    if not python.exists():
        tell("targets: an environment for Python packages")
        run([sys.executable, "-m", "venv", str(place)])
    found = []
    for name, tool in wanted.items():
        tell(f"targets: {tool.pip} by pip")
        fetch([str(python), "-m", "pip", "install", "-q", f"{tool.pip}>={tool.least}"])
        words = [str(python) if w == "python" else w for w in tool.command or (name,)]
        script = folder / "bin" / name
        _script(script, words)
        size = int(run([str(python), "-c", _PACKAGE_SIZE, tool.pip or ""]))
        found.append(_checked(name, tool, script, f"{tool.pip}, PyPI", size))
    return found


def _from_debian(tools: dict[str, Tool], folder: Path, tell: Tell) -> list[Installed]:
    wanted = {name: tool for name, tool in tools.items() if tool.debian}
    if not wanted:
        return []
    release = debian.release()
    found = []
    for package in dict.fromkeys(tool.debian for tool in wanted.values() if tool.debian):
        own = {name: tool for name, tool in wanted.items() if tool.debian == package}
        first = next(iter(own.values()))
        suite = first.suites.get(release)
        if suite is None or shutil.which("apt-get") is None or not debian.KEYRING.exists():
            told = f"{', '.join(own)} is fetched on Debian {' or '.join(first.suites)} only"
            hint = f"install {package} {first.least} or later yourself: what is on the PATH will do"
            raise ToolError(fail("E541", told, hint=None if first.tree else hint))
        with tempfile.TemporaryDirectory() as work:
            tell(f"targets: {package} from {suite} by apt")
            trees = [tool.tree for tool in own.values() if tool.tree]
            archives = debian.fetched(package, suite, Path(work), bool(trees))
            source = f"{archives[0].name}, Debian {suite}"
            tell(f"targets: unpacking {len(archives)} package{'s' * (len(archives) != 1)}")
            unpacked = Path(work, "unpacked")
            for archive in archives:
                run(["dpkg-deb", "-x", str(archive), str(unpacked)])
            for name, tool in own.items():
                place = folder / "bin" / name
                if tool.tree is None:
                    shutil.copy2(unpacked / (tool.file or name), place)
                    size = place.stat().st_size
                else:
                    tree = debian.plant(tool.tree, unpacked, folder / name)
                    _script(place, debian.in_tree(tool.command or (), tree))
                    size = _size(tree)
                found.append(_checked(name, tool, place, source, size))
    return found


def _script(place: Path, words: Sequence[str]) -> None:
    place.write_text(f'#!/bin/sh\nexec {command_text(words)} "$@"\n')
    place.chmod(0o755)


def _checked(name: str, tool: Tool, place: Path, source: str, size: int) -> Installed:
    version = told_version(str(place), tool)
    if version is None:
        raise ToolError(fail("E542", f"{name} from {source} does not run here"))
    return Installed(name, version, source, size)


def _record(folder: Path, found: Sequence[Installed]) -> None:
    place = folder / "installed.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    known |= {one.name: asdict(one) for one in found}
    place.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
