"""Operands that are read at several places in lemmas: law 5, and their part in law 4.

As in the laws of other operands, extents are symbols and terms are linear.  What is claimed speaks
of digits and levels; that positions determine them is a matter of the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from isamap.mapping.axes.linear import Vector
from isamap.mapping.checks.script import (
    Names,
    conjunction,
    digit,
    disjunction,
    linear,
    mark,
    not_all,
    number,
)
from isamap.mapping.laws.agree import Agreement, Borrowed
from isamap.mapping.laws.functional import Layout, agreement
from isamap.mapping.laws.places import Place, Register
from isamap.mapping.laws.problem import Local


@dataclass(frozen=True, slots=True)
class Shared:
    """A layout on an instruction that reads operands at several places.

    ``keys`` are the axis and the level of each digit.
    """

    local: Local
    layout: Layout
    keys: tuple[tuple[int, int], ...]


# --- law 5 --------------------------------------------------------------------------------------
def agreements(shared: Shared, names: Names) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the claims of law 5: text, negation and declarations.

    The iterations are written ``w`` and ``w'``, their tile begins at ``first w``.
    """
    placed = agreement(shared.local, shared.layout)
    terms = _Terms(placed, names, shared.keys)
    for register in shared.local.registers:
        for one, other in combinations(register.places, 2):
            equal = [
                f"(= {terms.value(one, dim, level, '')} {terms.value(other, dim, level, _OTHER)})"
                for dim in range(len(one.dims))
                for level in placed.levels
            ]
            same = [
                f"(= {terms.element(one, n, '')} {terms.element(other, n, _OTHER)})"
                for n in range(len(one.rows))
            ]
            if one.rest != other.rest:
                same.append("false")
            if same:
                pair = (names.operands[p.operand] for p in (one, other))
                text = f"{' and '.join(pair)} want one element wherever they meet"
                yield text, conjunction([*equal, not_all(same)]), terms.begin()


_OTHER = "'"


# --- law 4 --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Strays:
    """What is assumed of a stray that meets elements in use at places of shared operands.

    ``firm`` are the operands of the witness from which an iteration is put together, ``places``
    those of the witness that are places of shared operands, ``points`` what marks their iterations.
    """

    firm: frozenset[int]
    places: frozenset[int]
    points: tuple[str, ...]
    agree: tuple[str, ...]
    more: tuple[str, ...]
    taken: tuple[tuple[int, tuple[tuple[str, ...], ...]], ...]
    selectors: tuple[tuple[int, str], ...]

    def variable(self, v: int, place: int) -> str:
        """Return a variable of the iteration that has the element at a place.

        It depends on the place at which another iteration uses the element.
        """
        selector, cases = dict(self.selectors)[place], dict(self.taken)[place]
        term = cases[-1][v]
        for n in reversed(range(len(cases) - 1)):
            if cases[n][v] != term:
                term = f"(ite (= {selector} {n}) {cases[n][v]} {term})"
        return term


def padding(shared: Shared, witness: frozenset[int], names: Names) -> Strays:
    """Return what law 4 says of the places in a witness.

    At each place the stray's element is in use at some place (a number is chosen for it) of the
    same operand, by an iteration that is named after the former.
    """
    placed = agreement(shared.local, shared.layout)
    terms = _Terms(placed, names, shared.keys)
    firm = placed.firm(witness)
    agree: list[str] = []
    more: list[str] = []
    taken = []
    selectors = []
    places = set()
    for register in shared.local.registers:
        for place in register.places:
            if place.operand not in witness:
                continue
            places.add(place.operand)
            selector = f"|place of {names.operands[place.operand]}|"
            point = mark(names.operands[place.operand])
            more.append(f"(declare-const {selector} Int)")
            choices = [f"(= {selector} {n})" for n in range(len(register.places))]
            agree.append(disjunction(choices))
            cases = []
            for choice, met in zip(choices, register.places, strict=True):
                equal = [
                    f"(= {terms.stray(place, dim, level)} {terms.value(met, dim, level, point)})"
                    for dim in range(len(place.dims))
                    for level in placed.levels
                ]
                agree.append(f"(=> {choice} {conjunction(equal)})")
                cases.append(terms.taken(register, place, met, witness))
            taken.append((place.operand, tuple(cases)))
            selectors.append((place.operand, selector))
    return Strays(
        firm,
        frozenset(places),
        tuple(mark(names.operands[operand]) for operand in sorted(places)),
        tuple(agree),
        (*more, *terms.whole()),
        tuple(taken),
        tuple(selectors),
    )


