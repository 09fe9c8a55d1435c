"""Statements of which nothing but another one's registers has the results, or what they take."""

from contextlib import suppress

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.inline import ApartError
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.finish import finishing
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.operand import fragment
from isamap.schedule.schedule import Level, StatementSchedule, Treatment
from isamap.schedule.shape import read_shape
from isamap.schedule.treatment import inputs


def may_be_taken(kernel: Kernel, number: int) -> bool:
    """Return whether some other statement may take all that a statement leaves in registers."""
    bound = bind_extents(kernel)
    for other in range(number + 1, len(bound.statements)):
        with suppress(ApartError):
            return not finishing(bound, number, (other,)).kept
    return False


def may_take(kernel: Kernel, number: int) -> bool:
    """Return whether a statement may take what some earlier one leaves in registers."""
    bound = bind_extents(kernel)
    for root in range(number):
        with suppress(ApartError):
            finishing(bound, root, (number,))
            return True
    return False


def check_plain(mapping: Mapping) -> None:
    """Raise ScheduleError if results lie so in registers that no other statement takes them."""
    needle = mapping.matching.needle
    if fragment(mapping, needle.target.buffer, frozenset(), None) is None:
        text = f"the results of {needle.name} lie in no plain order, and nothing stores them"
        raise ScheduleError(Diagnostic("E401", text))


def schedule_within(mapping: Mapping) -> StatementSchedule:
    """Return a schedule that is good only in the registers of another statement.

    The instruction gets what it takes from there; nothing brings it from memory.
    """
    shape = read_shape(mapping)
    levels = tuple(Level(v, shape.tile[v]) for v in shape.extents)
    operands: list[Treatment] = ["direct"] * len(inputs(mapping))
    return StatementSchedule(mapping, levels, tuple(operands))
