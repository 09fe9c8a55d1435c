"""How far apart rows of padded copies begin, so that they spread over the sets of a cache."""

from math import gcd

from isamap.hw.accelerator import LINE, Accelerator

ALIASED = 4
"""Lines: rows whose distance and the cache's way have so many in common fall into few sets."""

PAGE = 4096
"""Elements, of a byte or more: rows that are as far apart lie in pages of their own; further apart
they only take more memory."""


def furthest(length: int) -> int:
    """Return the largest pitch that rows of ``length`` elements have any use for: one that moves
    each of them anywhere in a page, or to the next power of two."""
    return 2 * length + PAGE


def spread_rows(length: int, width: int, accelerator: Accelerator) -> int:
    """Return a pitch for rows of ``length`` elements of ``width`` bytes; 0 if they may follow
    each other.

    Rows that fall into few sets of the first cache begin one line further apart: an odd number of
    lines visits all sets.
    """
    cache = next((s for s in accelerator.storages if s.kind == "cache" and s.size), None)
    if cache is None or not cache.size or not cache.ways:
        return 0
    way, line = cache.size // cache.ways, cache.line or LINE
    if gcd(length * width, way) < ALIASED * line or line % width:
        return 0
    return length + line // width
