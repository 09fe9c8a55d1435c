"""What a search is asked to do, what it measures with, and what it returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from isamap.diagnostics import Diagnostic
from isamap_search.objective import Candidate, Point
from isamap_search.race import Rules, Standing
from isamap_search.settings import Place

Order: TypeAlias = Callable[[Sequence[Candidate]], Sequence[Candidate]]
"""Puts ranked candidates into the order in which they are worth a trial."""


class Bench(Protocol):
    """Compiles and times candidates on the machine itself."""

    def __call__(
        self, candidates: Sequence[Candidate], rounds: int
    ) -> Sequence[Sequence[float] | None]:
        """Return the seconds a run of each candidate in each round; see
        :class:`isamap_search.race.Timer`.
        """
        ...

    def code_bytes(self, candidate: Candidate) -> int:
        """Return the bytes of machine code of a candidate that was timed."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How a search goes about it.

    ``objectives`` begin with ``time``, which decides on the best; with several, the front is found,
    too.  ``sampler`` is one of :data:`isamap_search.settings.SAMPLERS`, ``identity`` what a study
    at ``place`` must be about for this search to join it.
    """

    sampler: str = "tpe"
    objectives: tuple[str, ...] = ("time",)
    place: Place = field(default_factory=Place)
    identity: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate that was timed: ``seconds`` a run, and over the first schedule's, in a race of
    ``rounds`` rounds."""

    candidate: Candidate
    seconds: float
    ratio: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate of the front, with its value of each objective."""

    point: Point
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    ``score`` of the best and ``first`` of the heuristics' schedule are seconds a run if
    ``measured``, of the last comparison, else cycles by the model; None where that failed.
    ``beside`` compares the best with the first by turns; None if nothing was measured or the first
    is the best.  ``trials`` were made here, of which ``failed`` crashed and ``dropped`` were ended
    early; ``others`` were known to the study from other workers or earlier runs.  ``values`` are
    those of the objectives, time being over the first schedule's if measured.  ``warnings`` are
    about what could not be read of the study.
    """

    best: Candidate | None
    score: float | None
    first: float | None
    beside: Standing[Candidate] | None
    trials: int
    failed: int
    dropped: int
    others: int
    measured: bool
    interrupted: bool
    values: tuple[tuple[Point, tuple[float, ...]], ...]
    front: tuple[Scored, ...]
    warnings: tuple[Diagnostic, ...] = ()
