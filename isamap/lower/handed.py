"""What threads hand over to each other.

What one core has written comes to others through the last cache, even where it fits nearer ones.
Nothing computes meanwhile: on a Xeon a core reads what the other one has written, and writes what
that one has read, at the rate of the third cache (``benchmarks/threads.py``).  A 3 x 3 convolution
of 28 x 28 x 128 in bf16, two threads, took 90 us where each read the padded rows of both, 60 us
where each read its own.
"""

from collections.abc import Iterable, Mapping
from math import prod

from isamap.lower.reuse import HELD, Reuse
from isamap.lower.traffic import Site, Traffic, touched_elements

ALIKE = 1 / 4
"""Threads' parts of an array are taken for the same that differ by less than this part of one: in
windows each reaches a little into the next.
"""

Team = Mapping[str, float]
"""The loops that threads share, by counter, and how many iterations each has for all of them."""


def handed(
    reuse: Reuse, copied: Iterable[Site], team: Team, threads: int, capacity: float
) -> Traffic:
    """Return what comes to a thread's core from others.

    ``reuse`` has the places that instructions touch, ``copied`` are those of copies; looked at are
    the arrays that all threads have in common.  A core whose own caches have so much ``capacity``
    gets what its thread reads but has not written, and the lines that it writes and others read.
    What does not stay in the caches of those that write it comes from beyond them.
    """
    arrays: dict[str, list[Site]] = {}
    for site in (*copied, *reuse.sites):
        size = reuse.sizes[site.array] * reuse.bytes[site.array]
        if site.array in reuse.common and size / threads <= HELD * capacity:
            arrays.setdefault(site.array, []).append(site)
    found = Traffic()
    for sites in arrays.values():
        taken: set[int] = set()
        writers = [site for site in sites if site.written]
        others = {id(s): [w for w in writers if not _is_own(w, s, team)] for s in sites}
        for readers in _by_nest(s for s in sites if not s.written and others[id(s)]):
            wrote = [site for reader in readers for site in others[id(reader)]]
            taken |= {id(site) for site in wrote}
            depth = max(_around_both(site, readers[0]) for site in wrote)
            times = prod(count for _, count, _ in readers[0].loops[:depth])
            elements = touched_elements(readers, depth) * times * (threads - 1) / threads
            asked = sum(site.footprint(0) for site in readers)
            for site in readers if asked else ():  # loops that are never entered ask for nothing
                found += reuse.walked(site, elements * site.footprint(0) / asked)
        for site in sites:
            if id(site) in taken:
                found += reuse.walked(site, site.footprint(0))
    return found


def _by_nest(sites: Iterable[Site]) -> Iterable[list[Site]]:
    """Return sites by the loops around them."""
    nests: dict[tuple[str, ...], list[Site]] = {}
    for site in sites:
        nests.setdefault(tuple(counter for counter, _, _ in site.loops), []).append(site)
    return nests.values()


def _is_own(writer: Site, reader: Site, team: Team) -> bool:
    """Return whether a thread reads what it has written itself."""
    (wrote, written), (reads, read) = _part(writer, team), _part(reader, team)
    if wrote == reads:
        return True
    if wrote is None or reads is None:
        return False
    return abs(written - read) <= ALIKE * min(written, read)


def _part(site: Site, team: Team) -> tuple[str | None, float]:
    """Return the loop around a site that threads share, None if one thread is alone with it, and
    over how many elements it walks."""
    for counter, _, stride in site.loops:
        if counter in team:
            return counter, abs(stride) * team[counter]
    return None, 0.0


def _around_both(one: Site, other: Site) -> int:
    """Return how many loops are around both sites."""
    depth = 0
    for (a, _, _), (b, _, _) in zip(one.loops, other.loops, strict=False):
        if a != b:
            break
        depth += 1
    return depth
