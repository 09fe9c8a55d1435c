"""Results that an overlap computes again: that must leave them as they are."""

from isamap.ir.index import Index, const
from isamap.ir.statements import accesses
from isamap.lower.fault import bad
from isamap.lower.finish import Finishing
from isamap.lower.position import Position
from isamap.lower.statement import StatementLowering
from isamap.schedule.overlap import no_overlap, overlapped
from isamap.schedule.treatment import inputs

PACKED = ("packed", "repeated")
"""Treatments after which elements lie in whole tiles."""


def check_again(at: StatementLowering, after: Finishing, accumulate_at: int) -> None:
    """ScheduleError unless results of a statement may be computed again where loops overlap.

    They may where they are complete in their registers and nothing that is written on the way is
    read; ``accumulate_at`` is the number of loops outside the accumulators.
    """
    levels, statement = at.schedule.levels, at.statement
    for v in sorted(overlapped(at.schedule)):
        depth = max(n for n, level in enumerate(levels) if level.variable == v)
        why = no_overlap(at.mapping, v) or _touched_again(at, after) or _copied(at, v, depth)
        if not levels[depth].overlap:
            why = "a loop inside the one that overlaps is over it, too"
        if any(level.variable not in at.output_variables for level in levels[:accumulate_at]):
            why = f"{statement.target.buffer} is computed in parts"
        if why:
            raise bad(f"'{v}' cannot overlap: {why}")


def _touched_again(at: StatementLowering, after: Finishing) -> str | None:
    """Return why results that are computed twice are not those that are computed once."""
    statement, is_sum = at.statement, at.statement.reduction != "="
    name = statement.target.buffer
    if is_sum and (at.initialise == "load" or at.result_in_memory):
        return f"what {name} holds is added to"
    if at.result_in_memory and at.needle.tied is not None:
        return f"{at.needle.name} overwrites what it reads in memory"
    written = {finish.target.buffer for finish in after.finishes} | {name}
    values = list(accesses(statement.value))
    for finish in after.finishes:
        values += [a for a in accesses(finish.value) if a != finish.result]
    read = {a.buffer for a in values}
    for access in (statement.target, *values):
        read |= {r.buffer for index in access.indices for r in index.reads}
    if both := sorted(written & read):
        return f"{both[0]} is read and written"
    return None


def _copied(at: StatementLowering, variable: str, depth: int) -> str | None:
    """Return why what is copied is not found where the last iterations begin earlier."""
    kinds = at.schedule.operands
    for number, (kind, (_, access)) in enumerate(zip(kinds, inputs(at.mapping), strict=False)):
        inside = at.schedule.copied_inside(number)
        if variable in access.names and inside <= depth and (inside or kind in PACKED):
            return f"{access.buffer} is {kind} outside its last loop, in whole tiles or parts"
    return None


def whole_tiles(
    position: Position, variable: str, tile: int, origin: Index, rest: int
) -> tuple[Index, Index]:
    """Return where the last ``rest`` iterations, which begin at ``origin``, fill whole tiles, and
    how many they are then.
    """
    back = -rest % tile
    if not position.is_nonnegative(origin - back):
        raise bad(f"'{variable}' cannot overlap: nothing comes before its last {rest} iterations")
    return origin - back, const(rest + back)
