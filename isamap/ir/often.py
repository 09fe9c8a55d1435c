"""How often conditions hold, counted over the iterations of some loops."""

from collections.abc import Sequence
from math import prod

import numpy as np

from isamap.ir.index import Index

Loops = Sequence[tuple[str, float]]
"""Counters and how many iterations each has, outermost first."""

MOST = 1 << 20
"""Iterations that are counted one by one."""


class Often:
    """Tells the share of iterations in which conditions hold, each asked for once."""

    def __init__(self) -> None:
        self._known: dict[
            tuple[tuple[Index, ...], tuple[tuple[str, float], ...]], float | None
        ] = {}

    def share(self, conditions: tuple[Index, ...], loops: Loops, unknown: float) -> float:
        """Return the share of the iterations in which no condition is negative, 0 to 1.

        Conditions that share no counter are taken one by one: loops are boxes.  What cannot be
        counted holds in a share that is ``unknown``.
        """
        left = list(dict.fromkeys(conditions))
        share = 1.0
        while left:
            group, names = [left.pop()], set[str]()
            while names != (names := names.union(*(c.names for c in group))):
                group += [c for c in left if c.names & names]
                left = [c for c in left if not c.names & names]
            own = self._counted(tuple(group), tuple(one for one in loops if one[0] in names))
            share *= unknown if own is None else own
        return share

    def _counted(
        self, conditions: tuple[Index, ...], loops: tuple[tuple[str, float], ...]
    ) -> float | None:
        key = (conditions, loops)
        if key not in self._known:
            self._known[key] = _count(conditions, loops)
        return self._known[key]


def _count(conditions: tuple[Index, ...], loops: tuple[tuple[str, float], ...]) -> float | None:
    names = [name for name, _ in loops]
    trips = [max(1, int(count)) for _, count in loops]
    used = frozenset().union(*(c.names for c in conditions))
    if used - set(names) or any(c.reads for c in conditions) or prod(trips) > MOST:
        return None
    held = np.ones(trips, bool)
    grid = dict(zip(names, np.ogrid[tuple(slice(count) for count in trips)], strict=True))
    for condition in conditions:
        held &= condition.evaluate(grid) >= 0
    return float(held.mean())
