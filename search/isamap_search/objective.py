"""What a schedule is worth: by the cost model, and by the clock."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from isamap.diagnostics import ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.lower.capacity import excess
from isamap.lower.cost import estimate
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.lower.ordered import as_ordered
from isamap.mapping.fragments.produce import Producers, producers_of
from isamap.schedule.schedule import Schedule
from isamap.schedule.space import Space

Point: TypeAlias = tuple[int, ...]
"""An option's number for each choice of a space, in its order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule that can be lowered, the cycles that the model expects, and what they are made of
    (see :class:`isamap.lower.cost.Estimate`)."""

    point: Point
    schedule: Schedule
    lowered: LoweredKernel
    cycles: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Model:
    """Builds, lowers and estimates the points of a space, each once."""

    kernel: Kernel
    accelerator: Accelerator
    space: Space
    symbols: Mapping[str, int]
    threads: int = 1
    _known: dict[Point, Candidate | None] = field(default_factory=dict)
    _alike: dict[float, list[Candidate]] = field(default_factory=dict)
    _producers: Producers | None = None

    @property
    def sizes(self) -> Point:
        """The number of options of each choice."""
        return tuple(len(choice.options) for choice in self.space.choices)

    @property
    def first(self) -> Point:
        """The point of the heuristics."""
        return self.point(self.space.first)

    @property
    def suggested(self) -> list[Point]:
        """The points that the analytical model of memories suggests, each once."""
        return list(dict.fromkeys(self.point(own) for own in self.space.suggested))

    def point(self, assignment: Mapping[str, int]) -> Point:
        """Return an assignment as a point."""
        return tuple(assignment[choice.name] for choice in self.space.choices)

    def assignment(self, point: Point) -> dict[str, int]:
        """Return a point as an assignment."""
        return {c.name: number for c, number in zip(self.space.choices, point, strict=True)}

    def candidate(self, point: Point) -> Candidate | None:
        """Return the schedule of a point and its estimate; None when there is none."""
        if point not in self._known:
            self._known[point] = self._make(point)
        return self._known[point]

    def alias(self, candidate: Candidate) -> Point:
        """Return the point that stands for all that make what a candidate is lowered to.

        Schedules that differ in what has no effect make the same code, whose times would tell
        chance alone.
        """
        alike = self._alike.setdefault(candidate.cycles, [])
        same = (other for other in alike if _is_same(other, candidate))
        if (found := next(same, None)) is None:
            alike.append(candidate)
        return (found or candidate).point

    def _make(self, point: Point) -> Candidate | None:
        if self._producers is None:
            self._producers = producers_of(self.accelerator)  # once for all candidates
        try:
            schedule = self.space.build(self.assignment(point))
            lowered = lower(self.kernel, self.accelerator, schedule, self._producers)
        except ScheduleError:
            return None
        if excess(lowered, self.accelerator):
            return None
        cost = estimate(lowered, self.accelerator, self.symbols, self.threads)
        done = as_ordered(schedule, lowered)
        return Candidate(point, done, lowered, cost.cycles, cost.parts)


def rank(
    model: Model,
    count: int,
    seed: int,
    go_on: Callable[[], bool] = lambda: True,
) -> list[Candidate]:
    """Return the candidates among about ``count`` points, best first.

    The heuristics' own and what is suggested come first.  Of the others half are drawn at random,
    half are neighbours of the best so far.  A function of its arguments unless ``go_on`` ends it
    early.
    """
    found: dict[Point, Candidate | None] = {}

    def take(points: Iterator[Point]) -> None:
        for point in points:
            if len(found) >= count or not go_on():
                return
            if point not in found:
                found[point] = model.candidate(point)

    take(iter([model.first, *model.suggested]))
    expanded: set[Point] = set()
    drawn = _random_points(model.sizes, seed)
    while len(found) < count and go_on():
        before = len(found)
        best = next((c for c in _sorted(found) if c.point not in expanded), None)
        if best:
            expanded.add(best.point)
            take(_neighbours(best.point, model.sizes))
        take(next(drawn) for _ in range(max(8, len(found) - before)))
        if best is None and len(found) == before:
            break  # the space is used up
    return _different(_sorted(found), model)


def _different(ranked: Sequence[Candidate], model: Model) -> list[Candidate]:
    """Return one candidate of each lowered kernel: several points may make the same one.

    The heuristics' own comes before others.
    """
    own = (candidate for candidate in ranked if candidate.point == model.first)
    chosen: dict[Point, Point] = {}
    for candidate in (*own, *ranked):
        chosen.setdefault(model.alias(candidate), candidate.point)
    kept = set(chosen.values())
    return [candidate for candidate in ranked if candidate.point in kept]


def _is_same(one: Candidate, other: Candidate) -> bool:
    return one.schedule == other.schedule or one.lowered == other.lowered


def _sorted(found: Mapping[Point, Candidate | None]) -> list[Candidate]:
    return sorted((c for c in found.values() if c), key=lambda c: (c.cycles, c.point))


def _neighbours(point: Point, sizes: Point) -> Iterator[Point]:
    """Yield the points that differ in one choice."""
    for at, size in enumerate(sizes):
        for option in range(size):
            if option != point[at]:
                yield (*point[:at], option, *point[at + 1 :])


def _random_points(sizes: Point, seed: int) -> Iterator[Point]:
    generator = random.Random(seed)
    while True:
        yield tuple(generator.randrange(size) for size in sizes)
