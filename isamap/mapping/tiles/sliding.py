"""Windows: dimensions of an operand along which only a sum of variables lies, as ``w + s`` does.

Which of the variables stepped is not told by the place, nor by what lies in memory: the window is
one run of elements, and slides as the variables go on.
"""

from collections.abc import Mapping as Dict
from dataclasses import replace

from isamap.mapping.fragments.fragment import Digit, Part
from isamap.mapping.fragments.layout import PlacedDigit


def sliding(
    dims: tuple[tuple[PlacedDigit, ...], ...], tile: Dict[str, int]
) -> tuple[tuple[Digit, ...], ...] | None:
    """Return digits along each dimension, some of them sums; None if there are none that do.

    Each variable is in one digit, and each place inside what a digit reaches is that of a value.
    """
    found: list[tuple[Digit, ...]] = []
    for dim in dims:
        parts = _parts(dim, tile)
        own = None if parts is None else _grouped(parts)
        if own is None:
            return None
        found.append(own)
    names = [part.variable for dim in found for digit in dim for part in digit.pieces]
    return tuple(found) if len(set(names)) == len(names) else None


def _parts(dim: tuple[PlacedDigit, ...], tile: Dict[str, int]) -> list[Part] | None:
    """Return the variables along a dimension, each with its step in places, the least step first.

    None where the first place that is used is not the dimension's first.
    """
    parts: list[Part] = []
    for digit in dim:
        low = 0
        for v in sorted(digit.form.names):
            factor = digit.form.coefficient(v).constant
            if not factor or digit.weight < 0 or not digit.form.is_linear_in([v]):
                return None
            low += min(0, factor * (tile[v] - 1))
            parts.append(Part(v, tile[v], abs(factor) * digit.weight, back=factor < 0))
        if digit.low != low or digit.form.offset:
            return None
    return sorted(parts, key=lambda part: part.step)


def _grouped(parts: list[Part]) -> tuple[Digit, ...] | None:
    """Return the digits that parts are, outermost first.

    One that steps over all that is inside it begins a digit, one that steps over less is a
    part of a sum with that; None if one steps over more, and so leaves places out.
    """
    groups: list[list[Part]] = []
    unit = reach = 1  # of the group that is open: its least step, and its values so far
    for part in parts:
        if part.step == unit * reach:
            groups.append([])
            unit, reach = part.step, 1
        elif not groups or part.step % unit or part.step > unit * reach:
            return None
        own = replace(part, step=part.step // unit)
        groups[-1].append(own)
        reach += own.step * (own.tile - 1)
    return tuple(_digit(group) for group in reversed(groups))


def _digit(parts: list[Part]) -> Digit:
    if len(parts) == 1 and not parts[0].back:
        return Digit(parts[0].variable, parts[0].tile)
    extent = 1 + sum(part.step * (part.tile - 1) for part in parts)
    return Digit("+".join(part.variable for part in parts), extent, tuple(parts))
