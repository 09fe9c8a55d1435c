"""Fragments that the border of a buffer cuts: some of their elements are padding."""

from isamap.ir.index import Index, const
from isamap.mapping.fragments.fragment import Aside, Fragment, Reference
from isamap.mapping.fragments.layout import PaddedLayout, padded


def guards_of(
    reference: Reference, fragment: Fragment
) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """Return the guards of a reference by which elements of a fragment may differ, and the others.

    Where one of the others fails, all elements are padding.
    """
    laid = laid_out(fragment)
    cutting = tuple(guard for guard in reference.guards if guard.names & laid)
    return cutting, tuple(guard for guard in reference.guards if not guard.names & laid)


def laid_out(fragment: Fragment) -> frozenset[str]:
    """Return the variables that move along a fragment."""
    return frozenset(v for v, tile in tiles_of(fragment).items() if tile > 1)


def tiles_of(fragment: Fragment) -> dict[str, int]:
    """Return how many iterations of each variable a whole fragment takes."""
    found: dict[str, int] = {}
    for part in (p for dim in fragment.dims for digit in dim for p in digit.pieces):
        found[part.variable] = max(part.tile * part.every, found.get(part.variable, 1))
    return found


def cut_out(aside: Aside, fragment: Fragment) -> PaddedLayout | None:
    """Return how a whole fragment, that of the first iterations, lies where it is copied to.

    None if the elements that it reaches have no closed form.
    """
    extents = dict.fromkeys(aside.access.names, const(1))
    extents |= {v: const(tile) for v, tile in tiles_of(fragment).items()}
    return padded(aside.array, aside.access, extents)
