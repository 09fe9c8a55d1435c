"""Why an instruction that reads an operand at several places computes nothing of a statement."""

from isamap.ir.nodes import Permissions, Statement
from isamap.mapping.checks.legal import violations
from isamap.mapping.laws.enumerate import list_matchings
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.needles import Bindings
from isamap.mapping.tiles.shared import wholly_shared
from isamap.mapping.tiles.tile import tiles


def conflicts(
    statement: Statement, needle: Needle, operands: Bindings, permissions: Permissions
) -> tuple[str, ...]:
    """Return what its places want that one register cannot hold; nothing if that is not why.

    The statement starts its variables at 0.
    """
    if not needle.places:
        return ()
    listing = list_matchings(statement, needle, operands, permissions=permissions)
    if listing.count == 0:
        # Not even one iteration at a time is legal.
        found = violations(Matching(statement, needle, tuple(operands), ()), permissions)
        return tuple(v.message for v in found if v.law == 5) or tuple(v.message for v in found)
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
    return (texts[0],)
