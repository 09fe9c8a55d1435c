"""Fetching tools into a folder of the user's: nothing system-wide, no root, usable offline after.

Packages of Debian are fetched by apt with lists of its own, which checks their signatures; those of
the Python Package Index by pip, into an environment of their own, which checks their hashes.
"""

import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.hw.catalogue import Tool, catalogue
from isamap.hw.tools import tools_folder
from isamap.run.process import command_text, run_limited
from isamap.targets.state import told_version

_SECONDS = 600.0
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

Tell = Callable[[str], None]


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


def _from_pip(tools: dict[str, Tool], folder: Path, tell: Tell) -> list[Installed]:
    wanted = {name: tool for name, tool in tools.items() if tool.pip}
    if not wanted:
        return []
    place = folder / "python"
    python = place / "bin" / "python"
    if not python.exists():
        tell("targets: an environment for Python packages")
        _run([sys.executable, "-m", "venv", str(place)])
    found = []
    for name, tool in wanted.items():
        tell(f"targets: {tool.pip} by pip")
        _run([str(python), "-m", "pip", "install", "-q", f"{tool.pip}>={tool.least}"])
        words = [str(python) if w == "python" else w for w in tool.command or (name,)]
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {command_text(words)} "$@"\n')
        script.chmod(0o755)
        found.append(_checked(name, tool, script, f"{tool.pip}, PyPI", _size(place)))
    return found


def _from_debian(tools: dict[str, Tool], folder: Path, tell: Tell) -> list[Installed]:
    wanted = {name: tool for name, tool in tools.items() if tool.debian}
    if not wanted:
        return []
    release = _release()
    found = []
    for package in dict.fromkeys(tool.debian for tool in wanted.values() if tool.debian):
        own = {name: tool for name, tool in wanted.items() if tool.debian == package}
        first = next(iter(own.values()))
        suite = first.suites.get(release)
        if suite is None or shutil.which("apt-get") is None or not _KEYRING.exists():
            told = f"{', '.join(own)} is fetched on Debian {' or '.join(first.suites)} only"
            hint = f"install {package} {first.least} or later yourself: what is on the PATH will do"
            raise ToolError(fail("E531", told, hint=hint))
        with tempfile.TemporaryDirectory() as work:
            tell(f"targets: {package} from {suite} by apt")
            archive = _fetched(package, suite, Path(work))
            files = [f"./{tool.file}" for tool in own.values()]
            tell(f"targets: unpacking {len(files)} programs")
            _run(["dpkg-deb", "-x", str(archive), work])
            for name, tool in own.items():
                place = folder / "bin" / name
                shutil.copy2(Path(work, tool.file or name), place)
                source = f"{archive.name}, Debian {suite}"
                found.append(_checked(name, tool, place, source, place.stat().st_size))
    return found


def _fetched(package: str, suite: str, work: Path) -> Path:
    """Return a package that apt fetched with lists of its own, signature checked."""
    (work / "lists" / "partial").mkdir(parents=True)
    (work / "cache" / "archives" / "partial").mkdir(parents=True)
    sources = work / "sources.list"
    sources.write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n")
    options = [
        f"-oDir::Etc::SourceList={sources}",
        f"-oDir::Etc::SourceParts={os.devnull}",
        f"-oDir::State::Lists={work / 'lists'}",
        f"-oDir::Cache={work / 'cache'}",
        "-oAPT::Sandbox::User=",
    ]
    _run(["apt-get", "-qq", *options, "update"])
    _run(["apt-get", "-qq", *options, "download", package], work)
    return next(work.glob(f"{package}_*.deb"))


def _mirror() -> str:
    """Return where this machine has its Debian packages from."""
    told = run_limited(["apt-get", "--print-uris", "update"], _SECONDS).stdout.decode()
    places = [line.split("'")[1] for line in told.splitlines() if line.startswith("'")]
    own = [place.partition("/dists/")[0] for place in places if "/dists/" in place]
    own = [place for place in own if "security" not in place]
    return own[0] if own else "https://deb.debian.org/debian"


def _release() -> str:
    """Return the code name of this machine's release, '' if it has none."""
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        return ""


def _checked(name: str, tool: Tool, place: Path, source: str, size: int) -> Installed:
    version = told_version(str(place), tool)
    if version is None:
        raise ToolError(fail("E532", f"{name} from {source} does not run here"))
    return Installed(name, version, source, size)


def _record(folder: Path, found: Sequence[Installed]) -> None:
    place = folder / "installed.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    known |= {one.name: asdict(one) for one in found}
    place.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _size(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    try:
        done = run_limited(command, _SECONDS, folder=folder)
    except OSError as error:
        raise ToolError(fail("E530", f"cannot start {command[0]}: {error.strerror}")) from error
    if done.code != 0:
        told = done.stderr.strip()[-2000:] or f"it ended with status {done.code}"
        raise ToolError(fail("E530", f"{command_text(command)} failed: {told}"))
