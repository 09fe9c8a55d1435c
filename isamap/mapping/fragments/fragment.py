"""Fragments: the pieces of operands that instructions take, and where their elements come from."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Literal


@dataclass(frozen=True, slots=True)
class Part:
    """A variable of a sum that is laid out: ``tile`` iterations, ``step`` places each.

    They are every ``every``-th one, where others are laid out elsewhere.  Where they go ``back``,
    the last one has the first place.
    """

    variable: str
    tile: int
    step: int = 1
    every: int = 1
    back: bool = False

    @property
    def ahead(self) -> int:
        """The iterations from one place to the next that it has."""
        return -self.every if self.back else self.every


@dataclass(frozen=True, slots=True)
class Digit:
    """A variable laid out along a dimension of a fragment, ``tile`` iterations of it.

    Or a sum of the variables ``parts``, the least step first, of which ``tile`` is the number of
    values: a window ``2*w + s`` that slides along what lies in memory.  The ``variable`` is then no
    identifier.  A part may stand alone: one that goes back, or of 32 iterations in two digits every
    16th, and those between.
    """

    variable: str
    tile: int
    parts: tuple[Part, ...] = ()

    @property
    def pieces(self) -> tuple[Part, ...]:
        """The variables with their iterations, also where it is only one."""
        return self.parts or (Part(self.variable, self.tile),)

    @property
    def variables(self) -> frozenset[str]:
        """The variables that move along it."""
        return frozenset(part.variable for part in self.pieces)

    def is_partial(self, partial: AbstractSet[str]) -> bool:
        """Return whether it has fewer values where fewer iterations of ``partial`` are alive."""
        return any(part.variable in partial for part in self.pieces if part.tile > 1)

    def has_holes(self, partial: AbstractSet[str]) -> bool:
        """Return whether some value before the last is that of no iteration.

        Of ``partial`` variables only one may be alive: then 1 is no value of ``2*w + s``.  Those
        that go back leave out the first values.
        """
        reach = 1
        for part in self.parts:
            if part.step > reach or (part.back and part.variable in partial):
                return True
            reach += part.step * (part.tile - 1) if part.variable not in partial else 0
        return False


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tile of an operand as an instruction wants it.

    ``dims`` gives for each dimension of ``shape`` its digits, outermost first; their tiles multiply
    to at most the dimension.  ``partial`` are the variables of which fewer iterations than ``tile``
    are alive.  Elements at which no iteration is alive are dead; those along the dimensions
    ``filled`` must hold ``filler``, others may hold anything.
    """

    storage: str
    dtype: DType
    shape: tuple[int, ...]
    dims: tuple[tuple[Digit, ...], ...]
    partial: frozenset[str] = frozenset()
    filled: frozenset[int] = frozenset()
    filler: Literal | None = None

    def extent(self, dim: int) -> int:
        """Return how many elements of a dimension the digits reach."""
        reach = 1
        for digit in self.dims[dim]:
            reach *= digit.tile
        return reach

    def has_dead(self, dim: int) -> bool:
        """Return whether some element along a dimension may be dead."""
        short = self.extent(dim) < self.shape[dim]
        return short or any(digit.is_partial(self.partial) for digit in self.dims[dim])

    @property
    def variables(self) -> frozenset[str]:
        """The variables that are laid out in the fragment."""
        return frozenset(v for dim in self.dims for digit in dim for v in digit.variables)

    @property
    def slides(self) -> bool:
        """Whether sums are laid out, so that fragments have elements in common."""
        return any(len(digit.pieces) > 1 for dim in self.dims for digit in dim)


@dataclass(frozen=True, slots=True)
class Aside:
    """A small array to which a fragment is copied, padding values included, where the border of
    the buffer that ``access`` reads cuts it."""

    access: Access
    array: str


@dataclass(frozen=True, slots=True)
class Reference:
    """Elements of an array in memory, as a function of the statement's variables.

    ``offset`` counts elements.  If ``dense`` is None it is linear in the variables that a fragment
    lays out, and their coefficients are the strides; otherwise the array holds whole fragments of
    that shape in row-major order, dead elements included, and ``offset`` is where one begins.
    Along the dimensions ``repeated`` of these one element stands for all.
    Where a condition of ``guards`` is negative the element is ``pad``; where it is for some of a
    fragment's elements only, the fragment comes from ``aside``.  ``alignment`` is in bytes.
    The array is ``roomy`` if it does not end with the last element in use: whole fragments may be
    read, as if the rows that are missing from the last ones were there.
    Fragments begin at multiples of their tiles, but along variables that are ``loose``.
    Where all elements are ``same`` the array is a table of the code's own, which needs no name.
    """

    array: str
    offset: Index
    dense: tuple[int, ...] | None = None
    guards: tuple[Index, ...] = ()
    pad: Literal | None = None
    alignment: int = 1
    repeated: frozenset[int] = frozenset()
    roomy: bool = False
    aside: Aside | None = None
    loose: frozenset[str] = frozenset()
    same: Literal | None = None

    @property
    def laid_out(self) -> tuple[int, ...]:
        """The shape of a packed fragment in memory: 1 along the dimensions ``repeated``."""
        assert self.dense is not None
        return tuple(1 if d in self.repeated else n for d, n in enumerate(self.dense))

    def dense_pitch(self, dim: int) -> int:
        """Return the pitch of packed fragments along a dimension."""
        return 0 if dim in self.repeated else prod(self.laid_out[dim + 1 :])

    def stride(self, fragment: Fragment, dim: int) -> Index | None:
        """Return the pitch along a dimension; None if it has no single one; any (0) if it is short.

        Digits share one pitch if each steps exactly over the digits inside it.
        """
        digits = [digit for digit in fragment.dims[dim] if digit.tile > 1]
        pitch: Index | None = None
        reach = 1
        for digit in reversed(digits):
            own = self._pitch(digit)
            if own is None:
                return None
            if pitch is None:
                pitch = own
            elif own != pitch * reach:
                return None
            reach *= digit.tile
        return const(0) if pitch is None else pitch

    def _pitch(self, digit: Digit) -> Index | None:
        """Return how far apart values of a digit lie; None if that differs among its variables."""
        if not self.offset.is_linear_in(digit.variables):
            return None
        first, *others = digit.pieces
        pitch = self.offset.coefficient(first.variable) * first.ahead
        for part in others:
            if self.offset.coefficient(part.variable) * part.ahead != pitch * part.step:
                return None
        return pitch

    def begun(self, fragment: Fragment) -> "Reference":
        """Return the reference with ``offset`` that of a fragment's first place.

        Where variables go back that is the place of their last iteration.
        """
        if self.dense is not None:
            return self
        pieces = (part for dim in fragment.dims for digit in dim for part in digit.pieces)
        last = {p.variable: var(p.variable) + (p.tile - 1) for p in pieces if p.back}
        return replace(self, offset=self.offset.substitute(last)) if last else self

    def row_pitch(self, fragment: Fragment, dim: int) -> int:
        """Return the known pitch between rows along a dimension; 0 where there are no such rows.

        Contiguous elements are no rows: a mask that leaves some out costs nothing there.  Nor is a
        dimension on which nothing lies: no pitch is agreed on for its dead elements.
        """
        pitch = self.stride(fragment, dim)
        constant = None if pitch is None else pitch.constant
        return constant if constant is not None and constant > 1 else 0
