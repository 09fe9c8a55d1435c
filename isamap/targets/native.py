"""Programs that run on this machine itself, made to tell which instructions they execute."""

import re
from importlib.resources import as_file
from pathlib import Path

from isamap.diagnostics import ToolError, fail
from isamap.hw.catalogue import Native
from isamap.resources import shipped
from isamap.targets.command import run


def making(way: Native, folder: Path, function: str, log: Path) -> tuple[str, ...]:
    """Return what stands before a program that is to tell what ``function`` executes.

    The library for it is made in ``folder``.  ToolError if that fails.
    """
    library = folder / "steps.so"
    names = {"{library}": str(library), "{function}": function, "{log}": str(log)}
    with as_file(shipped("hwdesc") / "tools" / way.library) as text:
        run(_filled(way.make, names | {"{text}": str(text)}))
    return _filled(way.arguments, names)


def read_times(log: Path, function: str, way: Native) -> dict[int, int]:
    """Return how often the instruction at each address was executed.

    ToolError if nothing was written: the program has no such function, or did not return from it.
    """
    lines = log.read_text().splitlines() if log.exists() else []
    found = [match for line in lines if (match := re.match(way.step, line))]
    if not found:
        raise ToolError(fail("E538", f"the program tells of no function {function}"))
    return {int(match["address"], 16): int(match["times"]) for match in found}


def listed_texts(program: Path, way: Native) -> dict[int, str]:
    """Return what instruction stands at each address of a program."""
    listing = run(_filled(way.listing, {"{program}": str(program)}))
    found = (re.match(way.listed, line) for line in listing.splitlines())
    return {int(match["address"], 16): match["text"].strip() for match in found if match}


def _filled(words: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    for name, value in names.items():
        words = tuple(word.replace(name, value) for word in words)
    return words
