"""What comes into a cache under loops: what of it is still there when it is used again."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise
from math import prod

from isamap.hw.accelerator import LINE, Storage
from isamap.lower.columns import beside, crowded, leaving
from isamap.lower.traffic import Coming, Site, Traffic, lines_of, touched_elements
from isamap.schedule.walk import unforeseen

HELD = 2 / 3
"""The part of a cache that is taken for what it holds."""

DEPTHS = 2
"""Depths of loops that are looked at of which what they touch fills more than :data:`HELD`."""

TINY = 1e-9
"""By how much more than nothing room is less."""

LOOKAHEAD = 400.0
"""Cycles before data are used in which processors begin to bring them, with what they have begun to
do and with what they fetch ahead.
"""

OUTSIDE = ""
"""What stands for the outermost loop of what is in none."""


def pushed_out(filled: float) -> float:
    """Return the part of data that is pushed out before it is read again, of which a cache is
    filled so much: none up to :data:`HELD`, all where they fill it."""
    return min(max((filled - HELD) / (1 - HELD), 0.0), 1.0)


class Reuse:
    """Answers what the sites of a kernel ask of a cache, and when.

    Elements of arrays have so many ``bytes``, and arrays so many elements, ``sizes``; their ``own``
    ones are made in a call.  One iteration of a loop takes so many cycles to compute, ``passes``.
    Lines of arrays that are ``asked`` for ahead are so in iterations of these loops; hardware
    that is ``regional`` takes walks that meet for one.  Threads have these arrays in ``common``.
    ``first`` is the first cache, if its sets are known.  So many elements of its own arrays are
    ``made`` in all of a call, each as often as it is.
    """

    def __init__(
        self,
        sites: Iterable[Site],
        bytes_: Mapping[str, int],
        sizes: Mapping[str, float],
        own: AbstractSet[str],
        passes: Mapping[str, float],
        asked: Mapping[str, AbstractSet[str]],
        regional: bool,
        common: AbstractSet[str] = frozenset(),
        first: Storage | None = None,
        made: Mapping[str, float] | None = None,
    ) -> None:
        self.sites = tuple(sites)
        self.made = made or {}
        self.apart = _apart(self.sites, bytes_)
        self.bytes = bytes_
        self.sizes = sizes
        self.own = own
        self.passes = passes
        self.asked = asked
        self.regional = regional
        self.common = common
        self.first = first
        self._left: dict[int, float] = {}
        self._paths = {
            id(site): tuple((counter, count) for counter, count, _ in site.loops)
            for site in (*self.sites, *self.apart)
        }
        self._taken: dict[tuple[int | bool, ...], float] = {}
        self.walks = _walks(self.sites)

    def through(self, capacity: float | None) -> dict[str, Coming]:
        """Return what passes into a cache of ``capacity`` (None: into registers) for each outermost
        loop."""
        groups: dict[tuple[tuple[str, float], ...], list[Site]] = {}
        sites = self.sites if capacity is None else self.apart
        is_first = self.first is not None and capacity == self.first.size
        passing = [site for site in sites if site.past] if is_first else []
        sites = tuple(site for site in sites if not site.past) if passing else sites
        for site in sites:
            groups.setdefault(self._paths[id(site)], []).append(site)
        beside: dict[str, list[tuple[tuple[str, float], ...]]] = {}
        for loops in groups:
            beside.setdefault(_outermost(groups[loops][0]), []).append(loops)
        amount: dict[str, Coming] = {}
        for outermost, several in beside.items():
            alone = Coming()
            every = [s for s in sites if _outermost(s) == outermost]
            for loops in several:
                alone += self._alone(len(loops), groups[loops], every, capacity)
            if outermost != OUTSIDE and len(several) > 1 and capacity is not None:
                together = self._in_rounds(every, capacity)
                fewer = together is not None and together.whole.bytes < alone.whole.bytes
                alone = together if together is not None and fewer else alone
            amount[outermost] = alone
        for site in passing:
            # They leave nothing in it, and come again whenever they are asked for.
            again = self._asked((site,), len(site.loops), stays=False, capacity=None)
            amount[_outermost(site)] = amount.get(_outermost(site), Coming()) + again
        return amount

    def _made(self, sites: Sequence[Site], capacity: float) -> float:
        """Return how many elements that an array's sites touch are in a cache of ``capacity`` when
        they are touched first, as they were made in the call."""
        array = sites[0].array
        if array not in self.own or self.sizes[array] * self.bytes[array] > HELD * capacity:
            return 0.0
        return max(self.made.get(array, 0.0), touched_elements(sites, 0))

    def _alone(
        self, depth: int, sites: Sequence[Site], every: Sequence[Site], capacity: float | None
    ) -> Coming:
        """Return what sites in the same loops ask for, beside ``every`` one in the outermost.

        In the first cache lines of few sets may push each other out: each array stays there or not.
        """
        if capacity is None:
            return self._asked(sites, depth, stays=False, capacity=None)
        if self.first is None or capacity != self.first.size:
            return self._kept(depth, sites, every, capacity, sites, None)
        amount = Coming()
        for array in dict.fromkeys(site.array for site in sites):
            own = [site for site in sites if site.array == array]
            amount += self._kept(depth, sites, every, capacity, own, array)
        return amount

    def _kept(
        self,
        depth: int,
        sites: Sequence[Site],
        every: Sequence[Site],
        capacity: float,
        own: Sequence[Site],
        crowding: str | None,
    ) -> Coming:
        """Return what ``own`` ones of ``sites`` ask for.

        Of what fills more than :data:`HELD` of a cache ever more is pushed out before it is used
        again, until none of it is left where it fills all.
        """
        sure, _ = self._reused(depth, sites, every, capacity * HELD, crowding)
        kept = self._asked(own, *sure, capacity)
        found, room = kept, capacity
        for _ in range(DEPTHS):
            most, filled = self._reused(depth, sites, every, room, crowding)
            if most == sure or filled <= capacity * HELD:
                return found
            lost = pushed_out(filled / capacity)
            least = self._asked(own, *most, capacity)
            mixed = least.times(1 - lost) + kept.times(lost)
            found = mixed if mixed.whole.bytes < found.whole.bytes else found
            room = filled * (1 - TINY)  # what takes less: inner loops alone
        return found

    def _reused(
        self,
        depth: int,
        sites: Sequence[Site],
        every: Sequence[Site],
        room: float,
        crowding: str | None,
    ) -> tuple[tuple[int, bool], float]:
        """Return the depth from which on all that ``sites`` touch fits ``room``, whether it is
        still there when the loop around comes to it again, and the bytes of which that is said.

        Other loops inside that one touch what they need meanwhile.  In the first cache it is said
        of the array that is ``crowding`` itself.
        """
        held = 0.0
        around = self._paths[id(sites[0])]
        while depth > 0:
            beside = self._inside(every, around[:depth])
            wanted = self._footprint(beside, depth - 1, crowding)
            if wanted > room:
                break
            held = wanted
            depth -= 1
        inside = self._inside(every, around[:depth])
        if len(inside) == len(sites) and (crowding is None or held > 0):
            return (depth, True), held
        # In the first cache, lines of few sets may push each other out within an iteration.
        wanted = self._footprint(inside, depth, crowding)
        return (depth, wanted <= room), max(held, wanted if wanted <= room else 0.0)

    def _footprint(self, sites: Sequence[Site], depth: int, crowding: str | None) -> float:
        """Return the bytes of a cache that sites take in the loops from ``depth`` inwards.

        Those are whole lines; of a ``crowding`` array, which is to stay in the first cache, those
        of all sets where its own are few.  Others only take room from what shares these sets.
        """
        arrays: dict[str, list[Site]] = {}
        for site in sites:
            arrays.setdefault(site.array, []).append(site)
        total = 0.0
        for array, own in arrays.items():
            stays = array == crowding
            key = (*map(id, own), depth, stays)  # asked for again beside other arrays
            if key not in self._taken:
                self._taken[key] = self._lines(own, depth, stays)
            total += self._taken[key]
        return total

    def _lines(self, sites: Sequence[Site], depth: int, stays: bool) -> float:
        """Return the bytes of a cache that one array's sites take, as :meth:`_footprint` counts
        them; those of an array that ``stays`` in the first cache.
        """
        size = self.bytes[sites[0].array]
        factors = []
        for site in sites:
            factor = lines_of(site.run(depth) * size, LINE)
            if stays and self.first is not None:
                factor *= crowded(site, size, depth, self.first)
            factors.append(factor)
        return touched_elements(sites, depth) * size * min(factors)

    def _inside(self, sites: Sequence[Site], loops: tuple[tuple[str, float], ...]) -> list[Site]:
        """Return the sites that are inside all of these loops."""
        return [s for s in sites if self._paths[id(s)][: len(loops)] == loops]

    def _asked(
        self, sites: Sequence[Site], depth: int, stays: bool, capacity: float | None
    ) -> Coming:
        """Return what sites ask for if what the loops from ``depth`` inwards touch comes once, and
        ``stays`` there while loops around go on that do not move it.

        It comes into a cache of ``capacity``, into registers without.
        """
        arrays: dict[str, list[Site]] = {}
        for site in sites:
            arrays.setdefault(site.array, []).append(site)
        # What several of them touch is there already when the next one comes.
        outside = {id(site): _coming_again(site, depth, stays) for site in sites}
        trips = {id(site): prod(n for n, _ in outside[id(site)]) for site in sites}
        shares = dict.fromkeys(arrays, 1.0)
        if capacity is not None:
            for array, own in arrays.items():
                once = _once(own, depth)
                asked = once * sum(site.footprint(depth) * trips[id(site)] for site in own)
                made = self._made(own, capacity)
                shares[array] = once * (max(0.0, 1 - made / asked) if asked else 1.0)
        amount = Coming()
        for site in sites:
            share = shares[site.array]
            if capacity is not None:
                share *= self._fetched(site, capacity)
                # A line of which something else is touched before or after comes twice, unless
                # the loop around goes on with what is left of it.
                around = len(outside[id(site)])
                goes_on = depth - 1 if stays and around == depth and depth else depth
                share *= lines_of(site.run(goes_on) * self.bytes[site.array], LINE)
            walked = self.walked(site, site.footprint(depth) * trips[id(site)] * share)
            part = self._during(site, len(outside[id(site)])) if capacity is not None else 1.0
            amount += Coming({part: walked})
        return amount

    def _during(self, site: Site, depth: int) -> float:
        """Return the part of the time of the loops from ``depth`` inwards in which what they touch
        comes: it is there already in all passes but the first of a loop that does not move it.
        """
        if site.written:
            return 1.0  # what is stored waits aside until there is room
        part = 1.0
        for counter, count, stride in site.loops[depth:]:
            moves = stride or counter in self.asked.get(site.array, ())
            if count > 1 and not moves:
                part *= self._begun(1 / count, self.passes.get(counter, 0.0) * count)
        return part

    def _share(self, site: Site) -> float:
        """Return the part of an iteration of the outermost loop that a site's own loops take."""
        part = 1.0
        for (around, _, _), (counter, count, _) in pairwise(site.loops):
            whole = self.passes.get(around, 0.0)
            if whole:
                part *= self._begun(self.passes.get(counter, 0.0) * count / whole, whole)
        return part

    def _begun(self, part: float, cycles: float) -> float:
        """Return a part of so many cycles that begins as much earlier as processors look ahead."""
        return min(1.0, part + LOOKAHEAD / cycles) if cycles else 1.0

    def walked(self, site: Site, elements: float) -> Traffic:
        """Return the traffic of so many elements, as a site walks through them."""
        size = self.bytes[site.array]
        length, beside = self.walks.get(id(site), site).walks(self.regional)
        moved = elements * size
        written = moved if site.written else 0.0
        waits = written / LINE * self._leaving(site) if written else 0.0
        return Traffic(moved, moved * unforeseen(length * size, beside), written, waits)

    def _fetched(self, site: Site, capacity: float | None) -> float:
        """Return how often each line comes that a site reads: twice where others push it out that
        are fetched ahead with it.

        Hardware that is regional fetches ahead into the second cache, from which lines come when
        they are read: on a Xeon lines of rows 2048 and 2112 bytes apart take the same
        (``benchmarks/rows.py``).
        """
        if self.first is None or capacity != self.first.size or site.written or self.regional:
            return 1.0
        return 2.0 if beside(site, self.bytes[site.array], self.first) > 1.0 else 1.0

    def _leaving(self, site: Site) -> float:
        """Return the cycles for which each line that a site stores to waits for others to leave."""
        if self.first is None:
            return 0.0
        if id(site) not in self._left:
            self._left[id(site)] = leaving(site, self.bytes[site.array], self.first)
        return self._left[id(site)]

    def _in_rounds(self, sites: Sequence[Site], capacity: float) -> Coming | None:
        """Return what loops inside one outermost loop ask for if a round's data stay.

        What several of them touch in a round comes once, as the first one walks through it; None
        if a round does not fit.
        """
        touched: dict[str, list[Site]] = {}
        for site in sites:
            touched.setdefault(site.array, []).append(site)
        held, amount = 0.0, Coming()
        for array, own in touched.items():
            elements = touched_elements(own, 1)
            held += elements * self.bytes[array]
            moves = any(site.loops[0][2] for site in own)
            trips = own[0].loops[0][1] if moves else 1
            amount += Coming({self._first(own): self.walked(own[0], elements * trips)})
        return amount if held <= capacity * HELD else None

    def _first(self, sites: Sequence[Site]) -> float:
        """Return the part of an iteration of the outermost loop in which one array's sites touch
        what none has touched before."""
        if sites[0].written:
            return 1.0
        known = 0.0
        parts: dict[tuple[str, ...], float] = {}
        for n, site in enumerate(sites):
            touched = touched_elements(sites[: n + 1], 1)
            if touched > known:
                path = tuple(counter for counter, _, _ in site.loops)
                parts[path] = max(parts.get(path, 0.0), self._share(site) * self._during(site, 1))
            known = touched
        return min(1.0, sum(parts.values()))


