"""One variable along several dimensions of an operand: its high digits on one, the low on another.

So a row of 256 elements fills a tile of sixteen by sixteen, sixteen elements of it a row.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from isamap.ir.index import Div, Index, Mod, Name
from isamap.mapping.fragments.fragment import Digit, Part
from isamap.mapping.fragments.layout import PlacedDigit


def cut_digits(
    dims: tuple[tuple[PlacedDigit, ...], ...], tile: Mapping[str, int], partial: AbstractSet[str]
) -> tuple[tuple[Digit, ...], ...] | None:
    """Return one digit along each dimension, some of them every so many iterations of a variable.

    None if that is not what lies there.  All iterations of a variable that is cut must be alive:
    those of a ``partial`` one end amid a row.
    """
    found: list[tuple[Digit, ...]] = []
    own: dict[str, list[Part]] = {}
    for dim in dims:
        parts = [_part(digit, tile) for digit in dim]
        if len(parts) > 1 or None in parts:
            return None
        for part in parts:
            assert part is not None
            if part.every != 1 and part.variable in partial:
                return None
            own.setdefault(part.variable, []).append(part)
        found.append(tuple(_digit(part) for part in parts if part is not None))
    return tuple(found) if all(_is_whole(own[v], tile.get(v, 1)) for v in own) else None


def _is_whole(parts: list[Part], tile: int) -> bool:
    """Return whether the digits of a variable are all of its tile, each once."""
    reach = 1
    for part in sorted(parts, key=lambda part: part.every):
        if part.every != reach:
            return False
        reach *= part.tile
    return reach == tile


def _part(digit: PlacedDigit, tile: Mapping[str, int]) -> Part | None:
    """Return the iterations of a variable that a digit is: ``v``, ``v % b`` or ``v // a % b``."""
    if digit.low or digit.weight != 1:
        return None
    if digit.form.name is not None:
        return Part(digit.form.name, digit.extent)
    match _atom(digit.form):
        case Mod(Index() as value, divisor) if divisor == digit.extent:
            if value.name is not None:
                return Part(value.name, divisor)
            match _atom(value):
                case Div(Index() as whole, every) if whole.name is not None:
                    most = -(-tile.get(whole.name, 1) // every)
                    return Part(whole.name, min(divisor, most), every=every)
    return None


def _atom(form: Index) -> Name | Div | Mod | None:
    """Return the atom that a form is, None if it is more."""
    match form.terms:
        case ((((Name() | Div() | Mod()) as atom,), 1),):
            return atom
    return None


def _digit(part: Part) -> Digit:
    return Digit(part.variable, part.tile, () if part.every == 1 else (part,))
