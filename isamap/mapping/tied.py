"""Why an instruction that reads an operand at several places computes nothing of a statement."""

from itertools import product

from isamap.ir.index import const, var
from isamap.ir.nodes import Permissions, Statement
from isamap.mapping.checks.legal import Violation, violations
from isamap.mapping.laws.enumerate import list_matchings
from isamap.mapping.matching import Matching, Needle, Placement
from isamap.mapping.needles.needles import Bindings
from isamap.mapping.tiles.shared import wholly_shared
from isamap.mapping.tiles.tile import tiles

TRIED = 1024
"""Placements that are looked at to tell whether only padding is in the way."""


def conflicts(
    statement: Statement, needle: Needle, operands: Bindings, permissions: Permissions
) -> tuple[Violation, ...]:
    """Return what its places want that one register cannot hold; nothing if that is not why.

    The statement starts its variables at 0.
    """
    if not needle.places:
        return ()
    listing = list_matchings(statement, needle, operands, permissions=permissions)
    if listing.count == 0:
        # Not even one iteration at a time is legal.
        padding = _only_padding(statement, needle, operands, permissions)
        if padding is not None:
            return (padding,)
        found = violations(Matching(statement, needle, tuple(operands), ()), permissions)
        return tuple(v for v in found if v.law == 5) or found
    extents = {v.name: v.extent for v in statement.variables}
    axes = ", ".join(f"{axis.name} {axis.extent}" for axis in needle.axes)
    texts = []
    for matching in listing:
        if tiles(matching):
            return ()
        whole = " and ".join(f"{v} ({extents[v]} steps)" for v in sorted(wholly_shared(matching)))
        texts.append(
            f"its operand is one register for several places: it would take all of {whole} at "
            f"once, and no placement on its axes ({axes}) holds them"
        )
    return (Violation(5, texts[0]),)


def _only_padding(
    statement: Statement, needle: Needle, operands: Bindings, permissions: Permissions
) -> Violation | None:
    """Return why short tiles fail where one register holds what its places want otherwise.

    Tried are placements of single variables, each on at most one axis, the fullest first.
    """
    names = [v.name for v in statement.variables if v.extent != const(1)]
    axes = [axis.name for axis in needle.axes]
    if (len(axes) + 1) ** len(names) > TRIED:
        return None
    ways = sorted(product((None, *axes), repeat=len(names)), key=lambda way: way.count(None))
    for way in ways:
        placed = tuple(
            Placement(var(name), axis)
            for name, axis in zip(names, way, strict=True)
            if axis is not None
        )
        found = violations(Matching(statement, needle, tuple(operands), placed), permissions)
        if found and all(v.law == 4 for v in found):
            shown = ", ".join(f"{p.axis} <- {p.form}" for p in placed)
            return Violation(4, f"with {shown}, {found[0].message}")
    return None
