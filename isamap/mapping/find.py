"""All mappings of one statement on a machine."""

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Permissions, Statement
from isamap.ir.statements import zero_based
from isamap.mapping.enumerate import enumerate_matchings
from isamap.mapping.linear import primitive
from isamap.mapping.matching import Enumeration, Mapping
from isamap.mapping.needles import Needles, covered, needles, roots
from isamap.mapping.rows import as_form, row
from isamap.mapping.tile import tiles
from isamap.mapping.wording import expression_text

LIMIT = 4096
"""Mappings of a statement that are listed unless more are asked for."""


def enumerate_mappings(
    statement: Statement,
    accelerator: Accelerator | Needles,
    permissions: Permissions,
    limit: int = LIMIT,
) -> Enumeration:
    """Return the mappings of a statement, best first, at most ``limit`` of them.

    The statement of the result starts all its variables at 0.  Mappings whose instruction does more
    of its operations come first, then those with the higher utilisation, then by their text.
    An index of the machine's needles may be given in its place, to share it between statements.
    """
    index = accelerator if isinstance(accelerator, Needles) else needles(accelerator)
    statement = zero_based(statement)
    found: list[Mapping] = []
    reasons: list[str] = []
    for needle, operands in roots(statement, index):
        matchings, complete, reason = enumerate_matchings(
            statement, needle, operands, limit, permissions=permissions
        )
        if not complete:
            reasons.append(f"{needle.name}: {reason}")
        for matching in matchings:
            found += tiles(matching)
    # A tile that leaves a variable at extent 1 is also a tile of the matching without it.
    distinct: dict[object, Mapping] = {}
    for mapping in sorted(found, key=_rank):
        distinct.setdefault(_work(mapping), mapping)
    kept = list(distinct.values())
    if len(kept) > limit:
        reasons.append(f"the limit of {limit} mappings was reached")
    return Enumeration(statement, tuple(kept[:limit]), not reasons, "; ".join(reasons))


def describe(mapping: Mapping) -> str:
    """Return a mapping as one line of text: instruction, operands, digits on each axis."""
    matching = mapping.matching
    bound = ", ".join(f"{name} = {expression_text(expr)}" for name, expr in matching.operands)
    axes = "; ".join(
        f"{axis} <- {', '.join(digits)}" for axis, digits in _digits(mapping) if digits
    )
    tile = ", ".join(f"{name} {t}" for name, t in mapping.tile.items() if t > 1)
    return f"{matching.needle.name}({bound}) {axes or 'one iteration'} [{tile}]"


def _rank(mapping: Mapping) -> tuple[int, float, str]:
    return -covered(mapping.matching.needle), -mapping.utilisation, describe(mapping)


def _digits(mapping: Mapping) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the digits on each axis that the tile makes longer than 1."""
    result = []
    for axis in mapping.matching.needle.axes:
        digits = []
        for form in mapping.matching.on_axis(axis.name):
            moving = [v for v in mapping.matching.inner if v in form.names and mapping.tile[v] > 1]
            if moving:
                digits.append(str(as_form(primitive(row(form, moving)), moving)))
        result.append((axis.name, tuple(digits)))
    return tuple(result)


def _work(mapping: Mapping) -> object:
    """Return what two mappings share that run the same instructions on the same data."""
    needle = mapping.matching.needle
    tile = tuple((v, t) for v, t in mapping.tile.items() if t > 1)
    reading = (needle.name, needle.reduction, needle.tied)
    return reading, mapping.matching.operands, _digits(mapping), tile
