"""Which sizes tiles may have: divisors, and those that share a range out evenly.

Of all sizes with the same number of tiles, ``ceil(n / k)`` is the smallest: it needs the least
room, and no other one moves less.  So these, about 2 sqrt(n) of them, are all that a dimension
needs.
"""

from collections.abc import Sequence
from math import isqrt, prod
from typing import TypeAlias

from isamap.model.nest import Nest

Sizes: TypeAlias = Sequence[Sequence[int]]
"""For each dimension the ranges that tiles may have, ascending; the last one holds everything."""

# Sizes of a dimension that are this much farther apart are left out first.
_FINEST = 1.1

# Of more iterations than these not all sizes are looked at, but some that are this far apart.
_MANY, _APART = 1 << 22, 1.02


def divisors(number: int) -> list[int]:
    """Return what divides a number, ascending."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def balanced(number: int) -> list[int]:
    """Return the least sizes of tiles that share a range out among any number of them."""
    found, tiles = [], 1
    while tiles <= number:
        size = -(-number // tiles)
        found.append(size)
        tiles = (number - 1) // (size - 1) + 1 if size > 1 else number + 1
    return found[::-1]


def divided(nest: Nest) -> list[list[int]]:
    """Return the sizes that divide the extents, rounded up to units."""
    pairs = zip(nest.counts, nest.steps, strict=True)
    return [[unit * size for size in divisors(count)] for count, unit in pairs]


def even(nest: Nest, most: int) -> list[list[int]]:
    """Return balanced sizes and divisors, thinned until there are at most ``most`` combinations.

    What is left out lies within a factor of one that stays, which is the same in all dimensions.
    """
    every = [_worth(count) for count in nest.counts]
    kept, ratio = every, _FINEST
    while prod(map(len, kept)) > most and max(map(len, kept)) > 2:
        kept = [_thinned(own, ratio) for own in every]
        ratio *= _FINEST
    return [[unit * n for n in own] for own, unit in zip(kept, nest.steps, strict=True)]


def _worth(number: int) -> list[int]:
    """Return balanced sizes and divisors, of a large number some of both."""
    if number <= _MANY:
        return sorted({*balanced(number), *divisors(number)})
    tiles, found = 1, {number}
    while tiles < number:
        tiles = max(tiles + 1, int(tiles * _APART))
        found.add(-(-number // tiles))
    small = [d for d in range(1, isqrt(_MANY)) if number % d == 0]
    return sorted({*found, *small, *(number // d for d in small)})


def _thinned(sizes: Sequence[int], ratio: float) -> list[int]:
    """Return sizes of which each is at least ``ratio`` times the one before, and both ends.

    Of those in between, one that divides the whole is taken, or the one with most divisors among
    the sizes: inner tiles divide it.
    """
    kept = [sizes[0]]
    while kept[-1] < sizes[-1]:
        least = kept[-1] * ratio
        near = [n for n in sizes if least <= n < least * ratio] or [
            next((n for n in sizes if n >= least), sizes[-1])
        ]
        kept.append(
            max(near, key=lambda n: (sizes[-1] % n == 0, sum(n % d == 0 for d in sizes), n))
        )
    return kept
