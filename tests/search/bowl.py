"""A small space without any code, and a machine of which we know how fast it is."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from isamap.diagnostics import ScheduleError, fail
from isamap.lower.nodes import LoweredKernel
from isamap.schedule.schedule import Schedule
from isamap_search.objective import Candidate, Model, Point


@dataclass(frozen=True)
class Choice:
    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Bowl:
    """A space whose cycles are the distance from (5, 3, 1); ``b`` and ``c`` may not be equal."""

    choices: tuple[Choice, ...] = (
        Choice("a", tuple(map(str, range(8)))),
        Choice("b", tuple(map(str, range(6)))),
        Choice("c", ("west", "east", "south", "north")),
    )

    @property
    def first(self) -> Mapping[str, int]:
        return {"a": 0, "b": 1, "c": 0}

    suggested: tuple[Mapping[str, int], ...] = ()

    def build(self, assignment: Mapping[str, int]) -> Schedule:
        if assignment["b"] == assignment["c"]:
            raise ScheduleError(fail("E400", "b is c"))
        return cast(Schedule, tuple(sorted(assignment.items())))  # each point's is its own


FIRST: Point = (0, 1, 0)
POINTS = 8 * 6 * 4 - 8 * 4


class BowlModel(Model):
    """The bowl's cycles, without lowering anything."""

    def _make(self, point: Point) -> Candidate | None:
        try:
            schedule = self.space.build(self.assignment(point))
        except ScheduleError:
            return None
        lowered = LoweredKernel(f"k{point}", (), (), ())  # each point's is its own, too
        return Candidate(point, schedule, lowered, distance(point))


def distance(point: Point) -> float:
    return 10.0 + sum((x - y) ** 2 for x, y in zip(point, (5, 3, 1), strict=True))


def model(*suggested: Point) -> Model:
    nothing = cast(Any, None)
    names = [choice.name for choice in Bowl().choices]
    own = tuple(dict(zip(names, point, strict=True)) for point in suggested)
    return BowlModel(nothing, nothing, cast(Any, Bowl(suggested=own)), {})


class Bench:
    """Times candidates by a formula, with noise that a seed decides; counts what it is asked."""

    def __init__(
        self,
        seconds: Callable[[Point], float | None] = distance,
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._seconds = seconds
        self._noise = noise
        self._random = random.Random(seed)
        self.asked: list[tuple[tuple[Point, ...], int]] = []

    def __call__(self, candidates: Sequence[Candidate], rounds: int) -> list[list[float] | None]:
        self.asked.append((tuple(c.point for c in candidates), rounds))
        taken: list[list[float] | None] = []
        for candidate in candidates:
            seconds = self._seconds(candidate.point)
            if seconds is None:
                taken.append(None)
            else:
                taken.append([seconds * self._disturbance() for _ in range(rounds)])
        return taken

    def code_bytes(self, candidate: Candidate) -> int:
        """Less code the higher ``a`` is."""
        return 100 - 10 * candidate.point[0]

    def _disturbance(self) -> float:
        # Never faster than undisturbed, now and then much slower: as machines are.
        return 1 + self._noise * self._random.expovariate(1.0)
