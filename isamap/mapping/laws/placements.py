"""The legal placements of one component: Z3 proposes, the laws' own checker confirms."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

from isamap.mapping.axes.room import never_larger
from isamap.mapping.laws.clauses import demands, literal
from isamap.mapping.laws.composite import is_roomier
from isamap.mapping.laws.laws import Placed, is_legal
from isamap.mapping.laws.problem import Local
from isamap.solver.models import Models, Unknown

Listed: TypeAlias = Literal["every", "maximal", "tight"]
"""Which legal placements: every one, the irredundant maximal ones, the tight ones of these."""

LOCAL_LIMIT = 20_000
"""Candidates of one component and one set of inner variables that are looked at."""

MOST_VARIABLES = 8
"""Variables of a component that are placed together at most."""


@dataclass(frozen=True, slots=True)
class Placements:
    """Legal placements of a component, in canonical order."""

    found: tuple[Placed, ...]
    complete: bool
    reason: str = ""


@lru_cache(maxsize=4096)
def local_placements(local: Local, listed: Listed = "tight") -> Placements:
    """Return the legal placements of a component, the one without forms included.

    Maximality and tightness are meant among the placements that ``local`` allows: within a family,
    and under one choice of constants.
    """
    found: list[Placed] = []
    complete, reason = True, ""
    for inner in _inner_sets(local):
        part = _with_inner(local, inner, listed == "every")
        found += part.found
        if not part.complete:
            complete, reason = False, part.reason
    if local.size > MOST_VARIABLES:
        complete, reason = False, f"only {MOST_VARIABLES} variables at a time were placed"
    empty = [frozenset[tuple[int, int]]()]
    if local.registers and not is_legal(local, empty[0]):
        empty = []  # What is computed with no digits at all may need two elements in one place.
    if listed == "every":
        found += empty
    else:
        found = _maximal(local, [*empty, *found])
        found = _tight(local, found) if listed == "tight" else found
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
    looked, most = 0, LOCAL_LIMIT
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
    if local.seen:
        return is_roomier(local, one, other)
    for axis in range(local.axes):
        mine = tuple(local.forms[f] for f, a in sorted(one) if a == axis)
        theirs = tuple(local.forms[f] for f, a in sorted(other) if a == axis)
        if theirs and (not mine or not never_larger(theirs, mine)):
            return False
    return True
