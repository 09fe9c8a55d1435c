"""Why an instruction whose statement fits computes no tile of it."""

from isamap.ir.nodes import Permissions, Statement
from isamap.ir.statements import zero_based
from isamap.mapping.groups import whole_variables
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.demands import is_restricted
from isamap.mapping.needles.needles import Needles, roots
from isamap.mapping.tied import conflicts
from isamap.mapping.tiles.allowed import refusal
from isamap.mapping.tiles.tile import tiles

MOST = 64
"""Matchings that are looked at for a reason."""


def refusals(
    statement: Statement,
    index: Needles,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> tuple[str, ...]:
    """Return a line for each instruction that the laws let compute a statement, but no tile does.

    That is so where a reduction within the value is too long for it, where its table holds other
    numbers, where a constraint of its description holds for no tile, or where an operand that it
    reads at several places would have to hold different elements.
    """
    statement = zero_based(statement)
    found: dict[str, str] = {}
    for needle, operands in roots(statement, index):
        matchings, _, _ = enumerate_matchings(
            statement, needle, operands, MOST, permissions=permissions
        )
        texts = [v.message for v in conflicts(statement, needle, operands, permissions)]
        reason = why_refused(statement, needle, matchings, permissions) or "; ".join(texts)
        if reason:
            found.setdefault(needle.name, reason)
    return tuple(f"{name}: {reason}" for name, reason in found.items())


def why_refused(
    statement: Statement, needle: Needle, matchings: tuple[Matching, ...], permissions: Permissions
) -> str:
    """Return why no tile of some matchings is allowed, or nothing if one is."""
    tried = [mapping for matching in matchings for mapping in tiles(matching)]
    whole = whole_variables(statement)
    if not tried and whole:
        extents = {v.name: v.extent for v in statement.variables}
        steps = " and ".join(f"{name} ({extents[name]} steps)" for name in sorted(whole))
        axes = ", ".join(f"{axis.name} {axis.extent}" for axis in needle.axes)
        return (
            f"it would take the whole reduction over {steps} in one instruction, and no placement "
            f"on its axes ({axes}) holds it"
        )
    if not tried or not is_restricted(needle.entry):
        return ""
    best = max(tried, key=lambda mapping: mapping.utilisation)
    return (
        refusal(best, permissions)
        if all(refusal(mapping, permissions) for mapping in tried)
        else ""
    )
