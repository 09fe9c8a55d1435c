"""Where the elements of an access lie in memory: in their buffer, in a padded copy, or packed.

Three layouts answer with a :class:`Reference`.  *Direct* is the buffer itself, with guards where a
padded buffer may be left.  *Padded* is a copy that holds the padding values too, so that no guard
is needed.  *Packed* holds whole fragments, one after the other in the order of the loops, with the
filler in dead elements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from isamap.ir.box import Extents, box, is_nonnegative
from isamap.ir.index import (
    Atom,
    Div,
    Index,
    Mod,
    Name,
    Read,
    ceil_div,
    const,
    product,
    read,
    row_major,
    total,
    var,
)
from isamap.ir.nodes import Access, Buffer, Expr, Literal
from isamap.mapping.fragments.fragment import Fragment, Reference


def whole_alignment(size: int) -> int:
    """Return the bytes to which fragments of ``size`` bytes are aligned that lie one after another.

    An array of them begins where the instructions that use it want it to.
    """
    return size & -size


@dataclass(frozen=True, slots=True)
class PaddedLayout:
    """A copy of a buffer over the box that an access reaches.

    Element ``e`` of the copy is element ``e + low`` of the buffer, or the padding value.  Its rows
    (runs along the last dimension) begin ``pitch`` elements apart, 0 where they follow each other.
    """

    array: str
    access: Access
    low: tuple[Index, ...]
    shape: tuple[Index, ...]
    pitch: int = 0

    @property
    def room(self) -> tuple[Index, ...]:
        """The shape of the array: with what lies between rows."""
        return (*self.shape[:-1], const(self.pitch)) if self.pitch else self.shape

    def reference(self) -> Reference:
        """Return where the access finds its elements in the copy."""
        pitches = row_major(self.room)
        indices = zip(self.access.indices, self.low, pitches, strict=True)
        offset = total((i - low) * pitch for i, low, pitch in indices)
        return Reference(self.array, offset, roomy=True)


@dataclass(frozen=True, slots=True)
class PlacedDigit:
    """A form on an axis of the instruction: its variables' tiles, its range and its weight.

    The form takes the values ``low .. low + extent - 1`` over a tile; a step of it is ``weight``
    positions of the axis.
    """

    form: Index
    low: int
    extent: int
    weight: int


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Whole fragments of an operand, tile after tile.

    ``variables`` give the order of the tiles, outermost first; ``block`` is the iterations of a
    variable that one register block covers, ``tile`` those of one fragment.  The tiles of a block
    lie together, inside all block indices.  ``dims`` are the digits along each dimension.

    ``shape`` is that of a fragment in memory; where ``taken``, what the instruction takes, is
    larger, one element stands for all.

    Some of the ``variables`` may be ``joined``: each stands for a form of variables of the
    statement, from 0 on, of which only the value matters, as the row ``2*p + r`` of an image does.
    """

    array: str
    access: Access
    shape: tuple[int, ...]
    dims: tuple[tuple[PlacedDigit, ...], ...]
    variables: tuple[str, ...]
    extents: tuple[tuple[str, Index], ...]
    tile: tuple[tuple[str, int], ...]
    block: tuple[tuple[str, int], ...]
    filler: Literal
    taken: tuple[int, ...]
    joined: tuple[tuple[str, Index], ...] = ()

    def counts(self) -> tuple[tuple[str, Index, int], ...]:
        """Return ``(variable, blocks, tiles in a block)`` for each variable."""
        extents, tile, block = dict(self.extents), dict(self.tile), dict(self.block)
        return tuple(
            (v, ceil_div(extents[v], block[v]), block[v] // tile[v]) for v in self.variables
        )

    def size(self) -> Index:
        """Return the elements of the packed array."""
        tiles = product(blocks * inner for _, blocks, inner in self.counts())
        return tiles * product(self.shape)

    def begin(self, quotient: Mapping[str, Index], inner: Mapping[str, Index]) -> Index:
        """Return where the fragment begins of the tile with these block and tile indices."""
        counts = self.counts()
        sizes = [blocks for _, blocks, _ in counts] + [const(n) for _, _, n in counts]
        digits = [quotient[v] for v, _, _ in counts] + [inner[v] for v, _, _ in counts]
        pitches = row_major([*sizes, product(self.shape)])
        return total(d * pitch for d, pitch in zip(digits, pitches, strict=False))

    def reference(self) -> Reference:
        """Return where each tile's fragment is, as a function of the tile's first iteration."""
        tile, block, joined = dict(self.tile), dict(self.block), dict(self.joined)
        place = {v: joined.get(v, var(v)) for v in self.variables}
        quotient = {v: place[v] // block[v] for v in self.variables}
        inner = {v: (place[v] % block[v]) // tile[v] for v in self.variables}
        size = self.access.dtype.bytes * prod(self.shape)
        return Reference(
            self.array,
            self.begin(quotient, inner),
            dense=self.taken,
            alignment=whole_alignment(size),
            repeated=frozenset(d for d, n in enumerate(self.taken) if n != self.shape[d]),
        )


def lying(
    expr: Expr,
    fragment: Fragment,
    places: Mapping[Access, Reference | Fragment],
    tables: bool = True,
) -> tuple[Reference, ...]:
    """Return where the elements of a fragment may be read in memory, a constant's in ``tables``."""
    if isinstance(expr, Literal) and tables:
        return tabled(expr, fragment)
    place = places.get(expr) if isinstance(expr, Access) else None
    return (place,) if isinstance(place, Reference) else ()


def tabled(literal: Literal, fragment: Fragment) -> tuple[Reference, ...]:
    """Return the tables in which all elements of a fragment are found that are one number.

    They have as many as the fragment, or one for all; there are none where dead elements must hold
    another number.
    """
    if fragment.filler != literal and any(fragment.has_dead(d) for d in fragment.filled):
        return ()
    size = literal.dtype.bytes * prod(fragment.shape)
    aligned = whole_alignment(size)
    whole = Reference("", const(0), dense=fragment.shape, alignment=aligned, same=literal)
    return whole, Reference("", const(0), same=literal)


def direct(
    buffer: Buffer, access: Access, extents: Extents, buffers: Mapping[str, Buffer]
) -> Reference:
    """Return where an access finds its elements in its own buffer, and the guards it needs."""
    guards: list[Index] = []
    if buffer.pad is not None:
        for index, extent in zip(access.indices, buffer.shape, strict=True):
            low, high = box(index, extents)
            if low is None or not is_nonnegative(low):
                guards.append(flat(index, buffers))
            if high is None or not is_nonnegative(extent - 1 - high):
                guards.append(flat(extent - 1 - index, buffers))
    offset = flat(linear(buffer, access.indices), buffers)
    return Reference(buffer.name, offset, guards=tuple(guards), pad=buffer.pad)


def padded(array: str, access: Access, extents: Extents) -> PaddedLayout | None:
    """Return the padded copy that an access needs, or None if its reach has no closed form."""
    lows, shape = [], []
    for index in access.indices:
        low, high = box(index, extents)
        if low is None or high is None:
            return None
        lows.append(low)
        shape.append(high - low + 1)
    return PaddedLayout(array, access, tuple(lows), tuple(shape))


def linear(buffer: Buffer, indices: tuple[Index, ...]) -> Index:
    """Return the flat, row-major offset of an element of ``buffer``."""
    return total(i * pitch for i, pitch in zip(indices, row_major(buffer.shape), strict=True))


def flat(index: Index, buffers: Mapping[str, Buffer]) -> Index:
    """Return ``index`` with every data-dependent read addressed by one flat offset."""
    if not index.reads:
        return index
    result = const(0)
    for monomial, coefficient in index.terms:
        term = const(coefficient)
        for atom in monomial:
            term *= _flat_atom(atom, buffers)
        result += term
    return result


def _flat_atom(atom: Atom, buffers: Mapping[str, Buffer]) -> Index:
    match atom:
        case Name(name):
            return var(name)
        case Div(value, divisor):
            return flat(value, buffers) // divisor
        case Mod(value, divisor):
            return flat(value, buffers) % divisor
        case Read(name, indices):
            inner = tuple(flat(i, buffers) for i in indices)
            return read(name, (linear(buffers[name], inner),))
