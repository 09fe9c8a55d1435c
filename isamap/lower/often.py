"""How often conditions of guards hold, counted over the loops around them."""

from collections.abc import Sequence
from itertools import product
from math import prod

from isamap.ir.index import Index

Loops = Sequence[tuple[str, float]]
"""Counters and how many iterations each has, outermost first."""

MOST = 1 << 12
"""Iterations that are counted one by one; of more, conditions are taken to hold in half."""

UNKNOWN = 0.5
"""How often what is not counted holds."""


class Often:
    """Tells the share of iterations in which conditions hold, each asked for once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Index, ...], tuple[tuple[str, float], ...]], float] = {}

    def share(self, conditions: tuple[Index, ...], loops: Loops) -> float:
        """Return the share of the iterations in which no condition is negative, 0 to 1.

        Conditions that share no counter are taken one by one: loops are boxes.
        """
        left = list(dict.fromkeys(conditions))
        share = 1.0
        while left:
            group, names = [left.pop()], set[str]()
            while names != (names := names.union(*(c.names for c in group))):
                group += [c for c in left if c.names & names]
                left = [c for c in left if not c.names & names]
            share *= self._counted(tuple(group), tuple(one for one in loops if one[0] in names))
        return share

    def _counted(
        self, conditions: tuple[Index, ...], loops: tuple[tuple[str, float], ...]
    ) -> float:
        key = (conditions, loops)
        if key not in self._known:
            self._known[key] = _count(conditions, loops)
        return self._known[key]


def _count(conditions: tuple[Index, ...], loops: tuple[tuple[str, float], ...]) -> float:
    names = [name for name, _ in loops]
    trips = [max(1, int(count)) for _, count in loops]
    used = frozenset().union(*(c.names for c in conditions))
    if used - set(names) or any(c.reads for c in conditions) or prod(trips) > MOST:
        return UNKNOWN
    held = 0
    for point in product(*map(range, trips)):
        values = dict(zip(names, point, strict=True))
        held += all(c.evaluate(values) >= 0 for c in conditions)
    return held / prod(trips)
