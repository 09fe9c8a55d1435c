"""The four laws in their linear form, decided by rational ranks alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from isamap.mapping.axes.linear import Vector, dependencies, in_span, rank
from isamap.mapping.laws.composite import has_layout
from isamap.mapping.laws.problem import Local

Placed = frozenset[tuple[int, int]]
"""Which form (its number) is on which axis (its number)."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A law that placements break, with the operand and the vector at which it shows.

    Law 0 stands for the kernel's own permissions, 5 for dependencies among digits (law 4b), 6 for
    the definition of the family.
    """

    law: int
    operand: int
    vector: Vector


def breaches(local: Local, placed: Placed) -> Iterator[Breach]:
    """Yield every way in which placements break a law; none if they are legal.

    Law 3 (every iteration once) follows from 4a.
    """
    pairs = sorted(placed)
    inner = [any(local.forms[f][v] for f, _ in pairs) for v in range(local.size)]
    for f, axis in pairs:
        if (f, axis) in local.barred:
            yield Breach(0, 0, local.forms[f])
        repeated = local.once and any(f == g and axis < other for g, other in pairs)
        if (f, axis) in local.outside or repeated:
            yield Breach(6, 0, local.forms[f])
    seen = [[local.forms[f] for f, axis in pairs if axis in sees] for sees in local.sees]
    wanted = [[_restrict(r, inner) for r in rows] for rows in local.rows]
    for t, rows in enumerate(wanted):
        for r in rows:
            if not in_span(seen[t], r):
                yield Breach(1, t, r)
    for form in seen[0] if local.owned else ():
        if not in_span(wanted[0], form):
            yield Breach(2, 0, form)
    for witness in local.witnesses:
        for v in range(local.size):
            unit = tuple(int(v == u) for u in range(local.size))
            if inner[v] and not any(in_span(seen[t], unit) for t in witness):
                yield Breach(4, min(witness), unit)
        if not _generated(local, pairs, witness):
            yield Breach(5, min(witness), (0,) * local.size)


def is_legal(local: Local, placed: Placed) -> bool:
    """Return whether placements break no law; where operands see sums, under some layout."""
    if local.seen:
        return has_layout(local, placed)
    return next(breaches(local, placed), None) is None


def _restrict(vector: Vector, inner: list[bool]) -> Vector:
    return tuple(c if keep else 0 for c, keep in zip(vector, inner, strict=True))


def _generated(local: Local, pairs: list[tuple[int, int]], witness: frozenset[int]) -> bool:
    """Return whether the dependencies of all digits come from those that one operand sees."""
    forms = [local.forms[f] for f, _ in pairs]
    total = len(forms) - rank(forms)
    if total == 0:
        return True
    found: list[Vector] = []
    for t in sorted(witness):
        mine = [n for n, (_, axis) in enumerate(pairs) if axis in local.sees[t]]
        for vector in dependencies([forms[n] for n in mine]):
            wide = [0] * len(pairs)
            for n, c in zip(mine, vector, strict=True):
                wide[n] = c
            found.append(tuple(wide))
    return rank(found) == total
