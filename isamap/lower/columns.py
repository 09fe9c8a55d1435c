"""Results that are stored line by line into few sets of the first cache.

A line that is stored to makes another one leave its set, changed; the next line of that set has to
wait for it.  On a Xeon lines stored down a column take 3.6 cycles each where they fall into all 64
sets of the first cache, as those of a row do, 6.4 where they fall into 4 and 9.2 where into 1
(``benchmarks/columns.py``).  Lines that are read take the same everywhere.
"""

from collections import Counter
from functools import lru_cache
from math import gcd

from isamap.hw.accelerator import LINE, Accelerator, Storage
from isamap.lower.traffic import Site

FOLLOWING = 8
"""Lines in a row that are looked at, as a multiple of the ways of the cache: those of more sets
than these fill wait for little, and computing between them hides it.
"""

LEAVING = 7.5
"""Cycles in which a line leaves for the next one; lines of other sets come meanwhile."""

BESIDE = 0.4
"""What overlaps anyway, in sets: where all lie in 1, 2, 4, 8 and 16 sets, a line took 5.5, 3.7,
2.5, 1.2 and 0.5 cycles longer.
"""


def first_cache(accelerator: Accelerator) -> Storage | None:
    """Return the cache next to the registers, None if it is not said how many ways that has."""
    caches = [s for s in accelerator.storages if s.kind == "cache"]
    return caches[0] if caches and caches[0].size and caches[0].ways else None


def leaving(site: Site, size: int, cache: Storage) -> float:
    """Return the cycles that each line takes longer which a site stores to.

    Its elements have ``size`` bytes.  That is none where the cache holds all lines that follow each
    other.
    """
    assert cache.size is not None
    assert cache.ways is not None
    line = cache.line or LINE
    sets = max(1, cache.size // line // cache.ways)
    wanted = FOLLOWING * cache.ways
    lines = _lines_at_once(site, size, line)
    for _, count, stride in reversed(site.loops):
        if len(lines) >= wanted:
            break
        if stride and count > 1:
            step = max(1, line // (abs(stride) * size))  # iterations that stay in a line
            passes = range(0, min(int(count), step * (wanted // len(lines) + 1)), step)
            lines = [first + n * stride * size // line for n in passes for first in lines]
    stored = set(lines[:wanted])
    used = len({number % sets for number in stored})
    return LEAVING / (used + BESIDE) if len(stored) > cache.ways * used else 0.0


def crowded(site: Site, size: int, depth: int, cache: Storage) -> float:
    """Return how many times its own lines of a cache a site takes in the loops from ``depth``
    inwards: where these fall into few sets, others cannot have the rest of those.

    Its elements have ``size`` bytes; the array begins where a line does.
    """
    assert cache.size is not None
    assert cache.ways is not None
    way = cache.size // cache.ways
    moves = [(int(n), abs(stride) * size) for _, n, stride in site.loops[depth:] if stride]
    moves = [(count, step) for count, step in moves if count > 1]
    if not moves:
        return beside(site, size, cache)
    if not any(step >= site.run(depth) * size for _, step in moves):
        return 1.0
    starts = tuple(int(place) * size % way for place in site.places())
    lines = _touched(site.stretch * size, starts, tuple(moves), cache.line or LINE, way)
    return way / (lines * (cache.line or LINE))


def beside(site: Site, size: int, cache: Storage) -> float:
    """Return how many times its own lines of a cache a site takes in a single iteration.

    Iterations that follow touch the same lines again, or those next to them, which hardware has
    fetched ahead: they stay as long as no set has more of them than it holds.  Of more, each is
    gone before its turn comes.
    """
    assert cache.size is not None
    assert cache.ways is not None
    line = cache.line or LINE
    lines = _lines_at_once(site, size, line)
    if len(lines) <= cache.ways:
        return 1.0
    number = max(1, cache.size // line // cache.ways)
    sets = Counter(at % number for at in lines)
    return number / len(sets) if max(sets.values()) > cache.ways else 1.0


def _lines_at_once(site: Site, size: int, line: int) -> list[int]:
    """Return the lines that a site touches in one iteration of all loops, in order, each once."""
    each = range(max(1, round(site.stretch * size / line)))
    places = sorted(site.places())
    return list(dict.fromkeys(int(place) * size // line + n for place in places for n in each))


@lru_cache(maxsize=4096)
def _touched(
    length: int, starts: tuple[int, ...], moves: tuple[tuple[int, int], ...], line: int, way: int
) -> int:
    """Return how many lines of a way are touched by stretches of some bytes, each in loops."""
    each = (1 << min(way, max(1, length))) - 1
    touched = 0
    for start in starts:
        touched |= _moved(each, start, way)
    for count, step in moves:
        touched = _repeated(touched, step, min(count, way // gcd(way, step)), way)
    return _lines(touched, line, way)


def _moved(touched: int, step: int, way: int) -> int:
    """Return bytes of a way, one bit each, so many further on, around its end."""
    step %= way
    return (touched << step | touched >> (way - step)) & ((1 << way) - 1)


def _repeated(touched: int, step: int, count: int, way: int) -> int:
    """Return bytes of a way and the same ``count - 1`` times, each time a step further on."""
    found, number = touched, 1
    while number < count:
        more = min(number, count - number)
        found |= _moved(found, more * step, way)
        number += more
    return found


def _lines(touched: int, line: int, way: int) -> int:
    """Return how many lines of a way have bytes that are touched."""
    each = (1 << line) - 1
    return sum(bool(touched >> start & each) for start in range(0, way, line))
