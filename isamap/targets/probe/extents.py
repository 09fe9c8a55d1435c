"""Values of the extents that a use of an instruction chooses: partial counts, strides."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, var
from isamap.ir.nodes import Instruction

_COMBINATIONS = 2048
"""Combinations of ranges that are all taken; of more, so many are."""

_FAR = 53
"""Elements between rows that are far apart."""

_SEARCHED = 65
"""Pitches that are tried one after the other until constraints hold."""

_ONE_ROW, _LAPPING = -2, -1
"""In place of a gap: rows that are one and the same, and rows that have elements in common.

Only operands that are read have such rows: code reads a row again and again as one of pitch 0.
"""


def free(instruction: Instruction) -> tuple[str, ...]:
    """Return the extents that a use chooses: those with a range, and pitches."""
    return tuple(e.name for e in instruction.extents if e.value is None)


def taken(instruction: Instruction) -> tuple[tuple[str, Index], ...]:
    """Return the extents that a use chooses, as the numbers of :func:`given` have them."""
    read = read_only(instruction)
    return tuple((name, var(name) - (name in read)) for name in free(instruction))


def given(instruction: Instruction, chosen: Mapping[str, int]) -> tuple[int, ...]:
    """Return the numbers that tell a function its extents: at least 1, where pitches may be 0."""
    read = read_only(instruction)
    return tuple(chosen[name] + (name in read) for name in free(instruction))


def usual(entry: Entry) -> dict[str, int] | None:
    """Return the largest extents and the least pitches; None if no use of them is known."""
    instruction = entry.instruction
    if any(e.least is not None and e.value is None for e in instruction.extents):
        return None
    chosen = {e.name: e.range[1] - 1 for e in instruction.extents if e.value is None and e.range}
    return _pitched(entry, chosen, 0)


def largest(entry: Entry) -> dict[str, int]:
    """Return extents that are no smaller than those of any combination."""
    instruction = entry.instruction
    chosen = {e.name: e.range[1] - 1 for e in instruction.extents if e.value is None and e.range}
    return _with_pitches(instruction, chosen, _FAR + _SEARCHED)


def combinations(entry: Entry, generator: np.random.Generator) -> list[dict[str, int]]:
    """Return all combinations of the extents with ranges, each with some pitches.

    Where there are more than some thousands a random part of them is returned.
    """
    instruction = entry.instruction
    ranges = {e.name: range(*e.range) for e in instruction.extents if e.value is None and e.range}
    pitches = [e.name for e in instruction.extents if e.value is None and not e.range]
    count = int(np.prod([len(r) for r in ranges.values()], dtype=object))
    if count <= _COMBINATIONS:
        listed = [dict(zip(ranges, values, strict=True)) for values in product(*ranges.values())]
    else:
        listed = [
            {name: int(generator.integers(r.start, r.stop)) for name, r in ranges.items()}
            for _ in range(_COMBINATIONS)
        ]
    found = []
    for number, chosen in enumerate(listed):
        turns = max(1, 4 // len(listed)) if pitches else 1
        for turn in range(number, number + turns):
            # Dense rows, rows with a gap, rows far apart.
            gap = (0, int(generator.integers(1, 8)), _FAR, 1)[turn % 4]
            values = _pitched(entry, chosen, gap)
            if values is not None:
                found.append(values)
    if read_only(instruction):
        # Of the largest and of the least, which rows of one element may be.
        for gap in (_ONE_ROW, _LAPPING):
            for chosen in (listed[-1], listed[0]):
                values = _pitched(entry, chosen, gap)
                if values is not None and values not in found:
                    found.append(values)
    return found


def _pitched(entry: Entry, chosen: Mapping[str, int], gap: int) -> dict[str, int] | None:
    """Return extents with pitches that leave a gap, and a little more where constraints want it.

    None if the constraints do not hold then.
    """
    pitched = len(chosen) < len(free(entry.instruction)) and gap >= 0
    for more in range(_SEARCHED if pitched else 1):
        tried = _with_pitches(entry.instruction, chosen, gap + more)
        if _permitted(entry, tried):
            return tried
    return None


def _with_pitches(instruction: Instruction, chosen: Mapping[str, int], gap: int) -> dict[str, int]:
    """Return extents with pitches: each leaves a gap behind what lies inside it.

    Those of inner dimensions come first, as they decide how far a row reaches.
    """
    values = dict(chosen)
    pitches = [e.name for e in instruction.extents if e.value is None and not e.range]
    read = read_only(instruction)
    for name in sorted(pitches, key=lambda name: _depth(instruction, name), reverse=True):
        row = _row(instruction, name, values)
        values[name] = row + max(0, gap)
        if name in read and gap < 0:
            values[name] = 0 if gap == _ONE_ROW else row // 2
    return values


def read_only(instruction: Instruction) -> frozenset[str]:
    """Return the pitches of operands that are read, and of no others."""
    used: dict[bool, set[str]] = {True: set(), False: set()}
    for operand in instruction.places:
        for stride in operand.strides or ():
            used[operand.role == "in"] |= stride.names
    names = (e.name for e in instruction.extents if e.value is None and not e.range)
    return frozenset(name for name in names if name in used[True] - used[False])


def _depth(instruction: Instruction, pitch: str) -> int:
    """Return the innermost dimension of which it is the pitch."""
    strides = (o.strides or () for o in instruction.places)
    found = (at for dims in strides for at, s in enumerate(dims) if pitch in s.names)
    return max(found, default=-1)


def _permitted(entry: Entry, chosen: Mapping[str, int]) -> bool:
    """Whether the constraints that name only extents hold; those of axes, which are whole, too."""
    instruction = entry.instruction
    values = {e.name: e.value for e in instruction.extents if e.value is not None} | dict(chosen)
    for statement in instruction.statements:
        for variable in statement.variables:
            values.setdefault(variable.name, int(variable.extent.evaluate(values)))
    return all(constraint.holds(values) for constraint in entry.constraints)


def _row(instruction: Instruction, pitch: str, chosen: Mapping[str, int]) -> int:
    """Return the least pitch at which elements do not overlap, by the pitches that are chosen."""
    values = {e.name: e.value for e in instruction.extents if e.value is not None} | dict(chosen)
    least = 1
    for operand in instruction.places:
        strides: tuple[Index, ...] = operand.strides or ()
        if any(pitch in stride.names for stride in strides):
            reach = 1 + sum(
                (int(extent.evaluate(values)) - 1) * int(stride.evaluate(values))
                for extent, stride in zip(operand.shape, strides, strict=True)
                if values.keys() >= set(stride.names)
            )
            least = max(least, reach)
    return least
