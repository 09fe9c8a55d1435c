"""Loops whose last iterations begin earlier, so that they fill whole tiles.

Of 196 rows in tiles of 16, four are left over.  Instructions that take part of a tile are slow, or
there are none; rows 180 to 195 are a whole one.  Twelve of them are then computed twice, which does
no harm where nothing that is computed is read again.
"""

from collections.abc import Sequence
from dataclasses import replace

from isamap.mapping.matching import Mapping
from isamap.schedule.schedule import Level, StatementSchedule
from isamap.schedule.treatment import inputs


def no_overlap(mapping: Mapping, variable: str) -> str | None:
    """Return why the last iterations of a variable cannot fill a tile by beginning earlier."""
    statement = mapping.matching.statement
    if variable not in statement.target.names:
        return "its iterations add to the same results"
    tile = mapping.tile.get(variable, 1)
    extent = next(v.extent for v in statement.variables if v.name == variable).constant
    if extent is None:
        return "how many iterations there are is known when the code runs only"
    if extent % tile == 0:
        return f"its {extent} iterations fill tiles of {tile}"
    if extent < tile:
        return f"its {extent} iterations do not fill one tile of {tile}"
    return None


def overlapped(schedule: StatementSchedule) -> frozenset[str]:
    """Return the variables whose last iterations begin earlier."""
    return frozenset(level.variable for level in schedule.levels if level.overlap)


def cut_tails(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return loops none of which overlaps."""
    return tuple(replace(level, overlap=False) for level in levels)


def overlapping(schedule: StatementSchedule) -> StatementSchedule | None:
    """Return a schedule whose tails begin earlier, of as many variables as can; None if of none.

    What is packed has whole tiles anyway, with something at the end.  Results that are computed in
    parts are not computed again.
    """
    levels = list(schedule.levels)
    innermost = {level.variable: n for n, level in enumerate(levels)}
    outputs = schedule.mapping.matching.statement.target.names
    last = max((n for v, n in innermost.items() if v in outputs), default=0)
    if any(level.variable not in outputs for level in levels[:last]):
        return None
    fixed: set[str] = set()
    for number, (kind, (_, access)) in enumerate(
        zip(schedule.operands, inputs(schedule.mapping), strict=False)
    ):
        if kind in ("packed", "repeated"):
            depth = schedule.copied_inside(number)
            fixed |= {v for v, n in innermost.items() if v in access.names and n >= depth}
    for v, n in innermost.items():
        if v not in fixed and not levels[n].overlap and no_overlap(schedule.mapping, v) is None:
            levels[n] = replace(levels[n], overlap=True)
    if tuple(levels) == schedule.levels:
        return None
    return replace(schedule, levels=tuple(levels))
