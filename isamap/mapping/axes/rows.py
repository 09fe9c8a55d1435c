"""Index expressions as integer vectors over the iteration variables that may be placed."""

from collections.abc import Sequence
from math import gcd

from isamap.ir.index import Index, Name, const, var
from isamap.mapping.axes.linear import Vector


def entangled(index: Index, variables: frozenset[str]) -> frozenset[str]:
    """Return the variables that ``index`` uses otherwise than with an integer coefficient.

    Those are the ones inside ``//``, ``%`` and reads, in products, and with a symbolic coefficient.
    """
    found: set[str] = set()
    for monomial, _ in index.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Name):
            continue
        for atom in monomial:
            found |= Index((((atom,), 1),)).names & variables
    return frozenset(found)


def row(index: Index, variables: Sequence[str]) -> Vector:
    """Return the integer coefficients of ``variables``; whatever else occurs counts as constant."""
    single = {
        monomial[0].name: c
        for monomial, c in index.terms
        if len(monomial) == 1 and isinstance(monomial[0], Name)
    }
    return tuple(single.get(name, 0) for name in variables)


def split(vector: Vector, extents: Sequence[int | None]) -> tuple[Vector, ...]:
    """Split a row into rows that its value determines, by the ranges of the variables.

    ``16*g + c`` with ``0 <= c < 16`` determines ``g`` and ``c``; in general a leading group whose
    coefficients have a common divisor greater than the range of the rest is determined, and so is
    the rest.  Variables without a known extent (None) are never in the rest.
    """
    order = sorted((i for i, c in enumerate(vector) if c), key=lambda i: -abs(vector[i]))
    for cut in range(1, len(order)):
        divisor = gcd(*(vector[i] for i in order[:cut]))
        reach = 0
        for i in order[cut:]:
            extent = extents[i]
            if extent is None:
                break
            reach += abs(vector[i]) * (extent - 1)
        else:
            if divisor > reach:
                lead = tuple(c if i in order[:cut] else 0 for i, c in enumerate(vector))
                rest = tuple(c if i in order[cut:] else 0 for i, c in enumerate(vector))
                return (*split(lead, extents), *split(rest, extents))
    return (vector,) if order else ()


def as_form(vector: Vector, variables: Sequence[str]) -> Index:
    """Return a vector as an index expression."""
    total = const(0)
    for coefficient, name in zip(vector, variables, strict=True):
        total += var(name) * coefficient
    return total
