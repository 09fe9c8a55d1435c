"""Running a program through a description's measuring command, which counts its cycles.

The command gets two more arguments: the path of the program, and the path of a file that is not
there yet.  It passes its own standard input to the program and the program's standard output to its
own, writes into the file how many cycles the program took, as one decimal number, and ends with
status 0.  ``ISAMAP_MEASURE`` in its environment is the version of this protocol, and its ``PATH``
begins with the folder of the user's tools.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.hw.tools import located, tools_folder
from isamap.run.build import require_toolchain, started_in
from isamap.run.outcome import Crash
from isamap.run.process import Finished, command_text, run_limited
from isamap.run.program import program_input, program_outcome

PROTOCOL = "1"
"""The version of what is said above."""

WHAT = "the measuring command"

_COUNT = re.compile(r"[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE]\+?[0-9]{1,2})?")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Counted:
    """One run: the written arrays by name, and the cycles of the whole program."""

    outputs: dict[str, np.ndarray]
    cycles: float


def count_run(
    path: Path,
    source: CSource,
    accelerator: Accelerator,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    threads: int = 1,
    runs: int = 1,
) -> Counted | Crash:
    """Run what :func:`isamap.run.build.build_program` gave once, computing ``runs`` times in it.

    ToolError if the description is not trusted or its command cannot be started.
    """
    tools = require_toolchain(accelerator)
    given = program_input(source, arrays, symbols, threads, runs)
    with tempfile.TemporaryDirectory(prefix="isamap-") as folder:
        place = Path(folder) / "cycles"
        finished, command = measured(accelerator, path, place, given)
        outputs = program_outcome(finished, source, symbols, tools.seconds, command, WHAT)
        if isinstance(outputs, Crash):
            at = None if outputs.kind == "refused" else tools.measure_at
            return Crash(outputs.kind, outputs.signal, outputs.detail, outputs.command, at)
        count = _count(place)
    if isinstance(count, str):
        return Crash("uncounted", None, count, command, tools.measure_at)
    return Counted(outputs, count)


def measured(
    accelerator: Accelerator, path: Path, count: Path, given: bytes, seconds: float | None = None
) -> tuple[Finished, str]:
    """Run a program through the measuring command; return how it ended, and the command.

    ``count`` is where the command writes its count, ``given`` the program's standard input.  It is
    stopped after ``seconds``, None: those of the description.
    ToolError if the description is not trusted or the command cannot be started.
    """
    tools = require_toolchain(accelerator)
    command = [*located(tools.measure), str(path.resolve()), str(count)]
    folder = started_in(tools)
    path_list = os.pathsep.join([str(tools_folder() / "bin"), os.environ.get("PATH", os.defpath)])
    environment = {"ISAMAP_MEASURE": PROTOCOL, "PATH": path_list}
    try:
        limit = tools.seconds if seconds is None else seconds
        finished = run_limited(command, limit, given, environment, folder)
    except OSError as error:
        raise ToolError(
            fail(
                "E511",
                f"cannot start {command[0]}: {error.strerror}",
                tools.measure_at,
                f"it is {WHAT} of the description's toolchain"
                + (f", started in {folder}" if folder else "")
                + ("; each word is an item of a list: [sh, run.sh]" * (" " in tools.measure[0])),
            )
        ) from error
    return finished, command_text(command)


def _count(place: Path) -> float | str:
    """Return the count that a file holds, or what is wrong with it."""
    try:
        with place.open("rb") as file:
            text = file.read(_LONGEST + 1).decode(errors="replace").strip()
    except OSError:
        return f"{WHAT} wrote no count of cycles"
    if not text:
        return f"{WHAT} wrote an empty count of cycles"
    if not _COUNT.fullmatch(text):
        shown = text[:60].encode("unicode_escape").decode() + "..." * (len(text) > 60)
        return f"{WHAT} wrote '{shown}' for a count of cycles, which is to be one decimal number"
    return float(text)
