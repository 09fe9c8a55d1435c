"""Copies that transpose: rows of memory become columns, a block of them at a time in vectors."""

from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from isamap.ir.index import Index
from isamap.lower.nodes import Copy
from isamap.schedule.copied import TURNED, WOVEN

VECTOR = 16
"""Bytes of the vectors that a block is made of: every machine with vectors has such."""

Loops: TypeAlias = tuple[tuple[str, Index], ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A copy of which ``row`` counts rows of the source, whose units lie side by side in the
    target.

    A unit is one element or the elements that ``unit`` counts, 1 to 8 ``bytes`` together.
    ``columns`` count units of a row, which follow each other there: where rows lie in pieces of a
    few columns, the first of them counts pieces, and the others, to the innermost one, those of a
    piece.  ``outer`` are the copy's other counters.  ``conditions`` are the copy's, but of whole
    units, and of columns counted through all pieces by the innermost counter; each has ``row`` or
    that one alone in it, or neither.
    """

    outer: Loops
    row: tuple[str, Index]
    columns: Loops
    unit: tuple[str, Index] | None
    bytes: int
    conditions: tuple[Index, ...]

    @property
    def block(self) -> int:
        """The rows and the columns of a block of vectors."""
        return VECTOR // self.bytes

    @property
    def piece(self) -> int:
        """The columns of a piece, one where rows lie in no pieces."""
        return prod(count.constant or 1 for _, count in self.columns[1:])

    @property
    def across(self) -> Index:
        """The columns of a row."""
        return self.columns[0][1] * self.piece

    @property
    def inner(self) -> Loops:
        """The counters that are turned together, those of rows first."""
        return (self.row, *self.columns, *([self.unit] if self.unit is not None else []))


def turn_of(copy: Copy, size: int) -> Turn | None:
    """Return how a copy of elements of ``size`` bytes transposes; None if it does not, or if its
    rows are few, which loops do as well.
    """
    if copy.source is None or copy.aside or len(copy.counters) < 2:
        return None
    loops, unit, length = copy.counters, None, 1
    if _steps(copy, loops[-1][0]) == (1, 1):
        unit, loops = loops[-1], loops[:-1]
        length = unit[1].constant or 0
    if not 0 < size * length <= TURNED or not _is_power(size * length):
        return None
    least = VECTOR // (size * length)
    long = [n for n in reversed(loops) if n[1].constant is None or n[1].constant >= least]
    row = next((loop for loop in long if _steps(copy, loop[0])[0] == length), None)
    columns = _columns(copy, loops, length, least)
    if row is None or not columns or row in columns:
        return None
    rows = row[1].constant
    if len(columns) == 1 and rows is not None and rows <= WOVEN and _is_power(rows):
        return None  # compilers make vectors of such rows as they lie
    turn = Turn((), row, columns, unit, size * length, ())
    names = {name for name, _ in turn.inner}
    outer = tuple(loop for loop in copy.counters if loop[0] not in names)
    if any(loop[1].names & names for loop in (*outer, *turn.inner)):
        return None
    if any(not o.is_linear_in(names) for o in (copy.target_offset, copy.source_offset)):
        return None
    conditions = tuple(_of_turn(condition, turn) for condition in copy.conditions)
    known = tuple(condition for condition in conditions if condition is not None)
    return replace(turn, outer=outer, conditions=known) if known == conditions else None


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _columns(copy: Copy, loops: Loops, length: int, least: int) -> Loops:
    """Return what counts columns, at least so many, pieces first; nothing if they are fewer.

    ``length`` is how far the first two of them lie apart.
    """
    for loop in reversed(loops):
        count = loop[1].constant
        if _steps(copy, loop[0])[1] != length:
            continue
        if count is None or count >= least:
            return (loop,)
        if count < 2 or least % count:
            continue
        if pieces := _columns(copy, loops, length * count, least // count):
            return (*pieces, loop)
    return ()


def _of_turn(condition: Index, turn: Turn) -> Index | None:
    """Return a condition as one of whole units and of columns through all pieces; None if it is
    none of rows alone, of columns alone, or of neither.
    """
    whole: Index | None = condition
    if turn.unit is not None:
        whole = _of_units(condition, turn.unit[0], turn.unit[1].constant or 1)
    if whole is None:
        return None
    names = [name for name, _ in turn.columns]
    column = names[-1]
    if len(names) > 1 and whole.names & set(names):
        step = whole.coefficient(column).constant
        if not whole.is_linear_in(names) or step is None or step >= 0:
            return None
        for name, count in reversed(turn.columns):
            if whole.coefficient(name).constant != step:
                return None
            step *= count.constant or 1
        whole = whole.substitute(dict.fromkeys(names[:-1], 0))
    own = sorted(whole.names & {turn.row[0], column})
    if not own:
        return whole
    known = whole.is_linear_in(own) and whole.coefficient(own[0]).constant is not None
    return whole if len(own) == 1 and known else None


def _steps(copy: Copy, name: str) -> tuple[int | None, int | None]:
    """Return how far the next element lies in the target and in the source, where it is known."""
    found = []
    for offset in (copy.target_offset, copy.source_offset):
        known = offset.coefficient(name).constant if offset.is_linear_in([name]) else None
        found.append(known)
    return found[0], found[1]


def _of_units(condition: Index, name: str, length: int) -> Index | None:
    """Return when a condition of elements holds for all ``length`` of a unit; None if it may hold
    for some of them only.
    """
    if name not in condition.names:
        return condition
    if not condition.is_linear_in(sorted(condition.names)):
        return None
    factor = condition.coefficient(name).constant
    if factor not in (1, -1):
        return None
    # Of whole units where all else moves by whole units: 7 - 2*k - u is below 0 for both u or none.
    rest = condition.substitute({name: 0 if factor == 1 else length - 1})
    steps = [rest.coefficient(n).constant for n in rest.names]
    if any(step is None or step % length for step in steps) or rest.offset % length:
        return None
    return rest
