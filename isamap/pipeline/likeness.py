"""Statements that look alike cost alike: a rewriting makes many that differ in constants only."""

from dataclasses import dataclass
from math import inf

from isamap.ir.ahead import statement_kernel
from isamap.ir.index import Index, Name, const, var
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Op
from isamap.ir.ranges import intervals_before
from isamap.ir.statements import zero_based
from isamap.mapping.matching import Enumeration
from isamap.schedule.rank import Ranking


@dataclass(frozen=True, slots=True)
class Figures:
    """What a statement costs: ``least`` cycles for its calls alone, infinity if nothing maps.

    ``order`` ranks its mappings, which are found when they are asked for.
    """

    kernel: Kernel
    number: int
    enumeration: Enumeration
    order: Ranking
    least: float

    def quick(self, limit: float = inf) -> float:
        """Return the least rough count of cycles; infinity if there is none below ``limit``."""
        cheapest = self.order.at(0, limit)
        return inf if cheapest is None else cheapest.cycles


def likeness(kernel: Kernel, number: int) -> object:
    """Return what statements share that cost the same but for constants in indices.

    Names do not count; types, shapes, padding, ranges of values and variables, and how the indices
    go, do.
    """
    statement = zero_based(kernel.statements[number])
    known = intervals_before(kernel, number)
    alone = statement_kernel(kernel, number)
    numbered = {v.name: f"v{n}" for n, v in enumerate(statement.variables)}
    buffers: dict[str, object] = {}

    def without_offset(index: Index) -> object:
        terms = []
        for monomial, coefficient in index.terms:
            match monomial:
                case ():
                    pass
                case (Name(name),):
                    terms.append((numbered.get(name, name), coefficient))
                case _:
                    variables = {name: var(number) for name, number in numbered.items()}
                    return str((index - const(index.offset)).substitute(variables))
        return tuple(sorted(terms))

    def text(expr: Expr) -> object:
        match expr:
            case Access(name, indices, dtype):
                own = alone.buffer(name)
                about = (len(buffers), own.shape, own.pad is None, known.get(name), own.role)
                first = buffers.setdefault(name, about)
                return first, tuple(map(without_offset, indices)), dtype.name
            case Op(op, args, dtype):
                return op, dtype.name, tuple(map(text, args))
            case Coordinate(index, dtype):
                return without_offset(index), dtype.name
            case _:
                return expr

    extents = tuple(v.extent for v in statement.variables)
    return statement.reduction, text(statement.target), text(statement.value), extents
