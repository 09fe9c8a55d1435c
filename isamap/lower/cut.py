"""Variables that packing lays along several dimensions: ``k // 2`` along one, ``k % 2`` on another.

A copy then has a counter for each part, so that its addresses are plain sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from isamap.ir.index import Div, Index, Mod, Name, const, var
from isamap.mapping.fragments.layout import PackedLayout


@dataclass(frozen=True, slots=True)
class Part:
    """The digit at ``place`` (dimension, number) is ``variable // step % size``, ``count`` values
    of which occur in a tile."""

    place: tuple[int, int]
    variable: str
    step: int
    size: int
    count: int


def cut_variables(layout: PackedLayout) -> dict[tuple[int, int], Part]:
    """Return the parts of variables that are cut into several digits, by their places.

    A variable is one of these if its digits are parts that follow each other, all of its tile
    among them and whole but for the outermost.
    """
    tile = dict(layout.tile)
    found: dict[str, list[Part]] = {}
    others: set[str] = set()
    for d, dim in enumerate(layout.dims):
        for n, digit in enumerate(dim):
            read = _read(digit.form)
            if read is None or digit.low or digit.form.name is not None:
                others |= digit.form.names
            else:
                v, step = read
                found.setdefault(v, []).append(Part((d, n), v, step, digit.extent, digit.extent))
    parts: dict[tuple[int, int], Part] = {}
    for v, own in found.items():
        ordered = _in_order(own, tile.get(v, 1))
        if v not in others and ordered is not None:
            parts.update((part.place, part) for part in ordered)
    return parts


def _in_order(parts: list[Part], tile: int) -> list[Part] | None:
    """Return the parts from the innermost on, with their counts; None if they are not a whole."""
    ordered = sorted(parts, key=lambda part: part.step)
    step = 1
    for part in ordered:
        if part.step != step:
            return None
        step *= part.size
    last = ordered[-1]
    count = tile // last.step
    if tile % last.step or not 0 < count <= last.size:
        return None
    return [*ordered[:-1], Part(last.place, last.variable, last.step, last.size, count)]


def _read(form: Index) -> tuple[str, int] | None:
    """Return v and n of the forms ``v``, ``v // n``, ``v % m`` and ``v // n % m``."""
    atom = _atom(form)
    if isinstance(atom, Mod):
        atom = _atom(atom.value)
    step = 1
    if isinstance(atom, Div):
        step, atom = atom.divisor, _atom(atom.value)
    return (atom.name, step) if isinstance(atom, Name) else None


def _atom(form: Index) -> object:
    if len(form.terms) == 1 and form.terms[0][1] == 1 and len(form.terms[0][0]) == 1:
        return form.terms[0][0][0]
    return None


def beyond(extent: Index, position: Index, parts: Mapping[str, Part], block: int) -> Index:
    """Return what is negative where a variable's ``position`` is at its ``extent`` or beyond.

    ``parts`` are the parts that its counters count.  The inner ones do not matter where the extent
    ends with a whole number of them: all of them are inside, or none.
    """
    steps = {part.step for part in parts.values()}
    whole = max((s for s in steps if (extent % s) == const(0) and block % s == 0), default=1)
    first: dict[str, Index | int] = {
        name: part.count - 1 for name, part in parts.items() if part.step < whole
    }
    return extent - 1 - position.substitute(first)


def count_parts(
    parts: Mapping[tuple[int, int], Part], counters: Mapping[tuple[int, int], str]
) -> dict[str, Index]:
    """Return what the counters of parts make of each variable."""
    found: dict[str, Index] = {}
    for place, part in parts.items():
        found[part.variable] = found.get(part.variable, const(0)) + var(counters[place]) * part.step
    return found
