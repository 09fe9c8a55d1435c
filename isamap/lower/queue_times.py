"""Times at which queues and what they work on are free, ready or read, and how they go on."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

POSTS = 16
"""Tokens of a channel that are remembered: a unit waits for one of the last ones."""

TAKEN = 64
"""Times at which a shared unit is taken that are remembered."""


@dataclass(slots=True)
class Lane:
    """A unit that several queues share: when it is taken, the earliest first."""

    taken: list[tuple[float, float]] = field(default_factory=list)

    def begin(self, start: float, length: float) -> float:
        """Return when it is free for so long, ``start`` at the earliest."""
        for begin, end in self.taken:
            if end > start and begin < start + length:
                start = end
        return start

    def take(self, start: float, length: float) -> None:
        """Have it taken; what ended long before is forgotten."""
        self.taken = sorted([*self.taken[-TAKEN:], (start, start + length)])

    def later(self, cycles: float) -> None:
        """Move everything to a later time."""
        self.taken = [(begin + cycles, end + cycles) for begin, end in self.taken]


@dataclass(frozen=True, slots=True)
class Mark:
    """All times at one moment, the last post to each channel, and when all was done."""

    times: tuple[float, ...]
    posts: Mapping[str, float]
    end: float


@dataclass(slots=True)
class Times:
    """Times by number, in cycles, those of shared units, and of posts to channels.

    They are in one list, so that those after many iterations are found from those after a few.
    """

    counts: Mapping[str, int]
    all: list[float] = field(default_factory=lambda: [0.0])
    units: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lanes: dict[str, tuple[Lane, ...]] = field(default_factory=dict)
    posts: dict[str, deque[float]] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """When all is done so far, which is time 0."""
        return self.all[0]

    def new(self) -> int:
        """Return the number of another time, which is 0 so far."""
        self.all.append(0.0)
        return len(self.all) - 1

    def named(self, numbers: dict[str, int], name: str) -> int:
        """Return the number of a time that has a name, which may be a new one."""
        if name not in numbers:
            numbers[name] = self.new()
        return numbers[name]

    def reach(self, number: int, time: float) -> None:
        """Have a time be this one at least."""
        self.all[number] = max(self.all[number], time)

    def unit(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the times at which each of some equal units is free."""
        if name not in self.units:
            self.units[name] = tuple(self.new() for _ in range(self.counts.get(name, 1)))
        return self.units[name]

    def take(self, units: Sequence[int], until: float) -> None:
        """Have the one of some equal units that is free first taken until then."""
        self.all[min(units, key=self.all.__getitem__)] = until

    def post(self, channel: str, time: float) -> None:
        """Have a token posted to a channel."""
        self.posts.setdefault(channel, deque(maxlen=POSTS)).append(time)

    def posted(self, channel: str, behind: int) -> float:
        """Return when the last token but so many was posted, 0 where none was."""
        own = self.posts.get(channel, deque())
        return own[-1 - behind] if len(own) > behind else 0.0

    def lend(self, wanted: Mapping[str, float], start: float) -> float:
        """Return when shared units are free for so long each, and have them taken then."""
        own = [(self._lanes(unit), length) for unit, length in wanted.items()]
        later = start
        while own:
            for lanes, length in own:
                later = max(later, min(lane.begin(later, length) for lane in lanes))
            if later == start:
                break
            start = later
        for lanes, length in own:
            next(lane for lane in lanes if lane.begin(start, length) == start).take(start, length)
        return start

    def mark(self) -> Mark:
        """Return the times of this moment."""
        posts = {channel: own[-1] for channel, own in self.posts.items() if own}
        return Mark(tuple(self.all), posts, self.end)

    def moved(self, since: Mark) -> tuple[float, ...]:
        """Return by how much the end of all has moved since a mark, and each unit's work."""
        units = [number for own in self.units.values() for number in own]
        known = [number for number in units if number < len(since.times)]
        return (self.end - since.end, *(self.all[n] - since.times[n] for n in known))

    def repeat(self, since: Mark, times: int) -> None:
        """Have what was done since a mark done so many times more: each time goes on as then."""
        end = self.end
        for number, time in enumerate(since.times):
            self.all[number] += (self.all[number] - time) * times
        for channel, time in since.posts.items():
            own = self.posts[channel]
            moved = (own[-1] - time) * times
            self.posts[channel] = deque((post + moved for post in own), POSTS)
        for lanes in self.lanes.values():
            for lane in lanes:
                lane.later((end - since.end) * times)

    def _lanes(self, unit: str) -> tuple[Lane, ...]:
        if unit not in self.lanes:
            self.lanes[unit] = tuple(Lane() for _ in range(self.counts.get(unit, 1)))
        return self.lanes[unit]
