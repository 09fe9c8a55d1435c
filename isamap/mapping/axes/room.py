"""The room that forms need on an axis, as a function of the tile."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod

from isamap.mapping.axes.linear import Vector

Polynomial = Mapping[tuple[int, ...], int]
"""Exponents of each variable to coefficients."""


def form_extent(form: Sequence[int], tile: Sequence[int]) -> int:
    """Return how many values a form takes over a tile, holes included, common factors removed."""
    moving = [(c, t) for c, t in zip(form, tile, strict=True) if c and t > 1]
    divisor = gcd(*(c for c, _ in moving))
    return 1 + sum(abs(c) // divisor * (t - 1) for c, t in moving)


def axis_extent(forms: Iterable[Sequence[int]], tile: Sequence[int]) -> int:
    """Return the positions that forms in mixed radix take on an axis."""
    return prod(form_extent(form, tile) for form in forms)


@lru_cache(maxsize=100_000)
def never_larger(one: tuple[Vector, ...], other: tuple[Vector, ...]) -> bool:
    """Return whether the forms ``one`` take no more positions than ``other`` at any tile.

    Sound, and exact for the sums and products of forms: with every extent written as 2 + t the
    coefficients are compared (a variable of extent 1 is outer).
    """
    small, large = _polynomial(one), _polynomial(other)
    return all(small.get(m, 0) <= large.get(m, 0) for m in small.keys() | large.keys())


def _polynomial(forms: tuple[Vector, ...]) -> dict[tuple[int, ...], int]:
    if not forms:
        return {}
    size = len(forms[0])
    none = (0,) * size
    result = {none: 1}
    for form in forms:
        divisor = gcd(*form)
        scaled = [abs(c) // divisor for c in form]
        factor = {none: 1 + sum(scaled)}
        for v, c in enumerate(scaled):
            if c:
                factor[tuple(int(u == v) for u in range(size))] = c
        product: dict[tuple[int, ...], int] = {}
        for m, a in result.items():
            for n, b in factor.items():
                key = tuple(x + y for x, y in zip(m, n, strict=True))
                product[key] = product.get(key, 0) + a * b
        result = product
    return result
