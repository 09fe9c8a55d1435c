"""What a user may ask of the path, and the clock that its stages run under."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from isamap.schedule.written import WrittenSchedule
from isamap_search.budget import Budget
from isamap_search.settings import Settings

Tell: TypeAlias = Callable[[str], None]
"""Hears what is being done, in a few words; called often."""


def silent(_: str) -> None:
    """Hear nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is mapped and run.

    ``threads`` is handed to the compiled function.  ``seed`` fixes the random inputs and the
    search.  ``tune`` bounds a search over schedules (None: the first schedule).  ``simulate`` asks
    for the simulator, whatever it costs, where native code could run.  ``records`` is a file to
    which measurements are appended and from which earlier ones are taken.  ``rewrite`` are the
    names of the rules (:data:`isamap.rewrite.rules.NAMES`) that may change the kernel before it is
    mapped; None allows all of them.  ``prove`` attaches a certificate, in a fraction of a second.
    ``instruction`` names one (or a generic one, or a composition) with which each statement is
    computed that it can compute: alone, in the registers of another one, as a part of a
    composition, or after a rewriting.
    ``search`` says how a search goes about it.  ``schedule`` is written by somebody, or was saved:
    it stands in place of the first one (:func:`isamap.schedule.reader.read_schedule`).
    """

    threads: int = 1
    seed: int = 0
    tune: Budget | None = None
    simulate: bool = False
    records: Path | None = None
    rewrite: tuple[str, ...] | None = None
    prove: bool = True
    instruction: str | None = None
    search: Settings = field(default_factory=Settings)
    schedule: WrittenSchedule | None = None


@dataclass(slots=True)
class Clock:
    """Seconds per stage, in order of first use; stages that run side by side overlap."""

    tell: Tell = silent
    seconds: dict[str, float] = field(default_factory=dict)
    _start: float = field(default_factory=perf_counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to stage ``name``, and tell its name."""
        self.tell(name)
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def total(self) -> float:
        """Return the seconds since this clock was made."""
        return perf_counter() - self._start
