"""Units that several queues share: what comes later may use what was left free before."""

from bisect import bisect_right


class Lanes:
    """When each of some equal units is taken."""

    def __init__(self, count: int) -> None:
        self.lanes: list[_Lane] = [_Lane() for _ in range(count)]

    def next(self, start: int, length: int) -> int:
        """Return from when on one of them is free for ``length``, ``start`` at the earliest."""
        return min(lane.next(start, length) for lane in self.lanes)

    def take(self, start: int, length: int) -> None:
        """Have one of them taken that is free for ``length`` from ``start`` on."""
        lane = next(lane for lane in self.lanes if lane.next(start, length) == start)
        lane.take(start, start + length)


class _Lane:
    """One unit; ``begins`` and ``ends`` are those of the times at which it is taken, in order."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []

    def next(self, start: int, length: int) -> int:
        at = bisect_right(self.ends, start)  # what ends before is of no interest
        while at < len(self.begins) and self.begins[at] < start + length:
            start = self.ends[at]
            at += 1
        return start

    def take(self, begin: int, end: int) -> None:
        at = bisect_right(self.ends, begin)
        # Times that follow each other are one.
        if at > 0 and self.ends[at - 1] == begin:
            at -= 1
            begin = self.begins[at]
            del self.begins[at], self.ends[at]
        if at < len(self.begins) and self.begins[at] == end:
            end = self.ends[at]
            del self.begins[at], self.ends[at]
        self.begins.insert(at, begin)
        self.ends.insert(at, end)
