"""What a user may ask of a search; nothing here imports Optuna, which takes a second."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

SAMPLERS = ("tpe", "nsga2", "cmaes", "random")
"""Names of the samplers that propose schedules."""

OBJECTIVES = ("time", "size", "memory")
"""``time`` over the first schedule's; ``size`` of the machine code in bytes, or where nothing is
compiled the instruction calls and copies in the code; ``memory``: bytes of the workspace, which
holds packed operands, results that pass from statement to statement, and staged fragments, and of
what is made of constants ahead of calls."""

_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study lives: in a journal file, at a URL, or (neither) in memory.

    ``name`` is that of the study; None: the caller's default.
    """

    path: Path | None = None
    url: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        """Return the place without the password of its URL."""
        if self.url is not None:
            return _PASSWORD.sub(r"\1:***@", self.url)
        return str(self.path) if self.path is not None else "memory"

    @property
    def lasts(self) -> bool:
        """Whether the study outlives the process."""
        return self.path is not None or self.url is not None


@dataclass(frozen=True, slots=True)
class Settings:
    """How a search goes about it.

    ``sampler`` None is the usual one for the objectives, of which the first is ``time``.  A search
    that measures and has no ``place`` keeps its study in ``folder``; without one, in memory.
    ``log`` is a file that is written, ``replayed`` one whose measurements are taken instead of new
    ones.
    """

    sampler: str | None = None
    objectives: tuple[str, ...] = ("time",)
    place: Place = field(default_factory=Place)
    folder: Path | None = None
    log: Path | None = None
    replayed: Path | None = None


def state_folder() -> Path:
    """Return the folder in which a user's programs keep what should last: XDG_STATE_HOME's."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "isamap"
