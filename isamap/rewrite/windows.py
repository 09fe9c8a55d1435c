"""Sliding windows in a sum of products: which variable of a factor moves which window variable."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from isamap.ir.index import Index, const
from isamap.ir.nodes import Access, Expr, Op, Statement
from isamap.ir.statements import accesses, names, read_indices, reduction_variables
from isamap.rewrite.build import extents


@dataclass(frozen=True, slots=True)
class Slide:
    """The data are read at ``position + tap`` (or ``position - tap``, then ``reverse``).

    ``position`` is a variable of the target and not of the window, ``tap`` a reduced variable of
    ``taps`` values; neither occurs in another index of the data.
    """

    position: str
    tap: str
    size: Index
    taps: int
    reverse: bool

    def data_at(self, place: Index) -> dict[str, Index]:
        """Return the substitution that reads the data ``place`` after the first of the sum."""
        return {self.position: place, self.tap: const(self.taps - 1 if self.reverse else 0)}

    def window_at(self, place: Index) -> dict[str, Index]:
        """Return the substitution that reads the window at a place in the order of the data."""
        return {self.tap: self.taps - 1 - place if self.reverse else place}


@dataclass(frozen=True, slots=True)
class Convolution:
    """A float ``+=`` of ``data * window``, with slides that are independent of each other."""

    data: Expr
    window: Expr
    slides: tuple[Slide, ...]


def convolutions(statement: Statement, most: int) -> Iterator[Convolution]:
    """Yield the readings of a statement as a convolution with up to ``most`` slides.

    Of several sets of slides the largest are yielded, over either factor as the data.
    """
    target = statement.target
    match statement.value:
        case Op("*", (left, right), _) if statement.reduction == "+=" and target.dtype.is_float:
            pass
        case _:
            return
    if not (_is_read(left) and _is_read(right)):
        return
    read = {access.buffer for access in accesses(statement.value)}
    for index in (*read_indices(statement.value), *target.indices):
        read |= {inner.buffer for inner in index.reads}
    if target.buffer in read:
        return
    for data, window in ((left, right), (right, left)):
        found = tuple(_slides(statement, data, window))
        for count in range(min(most, len(found)), 0, -1):
            sets = [chosen for chosen in combinations(found, count) if _are_apart(chosen)]
            for chosen in sets:
                yield Convolution(data, window, chosen)
            if sets:
                break


def _is_read(expr: Expr) -> bool:
    """Return whether an expression is an access, perhaps cast."""
    match expr:
        case Access():
            return True
        case Op("cast", (Access(),), _):
            return True
        case _:
            return False


def _slides(statement: Statement, data: Expr, window: Expr) -> Iterator[Slide]:
    sizes = extents(statement)
    reduced = reduction_variables(statement)
    for tap in reduced:
        taps = sizes[tap].constant
        if taps is None or taps < 2 or tap not in names(window):
            continue
        for position in sizes:
            if position in reduced or position in names(window):
                continue
            sign = _sign(data, position, tap)
            if sign:
                yield Slide(position, tap, sizes[position], taps, sign < 0)


def _sign(data: Expr, position: str, tap: str) -> int:
    """Return 1 if data are read at position + tap, -1 at position - tap, else 0."""
    found = [index for index in read_indices(data) if index.names & {position, tap}]
    if len(found) != 1 or not found[0].is_linear_in((position, tap)):
        return 0
    step, other = (found[0].coefficient(name).constant for name in (position, tap))
    if not step or not other:
        return 0
    return 1 if step == other else -1 if step == -other else 0


def _are_apart(slides: tuple[Slide, ...]) -> bool:
    used = [name for slide in slides for name in (slide.position, slide.tap)]
    return len(set(used)) == len(used)
