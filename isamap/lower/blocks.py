"""The register block of a statement: how many iterations of each variable, in which order."""

from collections.abc import Mapping

from isamap.ir.index import Index
from isamap.ir.nodes import Statement
from isamap.lower.fault import bad
from isamap.schedule.schedule import StatementSchedule


def innermost_last(schedule: StatementSchedule, names: Mapping[str, object]) -> tuple[str, ...]:
    """Return variables by their innermost level; those without a level come last."""
    last = {level.variable: n for n, level in enumerate(schedule.levels)}
    order = list(names)
    return tuple(sorted(order, key=lambda v: (last.get(v, len(last) + 99), order.index(v))))


def register_block(
    schedule: StatementSchedule, extents: Mapping[str, Index], tile: Mapping[str, int]
) -> dict[str, int]:
    """Return the iterations of each variable in a register block, a multiple of its tile.

    ScheduleError where the steps of the levels do not fit each other or the tile.
    """
    block: dict[str, int] = {}
    for level in schedule.levels:
        if level.step % tile[level.variable] or level.step < 1:
            raise bad(
                f"the step {level.step} of '{level.variable}' is no multiple of its tile "
                f"{tile[level.variable]}"
            )
        outer = block.get(level.variable)
        if outer is not None and (outer % level.step or outer <= level.step):
            raise bad(f"the steps of '{level.variable}' must decrease and divide")
        block[level.variable] = level.step
    for v, extent in extents.items():
        if v in block:
            continue
        if extent.constant is None:
            raise bad(f"'{v}' has an extent known at run time only and needs a level")
        block[v] = -(-max(1, extent.constant) // tile[v]) * tile[v]
    return block


def check_scatter(
    statement: Statement,
    schedule: StatementSchedule,
    tile: Mapping[str, int],
    block: Mapping[str, int],
) -> None:
    """Refuse blocks in which two tiles would write one element, and threads that would."""
    shared = scattered(statement)
    for v in shared:
        if block[v] != tile[v]:
            raise bad(f"iterations of '{v}' write the same elements: its block is one tile")
    outputs = target_variables(statement)
    for level in schedule.levels:
        if level.parallel and level.variable in shared | (block.keys() - outputs):
            raise bad(f"iterations of '{level.variable}' depend on each other: not parallel")


def target_variables(statement: Statement) -> frozenset[str]:
    """Return the variables that the statement's target uses."""
    used = statement.target.names
    return used & {v.name for v in statement.variables}


def scattered(statement: Statement) -> frozenset[str]:
    """Return the variables of the target of which different values may write one element.

    A variable is free of that if it is alone in some index, with a number as coefficient.
    """
    names = {v.name for v in statement.variables}
    alone: set[str] = set()
    for index in statement.target.indices:
        used = index.names & names
        if len(used) == 1 and index.is_linear_in(used):
            (name,) = used
            if index.coefficient(name).constant:
                alone.add(name)
    used_anywhere = statement.target.names
    return frozenset((used_anywhere & names) - alone)
