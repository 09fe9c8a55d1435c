"""Statements that look alike cost alike: a rewriting makes many that differ in constants only."""

from dataclasses import dataclass
from math import inf

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Op
from isamap.ir.ranges import intervals_before
from isamap.ir.statements import zero_based
from isamap.mapping.matching import Mapping
from isamap.mapping.produce import Producers
from isamap.schedule.rank import ranked


@dataclass(slots=True)
class Figures:
    """What a statement costs: ``least`` cycles for its calls alone, infinity if nothing maps."""

    kernel: Kernel
    mappings: tuple[Mapping, ...]
    least: float
    _found: float | None = None
    _above: float = 0.0

    def quick(self, producers: Producers, limit: float) -> float:
        """Return the least rough count of cycles; infinity if there is none below ``limit``."""
        if self._found is None and self._above < limit:
            buffers = {b.name: b for b in self.kernel.buffers}
            permissions = self.kernel.permissions
            cheapest = next(ranked(self.mappings, producers, buffers, permissions, limit), None)
            if cheapest is None:
                self._above = limit
            else:
                self._found = cheapest[0]
        return self._found if self._found is not None and self._found < limit else inf


def likeness(kernel: Kernel, number: int) -> object:
    """Return what statements share that cost the same but for constants in indices.

    Names do not count; types, shapes, padding, ranges of values and variables, and how the indices
    go, do.
    """
    statement = zero_based(kernel.statements[number])
    known = intervals_before(kernel, number)
    variables = {v.name: var(f"v{n}") for n, v in enumerate(statement.variables)}
    buffers: dict[str, object] = {}

    def without_offset(index: Index) -> str:
        return str((index - const(index.offset)).substitute(variables))

    def text(expr: Expr) -> object:
        match expr:
            case Access(name, indices, dtype):
                own = kernel.buffer(name)
                shape = tuple(map(str, own.shape))
                about = (len(buffers), shape, own.pad is None, known.get(name), own.role)
                first = buffers.setdefault(name, about)
                return first, tuple(map(without_offset, indices)), dtype.name
            case Op(op, args, dtype):
                return op, dtype.name, tuple(map(text, args))
            case Coordinate(index, dtype):
                return without_offset(index), dtype.name
            case _:
                return expr

    extents = tuple(str(v.extent) for v in statement.variables)
    return statement.reduction, text(statement.target), text(statement.value), extents
