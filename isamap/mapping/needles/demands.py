"""The constraints of an instruction at one use: counts of elements, pitches in memory."""

from collections.abc import Mapping, Sequence
from itertools import product

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const
from isamap.ir.literal import value
from isamap.ir.nodes import Buffer, Extent, Instruction


def free_pitches(instruction: Instruction) -> dict[str, Extent]:
    """Return the extents that follow how operands lie in memory, not how much of them is in use.

    One with a range is a pitch, too, if no shape has it, and then of these values only.
    """
    shapes = frozenset[str]().union(*(n.names for o in instruction.operands for n in o.shape))
    free = (e for e in instruction.extents if e.value is None)
    return {e.name: e for e in free if e.range is None or e.name not in shapes}


def broken(entry: Entry, counts: Mapping[str, Sequence[int]], pitches: Mapping[str, Index]) -> str:
    """Return the constraint that may not hold for some counts and pitches, or nothing.

    ``counts`` has the numbers that an axis or an extent may take, ``pitches`` may have symbols.
    """
    known = {e.name: const(e.value) for e in entry.instruction.extents if e.value is not None}
    for constraint in entry.constraints:
        if not constraint.names <= counts.keys() | pitches.keys() | known.keys():
            return constraint.text
        names = sorted(constraint.names & counts.keys())
        for numbers in product(*(counts[name] for name in names)):
            values = {name: const(n) for name, n in zip(names, numbers, strict=True)}
            if constraint.decided({**known, **pitches, **values}) is not True:
                return constraint.text
    return ""


def axis_rooms(entry: Entry, rooms: Mapping[str, int]) -> dict[str, int]:
    """Return how many positions of each axis may be used, where a constraint bounds it alone."""
    found = dict(rooms)
    known = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
    for constraint in entry.constraints:
        free = constraint.names - known.keys()
        if len(free) != 1 or not free <= found.keys():
            continue
        (axis,) = free
        holding = [n for n in range(1, found[axis] + 1) if constraint.holds({**known, axis: n})]
        found[axis] = max(holding, default=1)
    return found


def is_restricted(entry: Entry) -> bool:
    """Return whether an instruction has tables or constraints at all."""
    return bool(entry.constraints) or any(o.contents for o in entry.instruction.operands)


def is_partial(entry: Entry) -> bool:
    """Return whether an instruction is defined for some values of its operands only."""
    return any(operand.values is not None for operand in entry.instruction.operands)


def defined_for(operand: Buffer) -> tuple[int, int] | None:
    """Return the ends of the values for which an instruction is defined; None: for all."""
    if operand.values is None:
        return None
    low, high = (int(value(end)) for end in operand.values)
    return low, high
