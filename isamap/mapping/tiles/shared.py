"""Operands of a matching that are read at several places: what tiles and movements must know.

Such an operand is one register.  Where one place uses all that the others use it is brought as that
place wants it; else it is gathered, element by element, from what all of them want.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from isamap.ir.nodes import Access, Expr
from isamap.ir.statements import accesses
from isamap.mapping.laws.agree import Agreement
from isamap.mapping.laws.composite import layout_of
from isamap.mapping.laws.functional import agreement
from isamap.mapping.laws.problem import Problem, problem
from isamap.mapping.matching import Matching


def wholly_shared(matching: Matching) -> frozenset[str]:
    """Return the variables of which a tile must have all iterations.

    They are those of which places of one operand want elements in another way: in a second tile
    the register would have to hold two things.
    """
    if not matching.needle.places:
        return frozenset()
    whole, placed = _placed(matching)
    return frozenset(whole.variables[v] for v in placed.whole())


def brought(matching: Matching) -> tuple[tuple[str, Expr], ...]:
    """Return the operands that are brought to the instruction, each once.

    One that is read at several places goes by the name of one of them, as which it is brought.
    """
    if not matching.needle.places:
        return matching.fed
    leading = _leading(matching)
    return tuple((name, expr) for name, expr in matching.fed if leading.get(name) is not None)


def gathered(matching: Matching, operand: str) -> tuple[tuple[str, Expr], ...]:
    """Return the places from which an operand of :func:`brought` is gathered; none if it is not."""
    if not matching.needle.places:
        return ()
    return _leading(matching).get(operand) or ()


def accesses_of(matching: Matching, operand: str) -> tuple[Access, ...]:
    """Return the accesses from which an operand of :func:`brought` is made, each once."""

    def read() -> tuple[Access, ...]:
        places = gathered(matching, operand) or ((operand, matching.bound(operand)),)
        return tuple(dict.fromkeys(access for _, expr in places for access in accesses(expr)))

    return matching.answer(("accesses", operand), read)


def places_of(matching: Matching, operand: str) -> tuple[str, ...]:
    """Return the names of all places of the operand that is read under a name."""
    needle = matching.needle
    owner = needle.owner(operand)
    return (owner, *(name for name, its in needle.places if its == owner))


@dataclass(frozen=True, slots=True)
class _Known:
    """A matching that is told from others by what can be compared fast."""

    parts: tuple[object, ...]
    matching: Matching = field(compare=False)


def _leading(matching: Matching) -> dict[str, tuple[tuple[str, Expr], ...] | None]:
    """Return for each name the places from which it is gathered; None if another one leads."""
    needle, statement = matching.needle, matching.statement
    parts = (id(needle.entry), needle.value, needle.axes, statement, matching.operands)
    return _leading_of(_Known((*parts, matching.placements), matching))


@lru_cache(maxsize=4096)
def _leading_of(known: _Known) -> dict[str, tuple[tuple[str, Expr], ...] | None]:
    matching = known.matching  # It is kept, so that the entry's id stays its own.
    whole, placed = _placed(matching)
    found: dict[str, tuple[tuple[str, Expr], ...] | None] = {n: () for n, _ in matching.fed}
    for register in whole.registers:
        names = [whole.operands[place.operand] for place in register.places]
        serving = next(
            (
                name
                for name, place in zip(names, register.places, strict=True)
                if all(other is place or placed.covers(place, other) for other in register.places)
            ),
            None,
        )
        exprs = [matching.bound(name) for name in names]
        if serving is None and not any(accesses(expr) for expr in exprs):
            serving = names[0]  # A constant is the same everywhere.
        for name in names:
            if name != (serving or names[0]):
                found[name] = None
            elif serving is None:
                found[name] = tuple(zip(names, exprs, strict=True))
    return found


def _placed(matching: Matching) -> tuple[Problem, Agreement]:
    whole = problem(matching.statement, matching.needle, matching.operands)
    layout = layout_of(whole, matching.placements)
    assert layout is not None, "the matching is legal"
    return whole, agreement(whole.local(whole.fillings[0]), layout)
