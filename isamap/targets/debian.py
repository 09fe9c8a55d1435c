"""Packages of Debian, fetched by apt with lists of its own, which checks signatures."""

import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from isamap.diagnostics import ToolError
from isamap.hw.catalogue import Tree
from isamap.resources import shipped
from isamap.targets.command import fetch, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def release() -> str:
    """Return the code name of this machine's release, '' if it has none."""
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        return ""


def fetched(package: str, suite: str, work: Path, is_whole: bool) -> tuple[Path, ...]:
    """Return a package that apt fetched into ``work``, with ``is_whole`` all it depends on behind.

    ToolError if that fails.
    """
    (work / "lists" / "partial").mkdir(parents=True)
    (work / "cache" / "archives" / "partial").mkdir(parents=True)
    sources, nothing = work / "sources.list", work / "status"
    sources.write_text(f"deb [signed-by={KEYRING}] {_mirror()} {suite} main\n")
    nothing.touch()
    apt = [
        "apt-get",
        "-qq",
        f"-oDir::Etc::SourceList={sources}",
        f"-oDir::Etc::SourceParts={os.devnull}",
        f"-oDir::State::Lists={work / 'lists'}",
        f"-oDir::Cache={work / 'cache'}",
        "-oAPT::Sandbox::User=",
        "-oAPT::Update::Error-Mode=any",  # else lists that were not fetched are a warning
    ]
    fetch([*apt, "update"])
    names = [package]
    if is_whole:
        # As if nothing were installed.
        empty = [f"-oDir::State::status={nothing}", "--no-install-recommends", "-s"]
        told = run([*apt, *empty, "install", package])
        names += [name for name in re.findall(r"^Inst (\S+)", told, re.M) if name != package]
    fetch([*apt, "download", *names], work)
    return tuple(next(work.glob(f"{name}_*.deb")) for name in names)


def plant(tree: Tree, unpacked: Path, place: Path) -> Path:
    """Make the folder of a tool that is a tree, in place of an older one, and return it."""
    shutil.rmtree(place, ignore_errors=True)
    for name in tree.keep:
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (unpacked / name).is_dir():
            shutil.copytree(unpacked / name, target, symlinks=True)
        else:
            shutil.copy2(unpacked / name, target)
    for item in (shipped("hwdesc") / "tools" / tree.beside).iterdir():
        (place / item.name).write_bytes(item.read_bytes())
    for command in tree.make:
        run(in_tree(command, place), place)
    return place


def in_tree(command: Sequence[str], place: Path) -> list[str]:
    """Return a command with the folder of a tree filled in."""
    return [word.replace("{tree}", str(place)) for word in command]


def _mirror() -> str:
    """Return where this machine has its Debian packages from."""
    try:
        told = run(["apt-get", "--print-uris", "update"])
    except ToolError:
        told = ""
    places = [line.split("'")[1] for line in told.splitlines() if line.startswith("'")]
    own = [place.partition("/dists/")[0] for place in places if "/dists/" in place]
    own = [place for place in own if "security" not in place]
    return own[0] if own else "https://deb.debian.org/debian"
