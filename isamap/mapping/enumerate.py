"""All legal matchings: Z3 proposes placements, the laws' own checker confirms each.

The laws factor over components of variables (joined where they share an index expression), so each
component is solved alone, once for each structure, and the matchings are the product.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice, product

from isamap.ir.nodes import Expr, Permissions, Statement
from isamap.mapping.clauses import demands, literal
from isamap.mapping.laws import Placed, is_legal
from isamap.mapping.linear import Vector
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.problem import Local, problem
from isamap.mapping.room import never_larger
from isamap.solver.models import Models, Unknown

LIMIT = 1024
"""Matchings of one binding that are listed unless more are asked for."""

LOCAL_LIMIT = 2_000
"""Candidates of one component and one set of inner variables that are looked at; ten times as many
where every legal placement is asked for."""

MOST_VARIABLES = 6
"""Variables of a component that are placed together at most."""


@dataclass(frozen=True, slots=True)
class Placements:
    """Legal placements of a component, in canonical order."""

    found: tuple[Placed, ...]
    complete: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """Variables that share index expressions, with the positions of their forms."""

    variables: tuple[int, ...]
    forms: tuple[int, ...]
    local: Local


def enumerate_matchings(
    statement: Statement,
    needle: Needle,
    operands: Sequence[tuple[str, Expr]],
    limit: int = LIMIT,
    *,
    every: bool = False,
    tight: bool = True,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> tuple[tuple[Matching, ...], bool, str]:
    """Return the legal matchings of one binding in canonical order, whether these are all, and
    which limit was reached if not.

    The tight maximal ones are listed: those to which no placements of outer variables can be added,
    and of those with the same inner variables the ones that need least room; with ``tight`` False
    all of these from which nothing can be dropped.  ``every`` lists all legal ones, the one without
    placements included.
    """
    whole = problem(statement, needle, operands, permissions)
    found: dict[Placed, None] = {}
    reasons: list[str] = []
    for filling in whole.fillings:
        if not whole.is_open(filling):
            continue
        parts = []
        for component in components(whole.local(filling)):
            part = local_placements(component.local, every, tight)
            if not part.complete:
                names = ", ".join(whole.variables[v] for v in component.variables)
                reasons.append(f"{part.reason} among the placements of {names}")
            parts.append([frozenset((component.forms[f], a) for f, a in p) for p in part.found])
        for choice in islice(product(*parts), limit + 1):
            found.setdefault(frozenset().union(*choice))
            if len(found) > limit:
                break
    if len(found) > limit:
        reasons.append(f"the limit of {limit} matchings was reached")
    ordered = sorted(islice(found, limit), key=_canonical)
    matchings = tuple(
        Matching(statement, needle, tuple(operands), whole.placements(placed)) for placed in ordered
    )
    return matchings, not reasons, "; ".join(dict.fromkeys(reasons))


def components(whole: Local) -> tuple[Component, ...]:
    """Split a problem into components of variables that share an index expression."""
    group = list(range(whole.size))
    for vector in (r for rows in whole.rows for r in rows):
        used = {group[v] for v, c in enumerate(vector) if c}
        group = [min(used) if g in used else g for g in group]
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

    rows = tuple(tuple(sorted({cut(r) for r in rows if any(cut(r))})) for rows in whole.rows)
    numbers = {f: n for n, f in enumerate(forms)}
    return Local(
        len(variables),
        rows,
        whole.sees,
        tuple(cut(whole.forms[f]) for f in forms),
        whole.axes,
        whole.witnesses,
        frozenset((numbers[f], a) for f, a in whole.barred if f in numbers),
    )


@lru_cache(maxsize=4096)
def local_placements(local: Local, every: bool, tight: bool = True) -> Placements:
    """Return the legal placements of a component: every one, or the (tight) maximal ones."""
    found: list[Placed] = []
    complete, reason = True, ""
    for inner in _inner_sets(local):
        part = _with_inner(local, inner, every)
        found += part.found
        if not part.complete:
            complete, reason = False, part.reason
    if local.size > MOST_VARIABLES:
        complete, reason = False, f"only {MOST_VARIABLES} variables at a time were placed"
    if not every:
        found = _maximal(local, [frozenset(), *found])
        found = _tight(local, found) if tight else found
    else:
        found.append(frozenset())
    return Placements(tuple(sorted(found, key=sorted)), complete, reason)


def _inner_sets(local: Local) -> Iterator[tuple[int, ...]]:
    for count in range(1, min(local.size, MOST_VARIABLES) + 1):
        yield from combinations(range(local.size), count)


def _with_inner(local: Local, inner: tuple[int, ...], every: bool) -> Placements:
    """Return the legal placements whose inner variables are ``inner``; unless ``every``, only those
    of which no proper part with the same inner variables is legal."""
    clauses = demands(local, inner)
    if clauses is None:
        return Placements((), True)
    legal: list[Placed] = []
    models = Models(len(local.forms) * local.axes, clauses)
    looked, most = 0, LOCAL_LIMIT * (10 if every else 1)
    try:
        for model in models:
            placed = frozenset(divmod(n, local.axes) for n in model)
            used = [literal(local, f, a) for f, a in placed]
            confirmed = is_legal(local, placed)
            if confirmed:
                legal.append(placed)
            if confirmed and not every:
                models.add([-n for n in used])
            else:
                pairs = {(f, a) for f in range(len(local.forms)) for a in range(local.axes)}
                unused = [literal(local, f, a) for f, a in pairs - placed]
                models.add([*(-n for n in used), *unused])
            looked += 1
            if looked == most:
                return Placements(tuple(legal), False, f"only {most} candidates were looked at")
    except Unknown as unknown:
        return Placements(tuple(legal), False, f"the solver gave up ({unknown})")
    if not every:
        legal = [p for p in legal if not any(other < p for other in legal)]
    return Placements(tuple(legal), True)


def _support(local: Local, placed: Placed) -> frozenset[int]:
    return frozenset(v for f, _ in placed for v in range(local.size) if local.forms[f][v])


def _maximal(local: Local, found: list[Placed]) -> list[Placed]:
    """Keep what is not the restriction of another one to some of its variables."""
    lesser: set[Placed] = set()
    for placed in found:
        support = sorted(_support(local, placed))
        for count in range(len(support)):
            for subset in map(set, combinations(support, count)):
                kept = set()
                for f, a in placed:
                    touched = {v for v in support if local.forms[f][v]}
                    if touched <= subset:
                        kept.add((f, a))
                    elif touched & subset:
                        break
                else:
                    if _support(local, frozenset(kept)) == subset:
                        lesser.add(frozenset(kept))
    return [placed for placed in found if placed not in lesser]


def _tight(local: Local, found: list[Placed]) -> list[Placed]:
    """Drop what needs more room than another one with the same inner variables."""
    kept: list[Placed] = []
    for placed in sorted(found, key=sorted):
        support = _support(local, placed)
        rivals = [o for o in kept if _support(local, o) == support]
        if any(_is_roomier(local, placed, o) for o in rivals):
            continue
        kept = [o for o in kept if o not in rivals or not _is_roomier(local, o, placed)]
        kept.append(placed)
    return kept


def _is_roomier(local: Local, one: Placed, other: Placed) -> bool:
    """Return whether ``one`` needs at least the room of ``other`` on every axis at every tile."""
    for axis in range(local.axes):
        mine = tuple(local.forms[f] for f, a in sorted(one) if a == axis)
        theirs = tuple(local.forms[f] for f, a in sorted(other) if a == axis)
        if theirs and (not mine or not never_larger(theirs, mine)):
            return False
    return True


def _canonical(placed: Placed) -> list[tuple[int, int]]:
    return sorted((a, f) for f, a in placed)
