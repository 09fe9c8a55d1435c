"""All legal matchings of a binding, counted and listed without ever being held together.

The laws factor over components of variables (joined where they share an index expression), so each
component is solved alone, once for each structure, and the matchings are the product.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from isamap.ir.nodes import Expr, Permissions, Statement
from isamap.mapping.axes.linear import Vector, primitive
from isamap.mapping.laws.composite import lay_out
from isamap.mapping.laws.family import Family, within
from isamap.mapping.laws.laws import Placed
from isamap.mapping.laws.placements import Listed, local_placements
from isamap.mapping.laws.places import cut as cut_register
from isamap.mapping.laws.places import groups_of
from isamap.mapping.laws.problem import Local, Problem, problem
from isamap.mapping.matching import Matching, Needle

LIMIT = 1024
"""Matchings of one binding that are listed unless more are asked for."""

Product = tuple[tuple[Placed, ...], ...]
"""For each component its placements, of which any may go with any of the others'."""


@dataclass(frozen=True, slots=True)
class Component:
    """Variables that share index expressions, with the positions of their forms."""

    variables: tuple[int, ...]
    forms: tuple[int, ...]
    local: Local


@dataclass(frozen=True, slots=True)
class Listing:
    """The matchings of one binding, as disjoint products of the components' placements.

    Iterating yields them in canonical order: product after product, in each the last component
    fastest, a component's placements ordered by the numbers of their forms and axes.  With
    ``nonempty`` only those that use every axis longer than 1 are meant.  ``solved`` has each
    component with its placements as numbers of its own, for those who prove them; ``problems`` has
    the laws' data within the family, for each choice of constants.
    """

    whole: Problem
    statement: Statement
    needle: Needle
    operands: tuple[tuple[str, Expr], ...]
    products: tuple[Product, ...]
    nonempty: bool
    complete: bool
    reason: str
    solved: tuple[tuple[Local, tuple[Placed, ...]], ...]
    problems: tuple[Local, ...]

    @property
    def count(self) -> int:
        """How many matchings there are; they are not listed to be counted."""
        return sum(self._count(parts) for parts in self.products)

    def _count(self, parts: Product) -> int:
        """Count a product by tallying which axes its placements use, component by component."""
        tally = Counter({frozenset[int](): 1})
        for part in parts:
            longer = Counter[frozenset[int]]()
            for used, number in _axes_used(part).items():
                for sofar, count in tally.items():
                    longer[sofar | used] += count * number
            tally = longer
        if not self.nonempty:
            return tally.total()
        return tally[frozenset(range(len(self.whole.axes)))]

    def __iter__(self) -> Iterator[Matching]:
        for placed in self.placed():
            placements = lay_out(self.whole, self.problems, placed)
            yield Matching(self.statement, self.needle, self.operands, placements)

    def placed(self) -> Iterator[Placed]:
        """Yield the matchings as (form, axis) pairs, in canonical order."""
        for parts in self.products:
            if self.nonempty:
                yield from _covering(parts, frozenset(range(len(self.whole.axes))))
            else:
                for choice in product(*parts):
                    yield frozenset[tuple[int, int]]().union(*choice)


