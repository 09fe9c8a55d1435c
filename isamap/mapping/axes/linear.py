"""Exact linear algebra over the rationals for the few short integer vectors of a matching."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd

Vector = tuple[int, ...]


def primitive(vector: Vector) -> Vector:
    """Return the vector divided by the greatest common divisor, its first entry positive."""
    divisor = gcd(*vector)
    if divisor == 0:
        return vector
    lead = next(c for c in vector if c)
    return tuple(c // (divisor if lead > 0 else -divisor) for c in vector)


def echelon(vectors: Iterable[Vector]) -> tuple[Vector, ...]:
    """Return an echelon basis of the rational span of ``vectors``."""
    basis: list[Vector] = []
    for vector in vectors:
        rest = _reduce(vector, basis)
        if any(rest):
            basis.append(primitive(rest))
    return tuple(basis)


def rank(vectors: Iterable[Vector]) -> int:
    """Return the dimension of the rational span of ``vectors``."""
    return len(echelon(vectors))


@lru_cache(maxsize=100_000)
def _echelon_of(vectors: frozenset[Vector]) -> tuple[Vector, ...]:
    return echelon(sorted(vectors))


def in_span(vectors: Iterable[Vector], target: Vector) -> bool:
    """Return whether ``target`` is a rational combination of ``vectors``."""
    return not any(_reduce(target, _echelon_of(frozenset(vectors))))


def dependencies(vectors: Sequence[Vector]) -> tuple[Vector, ...]:
    """Return a basis of the vectors ``a`` with ``sum a[s] * vectors[s] == 0``."""
    if not vectors:
        return ()
    width, count = len(vectors[0]), len(vectors)
    # Carry the identity beside the vectors; where the left part vanishes the right is a dependency.
    tagged = [(*vector, *(int(s == t) for t in range(count))) for s, vector in enumerate(vectors)]
    basis: list[Vector] = []
    found: list[Vector] = []
    for row in tagged:
        rest = _reduce(row, basis)
        if any(rest[:width]):
            basis.append(rest)
        else:
            found.append(rest[width:])
    return tuple(found)


def _reduce(vector: Vector, basis: Sequence[Vector]) -> Vector:
    """Eliminate the leading entries of ``basis`` from a multiple of ``vector``."""
    for row in basis:
        pivot = next(i for i, c in enumerate(row) if c)
        if vector[pivot]:
            a, b = row[pivot], vector[pivot]
            vector = tuple(a * v - b * r for v, r in zip(vector, row, strict=True))
    return vector
