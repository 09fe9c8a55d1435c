"""Indices without the quotients and remainders that the ends of their variables decide."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from isamap.ir.index import Atom, Div, Index, Mod, Name, Read, const, product, total, var
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce


@dataclass(frozen=True, slots=True)
class Simple:
    """Simplifies quotients and remainders by the ends that ``ranges`` gives each variable."""

    ranges: Mapping[str, tuple[int, int]]

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with simplified indices."""
        match expr:
            case Access(_, indices):
                return replace(expr, indices=tuple(map(self.index, indices)))
            case Coordinate(index):
                return replace(expr, index=self.index(index))
            case Op(_, args):
                return replace(expr, args=tuple(map(self.expr, args)))
            case Reduce(_, _, body):
                return replace(expr, body=self.expr(body))
            case Literal():
                return expr

    def index(self, index: Index) -> Index:
        """Return an index of the same values."""
        terms = ((monomial, const(factor)) for monomial, factor in index.terms)
        return total(product([factor, *map(self._atom, atoms)]) for atoms, factor in terms)

    def _atom(self, atom: Atom) -> Index:
        match atom:
            case Div(value, divisor):
                return self._apart(self.index(value), divisor)[0]
            case Mod(value, divisor):
                return self._apart(self.index(value), divisor)[1]
            case Name(name):
                return var(name)
            case Read():
                raise AssertionError("statements with data-dependent indices are left alone")

    def _apart(self, value: Index, divisor: int) -> tuple[Index, Index]:
        """Return quotient and remainder."""
        quotient, remainder = value // divisor, value % divisor
        match remainder.atoms:
            case (Mod(rest, _),):
                least = least_alike(rest, divisor)
                ends = least.bounds(self.ranges)
                if ends is not None and ends[0] // divisor == ends[1] // divisor:
                    low = ends[0] // divisor
                    return (value - least) // divisor + low, least - low * divisor
        return quotient, remainder


def least_alike(value: Index, divisor: int) -> Index:
    """Return an index with the same remainder whose factors are as near to 0 as can be."""
    large = [m for m, factor in value.terms if m and 2 * factor > divisor]
    return value - Index(tuple((m, divisor) for m in large))