def list_matchings(
    statement: Statement,
    needle: Needle,
    operands: Sequence[tuple[str, Expr]],
    *,
    family: Family = "embedded",
    listed: Listed = "tight",
    nonempty: bool = False,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> Listing:
    """Return the legal matchings of one binding within a family.

    ``every`` lists all of them, the one without placements included; ``maximal`` those from which
    no placement can be dropped without losing an inner variable, and to which no placements of
    outer variables can be added; ``tight`` of these the ones that need least room.  All that is
    meant within the family and under one choice of constants for unused elements; the matchings of
    different choices are united.
    """
    whole = problem(statement, needle, operands, permissions)
    products: list[Product] = []
    problems: list[Local] = []
    reasons: dict[str, None] = {}
    solved: dict[tuple[Local, tuple[Placed, ...]], None] = {}
    for filling in whole.fillings:
        if not whole.is_open(filling):
            continue
        parts = []
        problems.append(within(whole.local(filling), family, splittable=whole.splittable))
        for component in components(problems[-1]):
            part = local_placements(component.local, listed)
            if not part.complete:
                names = ", ".join(whole.variables[v] for v in component.variables)
                reasons.setdefault(f"{part.reason} among the placements of {names}")
            parts.append(
                tuple(frozenset((component.forms[f], a) for f, a in p) for p in part.found)
            )
            solved.setdefault((component.local, part.found))
        rest: list[Product] = [tuple(parts)]
        for earlier in products:
            rest = [piece for box in rest for piece in _without(box, earlier)]
        products += rest
    return Listing(
        whole,
        statement,
        needle,
        tuple(operands),
        tuple(products),
        nonempty,
        not reasons,
        "; ".join(reasons),
        tuple(solved),
        tuple(problems),
    )


def enumerate_matchings(
    statement: Statement,
    needle: Needle,
    operands: Sequence[tuple[str, Expr]],
    limit: int = LIMIT,
    *,
    family: Family = "embedded",
    listed: Listed = "tight",
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> tuple[tuple[Matching, ...], bool, str]:
    """Return the first matchings of :func:`list_matchings`, at most ``limit``, whether these are
    all, and which limit was reached if not."""
    listing = list_matchings(
        statement, needle, operands, family=family, listed=listed, permissions=permissions
    )
    reasons = [listing.reason] if listing.reason else []
    matchings = tuple(islice(listing, limit))
    if listing.count > limit:
        reasons.append(f"the limit of {limit} matchings was reached")
    return matchings, not reasons, "; ".join(reasons)


def components(whole: Local) -> tuple[Component, ...]:
    """Split a problem into components of variables that share an index expression."""
    group = groups_of(whole.size, (r for rows in whole.rows for r in rows), whole.registers)
    result = []
    for name in sorted(set(group)):
        variables = tuple(v for v, g in enumerate(group) if g == name)
        forms = tuple(n for n, f in enumerate(whole.forms) if any(f[v] for v in variables))
        if forms:
            result.append(Component(variables, forms, _restricted(whole, variables, forms)))
    return tuple(result)


def _restricted(whole: Local, variables: tuple[int, ...], forms: tuple[int, ...]) -> Local:
    def cut(vector: Vector) -> Vector:
        return tuple(vector[v] for v in variables)

    def kept(pairs: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((numbers[f], a) for f, a in pairs if f in numbers)

    numbers = {f: n for n, f in enumerate(forms)}
    return replace(
        whole,
        size=len(variables),
        # What a row determines is the same for all its multiples: R - 1 - r is solved like r.
        rows=tuple(
            tuple(sorted({primitive(cut(r)) for r in rows if any(cut(r))})) for rows in whole.rows
        ),
        forms=tuple(cut(whole.forms[f]) for f in forms),
        barred=kept(whole.barred),
        outside=kept(whole.outside),
        registers=tuple(cut_register(register, variables) for register in whole.registers),
        extents=tuple(whole.extents[v] for v in variables) if whole.registers else (),
    )


# --- products -----------------------------------------------------------------------------------
def _without(one: Product, other: Product) -> Iterator[Product]:
    """Yield disjoint products that together hold what ``one`` does and ``other`` does not."""
    common: list[tuple[Placed, ...]] = []
    for n, (mine, theirs) in enumerate(zip(one, other, strict=True)):
        shared = set(theirs)
        if alone := tuple(p for p in mine if p not in shared):
            yield (*common, alone, *one[n + 1 :])
        common.append(tuple(p for p in mine if p in shared))
        if not common[-1]:
            return


def _axes_used(part: Sequence[Placed]) -> Counter[frozenset[int]]:
    return Counter(frozenset(axis for _, axis in placed) for placed in part)


def _covering(parts: Product, wanted: frozenset[int]) -> Iterator[Placed]:
    """Yield the choices that use all the axes ``wanted``; no other one is walked through."""
    # What the components from n on can use together.
    reach: list[set[frozenset[int]]] = [{frozenset()}]
    for part in reversed(parts):
        uses = _axes_used(part)
        reach.append({own | later for own in uses for later in reach[-1]})
    reach.reverse()

    def choose(n: int, open_: frozenset[int]) -> Iterator[Placed]:
        if n == len(parts):
            yield frozenset()
            return
        for placed in parts[n]:
            missing = open_ - {axis for _, axis in placed}
            if any(missing <= used for used in reach[n + 1]):
                for rest in choose(n + 1, missing):
                    yield placed | rest

    if any(wanted <= used for used in reach[0]):
        yield from choose(0, wanted)
