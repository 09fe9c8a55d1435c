"""Running a program through a description's measuring command, which counts its cycles.

The command gets two more arguments: the path of the program, and the path of a file that is not
there yet.  It passes its own standard input to the program and the program's standard output to its
own, writes into the file how many cycles the program took, as one decimal number, and ends with
status 0.  ``ISAMAP_MEASURE`` in its environment is the version of this protocol.

A program does more than compute: it starts, reads, prepares constants and writes.  So it is run a
second time with everything but the computing, and what it took then is subtracted.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.hw.tools import located
from isamap.run.arguments import check_arrays
from isamap.run.build import require_toolchain
from isamap.run.outcome import Crash
from isamap.run.process import Finished, command_text, run_limited
from isamap.run.program import program_input, program_outcome

PROTOCOL = "1"
"""The version of what is said above."""

WHAT = "the measuring command"

_COUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE]\+?[0-9]{1,2})?)\s*")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Counted:
    """One run: the written arrays by name, and the cycles of the whole program."""

    outputs: dict[str, np.ndarray]
    cycles: float


@dataclass(slots=True)
class _Runs:
    """The counts of equal runs; a count that came twice in a row is exact and is not taken again."""

    counts: list[float] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return len(self.counts) > 1 and self.counts[-1] == self.counts[-2]


class Counter:
    """Counts the cycles that one program takes to compute on given arrays.

    ``outputs`` are what it wrote, None before it ran.
    """

    def __init__(
        self,
        path: Path,
        source: CSource,
        accelerator: Accelerator,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int],
        threads: int = 1,
    ) -> None:
        """ToolError if the description is not trusted, ArgumentsError for arrays that do not fit."""
        check_arrays(source, arrays, symbols)
        self._tools = require_toolchain(accelerator)
        self._path, self._source, self._accelerator = path, source, accelerator
        self._symbols, self._threads = symbols, threads
        self._arrays = arrays
        self._computing, self._idle = _Runs(), _Runs()
        self.outputs: dict[str, np.ndarray] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the command counts the same each time."""
        return self._computing.is_exact and self._idle.is_exact

    def run(self) -> Counted | Crash:
        """Run the program once; ToolError if the command cannot be started."""
        return self._run(self._threads)

    def sample(self) -> float | Crash:
        """Return the cycles of computing alone; nothing is run where the counts are exact."""
        for runs, threads in ((self._computing, self._threads), (self._idle, 0)):
            if runs.is_exact:
                continue
            found = self._run(threads)
            if isinstance(found, Crash):
                return found
            runs.counts.append(found.cycles)
        computing, idle = self._computing.counts[-1], self._idle.counts[-1]
        if computing <= idle:
            text = (
                f"{WHAT} counts {computing:.10g} cycles for the program and {idle:.10g} for the "
                "same without computing"
            )
            return Crash("level", None, text, "", self._tools.measure_at)
        return computing - idle

    def typical(self, most: int, seconds: float) -> float | Crash:
        """Return the median of up to ``most`` samples, as many as begin within ``seconds``."""
        samples: list[float] = []
        start = monotonic()
        while not samples or (len(samples) < most and monotonic() - start < seconds):
            found = self.sample()
            if isinstance(found, Crash):
                return found
            samples.append(found)
            if self.is_exact:
                return found
        return median(samples)

    def _run(self, threads: int) -> Counted | Crash:
        tools = self._tools
        given = program_input(self._source, self._arrays, self._symbols, threads)
        with tempfile.TemporaryDirectory(prefix="isamap-") as folder:
            place = Path(folder) / "cycles"
            # The folder is the description's: what is named relative to it is found.
            finished, command = measured(self._accelerator, self._path, place, given)
            outputs = program_outcome(
                finished, self._source, self._symbols, tools.seconds, command, WHAT
            )
            if isinstance(outputs, Crash):
                crash = outputs
                return Crash(crash.kind, crash.signal, crash.detail, command, tools.measure_at)
            count = _count(place)
        if isinstance(count, str):
            return Crash("uncounted", None, count, command, tools.measure_at)
        if threads:
            self.outputs = outputs
        return Counted(outputs, count)


def measured(
    accelerator: Accelerator, path: Path, count: Path, given: bytes
) -> tuple[Finished, str]:
    """Run a program through the measuring command; return how it ended, and the command.

    ``count`` is where the command writes its count, ``given`` the program's standard input.
    ToolError if the description is not trusted or the command cannot be started.
    """
    tools = require_toolchain(accelerator)
    command = [*located(tools.measure), str(path.resolve()), str(count)]
    folder = Path(tools.folder) if tools.folder else None
    environment = {"ISAMAP_MEASURE": PROTOCOL}
    try:
        finished = run_limited(command, tools.seconds, given, environment, folder)
    except OSError as error:
        raise ToolError(
            fail(
                "E511",
                f"cannot start {command[0]}: {error.strerror}",
                tools.measure_at,
                f"it is {WHAT} of the description's toolchain"
                + (f", started in {folder}" if folder else ""),
            )
        ) from error
    return finished, command_text(command)


def _count(place: Path) -> float | str:
    """Return the count that a file holds, or what is wrong with it."""
    try:
        with place.open("rb") as file:
            text = file.read(_LONGEST + 1).decode(errors="replace")
    except OSError:
        return f"{WHAT} wrote no count of cycles"
    if not text.strip():
        return f"{WHAT} wrote an empty count of cycles"
    match = _COUNT.fullmatch(text)
    if not match or len(text) > _LONGEST:
        shown = text.strip()[:60].encode("unicode_escape").decode()
        return f"{WHAT} wrote '{shown}', which is no count of cycles: one decimal number"
    return float(match[1])
