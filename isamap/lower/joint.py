"""Padded copies that several accesses share: of what they reach together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.mapping.fragments.layout import PaddedLayout, padded
from isamap.schedule.treatment import ASSUMED_EXTENT, numeric

Place: TypeAlias = tuple[str, Access]
"""An access of an operand."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The part that an access has in a copy that is made for several.

    ``first`` is the access of an operand for which it is made.  The copy begins ``before`` elements
    ahead of what the access reaches along each dimension, and has so many ``more``.
    """

    first: Place
    before: tuple[int, ...]
    more: tuple[int, ...]

    def widened(self, layout: PaddedLayout) -> PaddedLayout:
        """Return the copy of what an access reaches as that of all."""
        low = (at - n for at, n in zip(layout.low, self.before, strict=True))
        shape = (size + n for size, n in zip(layout.shape, self.more, strict=True))
        return replace(layout, low=tuple(low), shape=tuple(shape))


def join(
    places: Sequence[Place], extents: Mapping[str, Index], pitches: Mapping[Place, int]
) -> dict[Place, Joint]:
    """Return the joints of accesses that are as far from each other wherever they are.

    ``extents`` are the iterations that are copied for, ``pitches`` the elements between rows of
    each copy.  Where one copy is larger than all of theirs together they stay apart.
    """
    groups: list[list[Place]] = []
    for place in places:
        for group in groups:
            (_, access), (_, first) = place, group[0]
            same = access.buffer == first.buffer and pitches[place] == pitches[group[0]]
            if same and _apart(access, first) is not None:
                group.append(place)
                break
        else:
            groups.append([place])
    found: dict[Place, Joint] = {}
    for group in groups:
        found |= _joined(group, extents, pitches[group[0]])
    return found


def _joined(group: Sequence[Place], extents: Mapping[str, Index], pitch: int) -> dict[Place, Joint]:
    first = group[0][1]
    layout = padded(first.buffer, first, extents)
    if len(group) < 2 or layout is None:
        return {}
    far = {place: _apart(place[1], first) or () for place in group}
    least = [min(each) for each in zip(*far.values(), strict=True)]
    most = [max(each) for each in zip(*far.values(), strict=True)]
    more = tuple(high - low for low, high in zip(least, most, strict=True))
    sizes = [numeric(size, ASSUMED_EXTENT) for size in layout.shape]
    whole = [size + n for size, n in zip(sizes, more, strict=True)]
    if prod(whole) > len(group) * prod(sizes) or (pitch and whole[-1] > pitch):
        return {}
    return {
        place: Joint(group[0], tuple(n - low for n, low in zip(own, least, strict=True)), more)
        for place, own in far.items()
    }


def _apart(one: Access, other: Access) -> tuple[int, ...] | None:
    """Return how far an access is from another one along each dimension, None if that varies."""
    found = [(a - b).constant for a, b in zip(one.indices, other.indices, strict=True)]
    return None if None in found else tuple(n for n in found if n is not None)
