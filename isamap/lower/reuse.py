"""What comes into a cache under loops: what of it is still there when it is used again."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod

from isamap.hw.accelerator import LINE
from isamap.lower.traffic import Site, Traffic, lines_of, touched_elements
from isamap.schedule.walk import unforeseen

HELD = 2 / 3
"""The part of a cache that is taken for what it holds."""

OUTSIDE = ""
"""What stands for the outermost loop of what is in none."""


class Reuse:
    """Answers what the sites of a kernel ask of a cache.

    Elements of arrays have so many ``bytes``, and arrays so many elements, ``sizes``; their ``own``
    ones are made in a call.
    """

    def __init__(
        self,
        sites: Iterable[Site],
        bytes_: Mapping[str, int],
        sizes: Mapping[str, float],
        own: AbstractSet[str],
    ) -> None:
        self.sites = tuple(sites)
        self.bytes = bytes_
        self.sizes = sizes
        self.own = own

    def through(self, capacity: float | None) -> dict[str, Traffic]:
        """Return what passes into a cache of ``capacity`` (None: into registers) for each outermost
        loop."""
        groups: dict[tuple[tuple[str, float], ...], list[Site]] = {}
        for site in self.sites:
            if not self._stays_inside(site.array, capacity):
                groups.setdefault(tuple((c, n) for c, n, _ in site.loops), []).append(site)
        beside: dict[str, list[tuple[tuple[str, float], ...]]] = {}
        for loops in groups:
            beside.setdefault(_outermost(groups[loops][0]), []).append(loops)
        amount: dict[str, Traffic] = {}
        for outermost, several in beside.items():
            alone = Traffic()
            every = [s for s in self.sites if _outermost(s) == outermost]
            for loops in several:
                alone += self._alone(len(loops), groups[loops], every, capacity)
            if outermost != OUTSIDE and len(several) > 1 and capacity is not None:
                together = self._in_rounds(every, capacity)
                alone = alone if together is None or alone.bytes <= together.bytes else together
            amount[outermost] = alone
        return amount

    def _stays_inside(self, array: str, capacity: float | None) -> bool:
        """Return whether an array is made in a call and does not leave a cache of ``capacity``."""
        if capacity is None or array not in self.own:
            return False
        return self.sizes[array] * self.bytes[array] <= HELD * capacity

    def _alone(
        self, depth: int, sites: Sequence[Site], every: Sequence[Site], capacity: float | None
    ) -> Traffic:
        """Return what sites in the same loops ask for, beside ``every`` one in the outermost.

        Of what fills more than :data:`HELD` of a cache ever more is pushed out before it is used
        again, until none of it is left where it fills all.
        """
        if capacity is None:
            return self._asked(sites, depth, stays=False, into_cache=False)
        sure, _ = self._reused(depth, sites, every, capacity * HELD)
        most, filled = self._reused(depth, sites, every, capacity)
        if sure == most:
            return self._asked(sites, *sure)
        lost = min(max((filled / capacity - HELD) / (1 - HELD), 0.0), 1.0)
        least = self._asked(sites, *most)
        return least.times(1 - lost) + self._asked(sites, *sure).times(lost)

    def _reused(
        self, depth: int, sites: Sequence[Site], every: Sequence[Site], room: float
    ) -> tuple[tuple[int, bool], float]:
        """Return the depth from which on all that ``sites`` touch fits ``room``, whether it is
        still there when the loop around comes to it again, and the bytes of which that is said.

        Other loops inside that one touch what they need meanwhile.
        """
        held = 0.0
        around = sites[0].loops
        while depth > 0:
            wanted = self._footprint(_beside_each_other(every, around[:depth]), depth - 1)
            if wanted > room:
                break
            held = wanted
            depth -= 1
        inside = _beside_each_other(every, around[:depth])
        if len(inside) == len(sites):
            return (depth, True), held
        wanted = self._footprint(inside, depth)
        return (depth, wanted <= room), max(held, wanted if wanted <= room else 0.0)

    def _footprint(self, sites: Sequence[Site], depth: int) -> float:
        """Return the bytes that sites touch in the loops from ``depth`` inwards."""
        arrays: dict[str, list[Site]] = {}
        for site in sites:
            arrays.setdefault(site.array, []).append(site)
        return sum(touched_elements(own, depth) * self.bytes[a] for a, own in arrays.items())

    def _asked(
        self, sites: Sequence[Site], depth: int, stays: bool, into_cache: bool = True
    ) -> Traffic:
        """Return what sites ask for if what the loops from ``depth`` inwards touch comes once, and
        ``stays`` there while loops around go on that do not move it."""
        arrays: dict[str, list[Site]] = {}
        for site in sites:
            arrays.setdefault(site.array, []).append(site)
        # What several of them touch is there already when the next one comes.
        once = {a: _once(own, depth) for a, own in arrays.items()}
        amount = Traffic()
        for site in sites:
            outside = [(n, stride) for _, n, stride in site.loops[:depth]]
            # The innermost of the outer loops that do not move the site leave it where it is.
            while stays and outside and not outside[-1][1]:
                outside.pop()
            trips = prod(n for n, _ in outside)
            share = once[site.array] if into_cache else 1.0
            if into_cache and site.written:
                # A line of which something else is written before or after comes and goes twice.
                share *= lines_of(site.run(depth) * self.bytes[site.array], LINE)
            amount += self._walked(site, site.footprint(depth) * trips * share)
        return amount

    def _walked(self, site: Site, elements: float) -> Traffic:
        """Return the traffic of so many elements, as a site walks through them."""
        size = self.bytes[site.array]
        length, beside = site.walks()
        return Traffic(elements * size, elements * size * unforeseen(length * size, beside))

    def _in_rounds(self, sites: Sequence[Site], capacity: float) -> Traffic | None:
        """Return what loops inside one outermost loop ask for if a round's data stay.

        What several of them touch in a round comes once, as the first one walks through it; None
        if a round does not fit.
        """
        touched: dict[str, list[Site]] = {}
        for site in sites:
            touched.setdefault(site.array, []).append(site)
        held, amount = 0.0, Traffic()
        for array, own in touched.items():
            elements = touched_elements(own, 1)
            held += elements * self.bytes[array]
            moves = any(site.loops[0][2] for site in own)
            trips = own[0].loops[0][1] if moves else 1
            amount += self._walked(own[0], elements * trips)
        return amount if held <= capacity * HELD else None


def _beside_each_other(
    sites: Sequence[Site], loops: Sequence[tuple[str, float, int]]
) -> list[Site]:
    """Return the sites that are inside all of these loops."""
    around = [(counter, count) for counter, count, _ in loops]
    return [s for s in sites if [(c, n) for c, n, _ in s.loops[: len(around)]] == around]


def _outermost(site: Site) -> str:
    """Return the counter of the outermost loop around a site."""
    return site.loops[0][0] if site.loops else OUTSIDE


def _once(sites: Sequence[Site], depth: int) -> float:
    """Return the part of the elements that sites ask for in the loops from ``depth`` inwards which
    is left where each comes once."""
    asked = sum(site.footprint(depth) for site in sites)
    return touched_elements(sites, depth) / asked if asked else 1.0
