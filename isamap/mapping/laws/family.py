"""Families: which of the placements that the laws allow are wanted.

Each family is a set of matchings with its own definition; ``exact``, ``broadcast``, ``diagonal``
and ``embedded`` are nested in this order.

- ``exact``: every form is a single variable, on at most one axis, and an operand of the instruction
  sees this axis if and only if the variable occurs in the kernel operand that is bound to it.  (The
  mappings of AMOS, Zheng et al., ISCA 2022, are of this kind.)
- ``broadcast``: every form is a single variable, on at most one axis.
- ``diagonal``: every form is a single variable, on any axes.
- ``embedded``: every form of the statement, on any axes.
- ``split``: as ``diagonal``, but the elements of the result may be spread over several places of
  the instruction's target (law 2 is dropped), whose partial results are added up afterwards.
  Reductions that may not be reassociated, and assignments, cannot be split; for them it is the same
  as ``diagonal``.
"""

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from isamap.mapping.laws.problem import Local

Family: TypeAlias = Literal["exact", "broadcast", "diagonal", "embedded", "split"]
FAMILIES: tuple[Family, ...] = get_args(Family)


def within(whole: Local, family: Family, *, splittable: bool = False) -> Local:
    """Return the laws' data with the demands of a family added.

    ``splittable`` says that partial results of the statement may be combined in any order.
    """
    if family == "embedded":
        return whole
    outside = {
        (f, axis)
        for f, form in enumerate(whole.forms)
        for axis in range(whole.axes)
        if sum(map(bool, form)) > 1
        or (family == "exact" and not _sees_what_depends(whole, form.index(1), axis))
    }
    return replace(
        whole,
        outside=frozenset(outside),
        once=family in ("exact", "broadcast"),
        owned=not (family == "split" and splittable),
    )


def _sees_what_depends(whole: Local, variable: int, axis: int) -> bool:
    """Return whether exactly the operands that depend on a variable see an axis."""
    return all(
        (axis in sees) == any(r[variable] for r in rows)
        for sees, rows in zip(whole.sees, whole.rows, strict=True)
    )
