"""Factors of the digits that step together on one level: those that are worth a try."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import TypeAlias

from isamap.mapping.axes.linear import Vector, dependencies, primitive
from isamap.mapping.axes.seen import Seen
from isamap.mapping.laws.places import Register
from isamap.mapping.laws.problem import Local

Placed: TypeAlias = frozenset[tuple[int, int]]
"""(form, axis) pairs."""

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""(axis, form) pairs."""


def factors(local: Local, placed: Placed, level: Pairs) -> tuple[Vector, ...]:
    """Return factors for the digits of a level that are worth a try, the first one positive.

    Worth a try are those with which a sum that some operand sees becomes one of its rows, or the
    position at one place of an operand one of the rows there.
    """
    if len(level) == 1:
        return ((1,),)
    inner = [any(local.forms[f][v] for f, _ in placed) for v in range(local.size)]
    choices: list[dict[int, None]] = [{1: None} for _ in level]
    for own, rows in zip(local.seen, local.rows, strict=True):
        for r in rows:
            cut = tuple(c if keep else 0 for c, keep in zip(r, inner, strict=True))
            for solution in _solutions(local, level, own, cut):
                for choice, factor in zip(choices, solution, strict=True):
                    if factor:
                        choice.setdefault(factor)
                        choice.setdefault(-factor)
    for register in local.registers:
        for choice, (axis, form) in zip(choices, level, strict=True):
            for factor in _own_factors(local, register, axis, form):
                choice.setdefault(factor)
                choice.setdefault(-factor)
    found: dict[Vector, None] = {}
    for factors in product(*choices):
        reduced = primitive(factors)
        found.setdefault(reduced)
    return tuple(found)


def _own_factors(local: Local, register: Register, axis: int, form: int) -> Iterator[int]:
    """Yield factors with which a digit alone is a row of a register at some place."""
    vector = local.forms[form]
    lead = next(v for v, c in enumerate(vector) if c)
    for place in register.places:
        weights = [own[axis] for own, _ in place.dims if own[axis]]
        for r in place.rows:
            factor = r[lead] // vector[lead]
            cut = tuple(c if vector[v] else 0 for v, c in enumerate(r))
            if factor and cut == tuple(factor * c for c in vector):
                yield from (factor // weight for weight in weights if factor % weight == 0)


def scaled(local: Local, placed: Placed, level: Pairs) -> tuple[Vector, ...]:
    """Return factors for digits that step with the constants of places.

    One step of the constants is some steps in the kernel; digits whose sum is a multiple of a row
    must be as many, so that here the factors' scale matters.
    """
    inner = [any(local.forms[f][v] for f, _ in placed) for v in range(local.size)]
    found: dict[Vector, None] = {(1,) * len(level): None, (-1,) * len(level): None}
    for register in local.registers:
        for one, other in combinations(register.places, 2):
            for (weights, own), (_, its) in zip(one.dims, other.dims, strict=True):
                for n, rows in enumerate(one.rows):
                    far = one.constants[n] - other.constants[n]
                    cut = tuple(c if keep else 0 for c, keep in zip(rows, inner, strict=True))
                    if own == its or not far or not any(cut):
                        continue
                    found |= dict.fromkeys(_steps(local, level, weights, cut, far, own - its))
    return tuple(found)


def _steps(
    local: Local, level: Pairs, weights: Vector, wanted: Vector, far: int, near: int
) -> Iterator[Vector]:
    """Yield factors with which ``far`` times a sum of digits is ``near`` times a row."""
    used = [n for n, (a, _) in enumerate(level) if weights[a]]
    vectors = [
        tuple(far * weights[level[n][0]] * c for c in local.forms[level[n][1]]) for n in used
    ]
    goal = tuple(near * c for c in wanted)
    for dependency in dependencies([*vectors, tuple(-c for c in goal)]):
        *parts, scale = dependency
        if scale and all(parts) and all(part % scale == 0 for part in parts):
            factors = [1] * len(level)
            for n, part in zip(used, parts, strict=True):
                factors[n] = part // scale
            yield tuple(factors)


def _solutions(local: Local, level: Pairs, own: Seen, wanted: Vector) -> Iterator[Vector]:
    """Yield factors (0: any) with which a sum of an operand is a multiple of a row."""
    for total in own.sums:
        used = [n for n, (a, _) in enumerate(level) if total[a]]
        vectors = [tuple(total[level[n][0]] * c for c in local.forms[level[n][1]]) for n in used]
        for dependency in dependencies([*vectors, tuple(-c for c in wanted)]):
            if dependency[-1] and all(dependency[:-1]):
                factors = [0] * len(level)
                for n, factor in zip(used, primitive(dependency[:-1]), strict=True):
                    factors[n] = factor
                yield tuple(factors)
