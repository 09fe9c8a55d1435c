"""The order in which the calls of a lowered kernel come, by the schedule, with all in its place."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.hw.accelerator import Accelerator
from isamap.lower.abreast import calls_abreast
from isamap.lower.capacity import excess
from isamap.lower.nodes import LoweredKernel
from isamap.lower.number import number_registers
from isamap.lower.place import place_fragments
from isamap.lower.unchanged import unchanged_kept
from isamap.schedule.schedule import Schedule


def in_order(whole: LoweredKernel, accelerator: Accelerator, schedule: Schedule) -> LoweredKernel:
    """Return a lowered kernel with its calls as a schedule orders them, and fragments in places.

    What the schedule leaves to the rule is the best order in which all has room, and the last one
    that may be where it has in none.
    """
    found = whole
    for ordered in _orders(whole, accelerator, schedule):
        found = place_fragments(number_registers(ordered, accelerator), accelerator)
        if accelerator.is_reordered or excess(found, accelerator) is None:
            break
    return found


def as_ordered(schedule: Schedule, lowered: LoweredKernel) -> Schedule:
    """Return a schedule that says how the calls were ordered of what it was lowered to.

    Where an order makes no difference it says nothing of that.
    """
    return replace(schedule, abreast=lowered.abreast, once=lowered.once)


def _orders(
    whole: LoweredKernel, accelerator: Accelerator, schedule: Schedule
) -> Iterator[LoweredKernel]:
    """Yield the orders that a schedule permits, the best first."""
    for kept, once in _either(unchanged_kept(whole, accelerator), whole, schedule.once):
        for own, abreast in _either(calls_abreast(kept, accelerator), kept, schedule.abreast):
            yield replace(own, abreast=abreast, once=once)


def _either(
    better: LoweredKernel, plain: LoweredKernel, wanted: bool | None
) -> Iterator[tuple[LoweredKernel, bool | None]]:
    """Yield which of two is permitted, the better one first, and whether it is that; None for both
    where they are the same."""
    if better == plain:
        yield plain, None
        return
    if wanted is not False:
        yield better, True
    if wanted is not True:
        yield plain, False
