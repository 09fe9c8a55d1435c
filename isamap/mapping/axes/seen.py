"""What an operand of an instruction sees of the axes: some alone, some only in a sum."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.mapping.axes.linear import Vector, in_span, primitive, rank
from isamap.mapping.axes.rows import entangled, row, split
from isamap.mapping.matching import Axis


@dataclass(frozen=True, slots=True)
class Seen:
    """The integers that together fix an element of an operand.

    ``alone`` are axes whose position the element fixes; ``sums`` are sums of positions, by the
    coefficient of each axis.  ``a[i + r]`` sees one sum; ``a[4*i + k]`` with ``k < 4`` sees both
    axes alone.  Axes of extent 1 do not count.
    """

    alone: frozenset[int]
    sums: tuple[Vector, ...]

    @property
    def axes(self) -> frozenset[int]:
        """All axes that occur."""
        return self.alone | {n for total in self.sums for n, c in enumerate(total) if c}

    def vectors(self, count: int) -> tuple[Vector, ...]:
        """Return everything that is seen as sums over ``count`` axes."""
        units = (tuple(int(n == a) for n in range(count)) for a in sorted(self.alone))
        return (*units, *self.sums)

    def is_fixed_by(self, other: "Seen", count: int) -> bool:
        """Return whether an element of ``other`` determines the one of this."""
        if not self.sums and not other.sums:
            return self.alone <= other.alone
        known = other.vectors(count)
        return all(in_span(known, vector) for vector in self.vectors(count))


def seen_by(access: Access, axes: tuple[Axis, ...]) -> Seen | None:
    """Return what an operand sees of ``axes``; None where an index is not linear in them."""
    return seen_at(access.indices, axes)


@lru_cache(maxsize=4096)
def seen_at(indices: tuple[Index, ...], axes: tuple[Axis, ...]) -> Seen | None:
    """Return what an element with these indices fixes of ``axes``; None if one is not linear."""
    pieces = [(name, extent, n) for n, axis in enumerate(axes) for name, extent in axis.pieces]
    names = [name for name, _, _ in pieces]
    extents = [None if axes[n].open else extent for _, extent, n in pieces]
    alone: set[int] = set()
    sums: dict[Vector, None] = {}
    for index in indices:
        if entangled(index, frozenset(names)):
            return None
        live = tuple(0 if e == 1 else c for c, e in zip(row(index, names), extents, strict=True))
        for group in split(live, extents):
            used = [p for p, c in enumerate(group) if c]
            if len(used) == 1:
                alone.add(pieces[used[0]][2])
                continue
            total = [0] * len(axes)
            for p in used:
                total[pieces[p][2]] = group[p]
            sums[primitive(tuple(total))] = None
    # A sum of axes that are seen alone tells nothing more.
    kept = tuple(s for s in sums if any(c and n not in alone for n, c in enumerate(s)))
    return Seen(frozenset(alone), kept)


def renumbered(seen: Seen, live: Sequence[int]) -> Seen:
    """Return what is seen of the axes ``live``, which are numbered anew."""
    numbers = {old: new for new, old in enumerate(live)}
    return Seen(
        frozenset(numbers[n] for n in seen.alone if n in numbers),
        tuple(tuple(total[n] for n in live) for total in seen.sums),
    )


def determines(views: Iterable[Seen], count: int) -> bool:
    """Return whether what is seen fixes the position on each of ``count`` axes, level by level.

    That is so for axes that are seen alone.  Of the others there must be as many as different sums
    with one of them, and the sums must be independent on them: then the sums give their digits.
    Where this fails padding repeats work, or a sum that others determine could be met by digits
    out of range.
    """
    found = tuple(views)
    alone = frozenset().union(*(own.alone for own in found))
    rest = [axis for axis in range(count) if axis not in alone]
    totals = {total for own in found for total in own.sums}
    cut = [tuple(total[axis] for axis in rest) for total in sorted(totals)]
    moving = [vector for vector in cut if any(vector)]
    return len(moving) == rank(moving) == len(rest)
