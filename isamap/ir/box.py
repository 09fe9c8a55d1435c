"""The least and greatest values of index expressions over boxes."""

from collections.abc import Mapping

from isamap.ir.index import Index, const, var

Extents = Mapping[str, Index]
"""Iterations of each variable of a statement, which start at 0."""


def box(index: Index, extents: Extents) -> tuple[Index | None, Index | None]:
    """Return the least and the greatest value of ``index``, where they have a closed form."""
    if still := {name: 0 for name, extent in extents.items() if extent.constant == 1}:
        index = index.substitute(still)
        extents = {name: extent for name, extent in extents.items() if name not in still}
    if index.is_linear_in(extents) and not index.reads:
        low = high = index.substitute({name: 0 for name in extents})
        for name, extent in extents.items():
            coefficient = index.coefficient(name).constant
            if coefficient is None:
                return None, None
            reach = coefficient * (extent - 1)
            low, high = (low, high + reach) if coefficient > 0 else (low + reach, high)
        return low, high
    ranges = {n: (0, e.constant - 1) for n, e in extents.items() if e.constant is not None}
    bounds = index.bounds(ranges)
    return (const(bounds[0]), const(bounds[1])) if bounds else (None, None)


def is_nonnegative(index: Index) -> bool:
    """Return whether ``index`` is known never to be negative, if every name is at least 1."""
    if index.constant is not None:
        return index.constant >= 0
    # Substituting name = 1 + rest leaves a polynomial whose coefficients decide the easy cases.
    shifted = index.substitute({name: var(name) + 1 for name in index.names})
    return all(c >= 0 for _, c in shifted.terms)
