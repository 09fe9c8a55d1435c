"""The four laws where operands see sums of axes: what an operand sees are values, not digits.

A *layout* says of each digit on which axis it is, with which factor, and on which level.  Digits
of one level have one weight on all axes of a sum, and the weights are such that a sum's value
determines its part on each level (:mod:`isamap.mapping.laws.positions`).  So an operand that sees
the sum of axes ``h`` sees, on each level, the sum of ``h[a]`` times the digit on axis ``a``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from isamap.mapping.axes.linear import Vector, dependencies, in_span, rank
from isamap.mapping.axes.seen import determines
from isamap.mapping.laws.agree import Agreement
from isamap.mapping.laws.problem import Local


@dataclass(frozen=True, slots=True)
class Laid:
    """A form (its number) on an axis (its number), times ``factor``, on a level of the sums."""

    form: int
    axis: int
    factor: int = 1
    level: int = 0


Layout: TypeAlias = frozenset[Laid]


@dataclass(frozen=True, slots=True)
class Views:
    """The digits of a layout as vectors over the variables, and what each operand sees of them.

    A level on which an axis of a sum has no form holds a digit that is always 0.  ``seen`` are
    sums of digits, by the coefficient of each digit; ``keys`` are the axis and the level of each
    (-1 on axes without levels).
    """

    digits: tuple[Vector, ...]
    seen: tuple[tuple[Vector, ...], ...]
    keys: tuple[tuple[int, int], ...]

    def values(self, operand: int) -> list[Vector]:
        """Return what an operand sees as vectors over the variables."""
        return [_combined(self.digits, view) for view in self.seen[operand]]


def summed(local: Local) -> frozenset[int]:
    """Return the axes that have levels: those in a sum, or along an operand with several places."""
    totals = [total for own in local.seen for total in own.sums]
    found = frozenset(n for total in totals for n, c in enumerate(total) if c)
    return found.union(*(register.axes for register in local.registers))


def agreement(local: Local, layout: Layout) -> Agreement:
    """Return a layout as the places of shared operands see it."""
    mixed = summed(local)
    forms = {
        (d.axis, d.level): tuple(d.factor * c for c in local.forms[d.form])
        for d in layout
        if d.axis in mixed
    }
    inner = frozenset(v for d in layout for v, c in enumerate(local.forms[d.form]) if c)
    return Agreement(local.registers, local.extents, forms, local.owning, inner)


def views(local: Local, layout: Layout) -> Views:
    """Return what the operands see of a layout."""
    mixed = summed(local)
    shifted = {0 for register in local.registers if register.is_shifted}
    levels = sorted({laid.level for laid in layout if laid.axis in mixed} | shifted)
    nothing = (0,) * local.size
    keys: list[tuple[int, int]] = []
    digits: list[Vector] = []
    for laid in sorted(layout, key=lambda d: (d.axis, d.level, d.form)):
        if laid.axis not in mixed:
            keys.append((laid.axis, -1))
            digits.append(local.forms[laid.form])
    placed = {(d.axis, d.level): d for d in layout if d.axis in mixed}
    for axis in sorted(mixed):
        for level in levels:
            found = placed.get((axis, level))
            keys.append((axis, level))
            digits.append(
                nothing
                if found is None
                else tuple(found.factor * c for c in local.forms[found.form])
            )
    units = [tuple(int(n == m) for m in range(len(keys))) for n in range(len(keys))]
    seen = []
    for own in local.seen:
        view = [unit for unit, (axis, _) in zip(units, keys, strict=True) if axis in own.alone]
        for total in own.sums:
            for level in levels:
                view.append(tuple(total[a] if at == level else 0 for a, at in keys))
        seen.append(tuple(view))
    return Views(tuple(digits), tuple(seen), tuple(keys))


def breaches(local: Local, layout: Layout) -> Iterator[tuple[int, int, Vector]]:
    """Yield the laws that a layout breaks as (law, operand, vector); none if it is legal.

    Law 0 stands for the kernel's own permissions and for two digits in one place, 5 for
    dependencies among digits (law 4b), 6 for the definition of the family, 7 for places of one
    operand that want different elements, 8 for an axis that no operand ties (law 4c).  Law 3
    follows from 4a.
    """
    mixed = summed(local)
    on_sums = [laid for laid in layout if laid.axis in mixed]
    twice = len({(d.axis, d.level) for d in on_sums}) < len(on_sums)
    if twice or any(d.level == 0 and d.axis in _reserved(local) for d in on_sums):
        yield 0, 0, (0,) * local.size
        return
    inner = [any(local.forms[d.form][v] for d in layout) for v in range(local.size)]
    for laid in sorted(layout, key=lambda d: (d.form, d.axis)):
        if (laid.form, laid.axis) in local.barred:
            yield 0, 0, local.forms[laid.form]
        axes = {d.axis for d in layout if d.form == laid.form}
        if (laid.form, laid.axis) in local.outside or (local.once and len(axes) > 1):
            yield 6, 0, local.forms[laid.form]
    found = views(local, layout)
    values = [found.values(t) for t in range(len(local.seen))]
    wanted = [
        [tuple(c if keep else 0 for c, keep in zip(r, inner, strict=True)) for r in rows]
        for rows in local.rows
    ]
    for t, rows in enumerate(wanted):
        for r in rows:
            if not in_span(values[t], r):
                yield 1, t, r
    for value in values[0] if local.owned else ():
        if not in_span(wanted[0], value):
            yield 2, 0, value
    shared = agreement(local, layout)
    for operand, vector in shared.disagreements():
        yield 7, operand, vector
    for whole in local.witnesses:
        witness = shared.firm(whole)
        if local.registers and not determines((local.seen[t] for t in witness), local.axes):
            yield 8, min(witness), (0,) * local.size
        for v in range(local.size):
            unit = tuple(int(v == u) for u in range(local.size))
            if inner[v] and not any(in_span(values[t], unit) for t in witness):
                yield 4, min(witness), unit
        if not _generated(found, witness):
            yield 5, min(witness), (0,) * local.size


def _reserved(local: Local) -> frozenset[int]:
    """Return the axes whose level 0 belongs to the variables of another component."""
    apart = (r.axes for r in local.registers if r.is_shifted and not r.joint)
    return frozenset[int]().union(*apart)


def is_legal_layout(local: Local, layout: Layout) -> bool:
    """Return whether a layout breaks no law."""
    return next(breaches(local, layout), None) is None


def _generated(found: Views, witness: frozenset[int]) -> bool:
    """Return whether the dependencies of all digits come from those that one operand sees."""
    total = len(found.digits) - rank(found.digits)
    if total == 0:
        return True
    own: list[Vector] = []
    for t in sorted(witness):
        seen = found.seen[t]
        for vector in dependencies(found.values(t)):
            own.append(_combined(seen, vector))
    return rank(own) == total


def _combined(vectors: tuple[Vector, ...], factors: Vector) -> Vector:
    width = len(vectors[0]) if vectors else 0
    pairs = [(vector, f) for vector, f in zip(vectors, factors, strict=True) if f]
    return tuple(sum(f * vector[n] for vector, f in pairs) for n in range(width))