# --- terms --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Terms:
    placed: Agreement
    names: Names
    keys: tuple[tuple[int, int], ...]

    def value(self, place: Place, dim: int, level: int, point: str) -> str:
        """Return what a place sees of a level, at an iteration of the tile."""
        own = self.placed.value(place, dim, level)
        variables = [f"|{name}{point}|" for name in self.names.variables]
        return self._counted(linear(own.x, variables), own.reach, own.constant)

    def stray(self, place: Place, dim: int, level: int) -> str:
        """Return what a place sees of a level, at the digits of a stray."""
        own = self.placed.value(place, dim, level)
        weights, _ = place.dims[dim]
        factors = tuple(weights[axis] if at == level else 0 for axis, at in self.keys)
        names = [f"|{digit(n)}|" for n in range(len(self.keys))]
        return self._counted(linear(factors, names), own.reach, own.constant)

    def _counted(self, term: str, reach: Vector, constant: int) -> str:
        """Return a value counted from the least values of its digits."""
        extents = [f"|extent of {name}|" for name in self.names.variables]
        rest = linear(reach, extents, constant - sum(reach))
        return term if rest == "0" else f"(+ {term} {rest})"

    def element(self, place: Place, row: int, point: str) -> str:
        """Return an index of the kernel at an iteration of the tile."""
        inner = tuple(c if v in self.placed.inner else 0 for v, c in enumerate(place.rows[row]))
        first = linear(place.rows[row], [f"|first {name}|" for name in self.names.variables])
        variables = [f"|{name}{point}|" for name in self.names.variables]
        return f"(+ {first} {linear(inner, variables, place.constants[row])})"

    def begin(self) -> tuple[str, ...]:
        """Return the declarations of where the tile begins."""
        lines = []
        for v, name in enumerate(self.names.variables):
            lines.append(f"(declare-const |first {name}| Int)")
            least = "=" if v in self.placed.whole() & self.placed.inner else "<="
            lines.append(f"(assert ({least} 0 |first {name}|))")
        return (*lines, *self.whole())

    def whole(self) -> tuple[str, ...]:
        """Return the extents of variables of which a tile has all iterations."""
        return tuple(
            f"(assert (= |extent of {self.names.variables[v]}| {number(extent)}))"
            for v in sorted(self.placed.whole() & self.placed.inner)
            if (extent := self.placed.extents[v]) is not None
        )

    def taken(
        self, register: Register, place: Place, met: Place, witness: frozenset[int]
    ) -> tuple[str, ...]:
        """Return the variables of the iteration that has what a stray meets at another place."""
        point = mark(self.names.operands[place.operand])
        own = [f"|{name}{point}|" for name in self.names.variables]
        if met is place:
            return tuple(own)
        borrowed = self.placed.borrowed(register, place, met, witness)
        if borrowed is None:
            return tuple(own)  # They never meet: any iteration will do.
        target = mark(self.names.operands[0])
        found = [f"|{name}{target}|" for name in self.names.variables]
        for one in borrowed:
            found[one.variable] = self._borrowed(one, own)
        return tuple(found)

    def _borrowed(self, one: Borrowed, own: Sequence[str]) -> str:
        if one.of is not None:
            return own[one.of]
        number_ = self.keys.index((one.axis, 0))
        return linear((one.factor,), (f"|{digit(number_)}|",))
