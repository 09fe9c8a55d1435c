"""Law 5: what the places of one operand want is in one register.

Two places *meet* where they reach one element of the register.  There they must want the same
element of the kernel, in every tile (:meth:`Agreement.disagreements`).  What no place uses is
filled; that keeps a stray silent which meets it.  A stray may agree at one place with what another
place uses: a place is *firm* if it then agrees with an iteration of its own, too
(:meth:`Agreement.firm`), and only firm places count in a witness of law 4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from typing import TypeAlias

from isamap.mapping.axes.linear import Vector, in_span
from isamap.mapping.laws.places import Place, Register

Forms: TypeAlias = Mapping[tuple[int, int], Vector]
"""The form on each axis of a shared operand, by axis and level, with its factor."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a place sees of one level of one dimension, digits counted from their least values.

    ``x`` are the factors of the variables, ``reach`` those of their extents less 1.
    """

    x: Vector
    reach: Vector
    constant: int


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Where a variable of an iteration at one place comes from, if another place is met.

    It is the variable ``of`` of the iteration that is met; or, without it, ``factor`` times the
    digit on level 0 of ``axis``.
    """

    variable: int
    of: int | None
    axis: int = 0
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Agreement:
    """The placements of a layout as the places of shared operands see them.

    ``owning`` are axes that the target sees alone, ``inner`` the variables that are placed.
    """

    registers: tuple[Register, ...]
    extents: tuple[int | None, ...]
    forms: Forms
    owning: frozenset[int]
    inner: frozenset[int]

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.extents)

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels that are in use; that of the constants is 0."""
        return tuple(sorted({0, *(level for _, level in self.forms)}))

    def value(self, place: Place, dim: int, level: int) -> Value:
        """Return what a place sees of one level of a dimension."""
        weights, constant = place.dims[dim]
        x, reach = [0] * self.size, [0] * self.size
        for axis, weight in enumerate(weights):
            form = self.forms.get((axis, level))
            if weight and form is not None:
                x = [a + weight * c for a, c in zip(x, form, strict=True)]
                reach = [a + weight * max(0, -c) for a, c in zip(reach, form, strict=True)]
        return Value(tuple(x), tuple(reach), constant if level == 0 else 0)

    # --- one element, one meaning -----------------------------------------------------------------
    def disagreements(self) -> Iterator[tuple[int, Vector]]:
        """Yield the places that want another element than an earlier one where they meet it.

        With each comes a vector over the variables at which it shows (none: at a constant).
        """
        for register in self.registers:
            for one, other in combinations(register.places, 2):
                if not self._meet(one, other):
                    continue
                differing = register.differing(one, other)
                if one.rest != other.rest:
                    yield other.operand, (0,) * self.size
                for v in sorted(differing):
                    if v not in self.inner or self.extents[v] is None:
                        yield other.operand, tuple(int(u == v) for u in range(self.size))
                equal = self._equations(one, other, differing)
                for n, (mine, its) in enumerate(zip(one.rows, other.rows, strict=True)):
                    wanted = (
                        *(c if v in self.inner else 0 for v, c in enumerate(mine)),
                        *(-c if v in self.inner else 0 for v, c in enumerate(its)),
                        *(0 for _ in range(self.size)),
                        one.constants[n] - other.constants[n],
                    )
                    if not in_span(equal, wanted):
                        yield other.operand, its

    def whole(self) -> frozenset[int]:
        """Return the variables of which a tile must have all iterations."""
        return frozenset(
            v
            for register in self.registers
            for one, other in combinations(register.places, 2)
            if self._meet(one, other)
            for v in register.differing(one, other)
        )

    def _equations(self, one: Place, other: Place, known: frozenset[int]) -> list[Vector]:
        """Return what vanishes where two places meet, over both iterations, reaches and 1.

        Variables in ``known`` have their extents.
        """
        found = []
        for dim in range(len(one.dims)):
            for level in self.levels:
                mine, its = self.value(one, dim, level), self.value(other, dim, level)
                constant = mine.constant - its.constant
                reach = [a - b for a, b in zip(mine.reach, its.reach, strict=True)]
                for v in known:
                    extent = self.extents[v]
                    if extent is not None:
                        constant += reach[v] * (extent - 1)
                        reach[v] = 0
                found.append((*mine.x, *(-c for c in its.x), *reach, constant))
        return found

    def _meet(self, one: Place, other: Place) -> bool:
        """Return whether iterations may reach one element at two places."""
        equal = self._equations(one, other, frozenset())
        for *factors, constant in equal:
            common = gcd(*factors)
            if constant % common if common else constant:
                return False
        unit = (*(0 for _ in range(3 * self.size)), 1)
        return not in_span(equal, unit)

    def covers(self, place: Place, other: Place) -> bool:
        """Return whether one place uses every element that another one uses, in every tile."""
        found: dict[int, Borrowed] = {}
        for dim, shift in enumerate(place.offset(other)):
            values = [
                (level, self.value(place, dim, level), self.value(other, dim, level))
                for level in self.levels
            ]
            taken = None if shift else self._renamed(values)
            if taken is None or any(found.get(one.variable, one) != one for one in taken):
                return False
            found.update({one.variable: one for one in taken})
        return all(b.of == v or self._uses(place, v) == 1 for v, b in found.items())

    # --- unused elements --------------------------------------------------------------------------
    def firm(self, witness: frozenset[int]) -> frozenset[int]:
        """Return the operands of a witness without the places that are not firm in it."""
        loose = {
            place.operand
            for register in self.registers
            for place in register.places
            if place.operand in witness
            and any(
                self.borrowed(register, place, other, witness) is None
                for other in register.places
                if other is not place and reaches(place, other)
            )
        }
        return witness - loose

    def borrowed(
        self, register: Register, place: Place, met: Place, witness: frozenset[int]
    ) -> tuple[Borrowed, ...] | None:
        """Return which iteration has, at a place, the element that a stray meets there.

        The element is in use by an iteration at the place ``met``.  Variables that are not named
        are those of the iteration that owns the stray's result.  None if there may be none.
        """
        found: dict[int, Borrowed] = {}
        owned: set[int] = set()
        for dim, shift in enumerate(place.offset(met)):
            values = [
                (level, self.value(place, dim, level), self.value(met, dim, level))
                for level in self.levels
            ]
            mine = {v for _, own, _ in values for v, c in enumerate(own.x) if c}
            alike = all(own.x == its.x for _, own, its in values)
            known = self._is_owned(place, dim)
            if shift and not _is_one_sum(register, dim):
                alike = False
            if alike and shift:
                if not known and not _ends_in(register, dim, witness):
                    return None
                first = self._first(place, dim)
                if first is None:
                    return None
                for one in first:
                    found[one.variable] = one
                mine -= {one.variable for one in first}
            if alike:
                for v in mine:
                    found.setdefault(v, Borrowed(v, v))
            elif known:
                owned |= mine
            else:
                renamed = None if shift else self._renamed(values)
                if renamed is None or any(found.get(r.variable, r) != r for r in renamed):
                    return None
                found.update({r.variable: r for r in renamed})
        changed = {v for v, b in found.items() if b.of != v}
        if owned & found.keys() or any(self._uses(place, v) > 1 for v in changed):
            return None
        return tuple(found.values())

    def _is_owned(self, place: Place, dim: int) -> bool:
        weights, _ = place.dims[dim]
        return all(axis in self.owning for axis, c in enumerate(weights) if c)

    def _first(self, place: Place, dim: int) -> tuple[Borrowed, ...] | None:
        """Return the variable of the digit on level 0, which must take every value of its range."""
        weights, _ = place.dims[dim]
        on = [a for a, c in enumerate(weights) if c and (a, 0) in self.forms]
        if not on:
            return ()
        form = self.forms[on[0], 0]
        variables = [v for v, c in enumerate(form) if c]
        if len(on) > 1 or len(variables) > 1 or abs(form[variables[0]] * weights[on[0]]) != 1:
            return None
        return (Borrowed(variables[0], None, on[0], form[variables[0]]),)

    def _renamed(self, values: list[tuple[int, Value, Value]]) -> tuple[Borrowed, ...] | None:
        """Return whose values each variable takes, where all of both are in every tile."""
        whole = self.whole()
        found = []
        for _, own, its in values:
            if own.x == its.x:
                found += [Borrowed(v, v) for v, c in enumerate(own.x) if c]
                continue
            mine, theirs = ([v for v, c in enumerate(w.x) if c] for w in (own, its))
            if len(mine) != 1 or len(theirs) != 1:
                return None
            (u,), (v,) = mine, theirs
            one, other = self.extents[u], self.extents[v]
            if own.x[u] != its.x[v] or own.x[u] < 0 or not {u, v} <= whole:
                return None
            if one is None or other is None or other > one:
                return None
            found.append(Borrowed(u, v))
        return tuple(found)

    def _uses(self, place: Place, variable: int) -> int:
        """Return in how many levels and dimensions a place sees a variable."""
        return sum(
            bool(self.value(place, dim, level).x[variable])
            for dim in range(len(place.dims))
            for level in self.levels
        )


def reaches(one: Place, other: Place) -> bool:
    """Return whether two places reach one element in any iterations of the instruction."""
    for (mine, own), (theirs, its) in zip(one.dims, other.dims, strict=True):
        common = gcd(*mine, *theirs)
        if (own - its) % common if common else own != its:
            return False
    return True


def _is_one_sum(register: Register, dim: int) -> bool:
    """Return whether the places differ in a dimension by their constants only."""
    return len({place.dims[dim][0] for place in register.places}) == 1


def _ends_in(register: Register, dim: int, witness: frozenset[int]) -> bool:
    """Return whether the places with the least and the greatest constant are in a witness."""
    constants = [p.dims[dim][1] for p in register.places]
    held = [p.dims[dim][1] for p in register.places if p.operand in witness]
    return min(constants) in held and max(constants) in held