def _apart(sites: Sequence[Site], bytes_: Mapping[str, int]) -> tuple[Site, ...]:
    """Return the sites but for those that touch, with the lines beside, only what another one does
    that moves with them."""
    moving: dict[object, list[Site]] = {}
    for site in sites:
        moving.setdefault((site.array, site.loops, site.written, site.past), []).append(site)
    left: set[int] = set()
    for kin in moving.values():
        kin.sort(key=lambda site: len(site.offsets) * site.elements, reverse=True)
        for n, site in enumerate(kin[1:], 1):
            near = LINE // bytes_[site.array]
            if any(_lies_in(site, other, near) for other in kin[:n] if id(other) not in left):
                left.add(id(site))
    return tuple(site for site in sites if id(site) not in left)


def _lies_in(site: Site, other: Site, near: int) -> bool:
    """Return whether all stretches of a site lie in those of another one or so near to one."""
    starts = sorted(other.places())
    for place in site.places():
        at = bisect_right(starts, place + near)
        if not at or place + site.stretch > starts[at - 1] + other.stretch + near:
            return False
    return True


def _walks(sites: Iterable[Site]) -> dict[int, Site]:
    """Return for each site the one by which it walks: loops in a row that each go on where the one
    before ends walk like one."""
    rows: dict[object, list[Site]] = {}
    for site in sites:
        own = (site.array, site.loops[:-1], site.loops[-1:] and site.loops[-1][2], site.elements)
        rows.setdefault((*own, site.span, len(site.offsets), site.written), []).append(site)
    found: dict[int, Site] = {}
    for row in rows.values():
        row.sort(key=lambda site: min(site.offsets))
        chains: list[list[Site]] = []
        end: float | None = None
        for site in row:
            if end != min(site.offsets) or not site.loops:
                chains.append([])
            chains[-1].append(site)
            end = min(site.offsets) + prod(site.loops[-1][1:]) if site.loops else None
        for chain in chains:
            whole = chain[0]
            if len(chain) > 1:
                counter, _, stride = whole.loops[-1]
                count = sum(site.loops[-1][1] for site in chain)
                whole = replace(whole, loops=(*whole.loops[:-1], (counter, count, stride)))
            found |= {id(site): whole for site in chain}
    return found


def _outermost(site: Site) -> str:
    """Return the counter of the outermost loop around a site."""
    return site.loops[0][0] if site.loops else OUTSIDE


def _coming_again(site: Site, depth: int, stays: bool) -> list[tuple[float, int]]:
    """Return the counts and strides of the loops outside ``depth`` in which a site's elements come
    again: the innermost ones that do not move it leave them where they are if they ``stay``."""
    outside = [(n, stride) for _, n, stride in site.loops[:depth]]
    while stays and outside and not outside[-1][1]:
        outside.pop()
    return outside


def _once(sites: Sequence[Site], depth: int) -> float:
    """Return the part of the elements that sites ask for in the loops from ``depth`` inwards which
    is left where each comes once."""
    asked = sum(site.footprint(depth) for site in sites)
    return touched_elements(sites, depth) / asked if asked else 1.0
