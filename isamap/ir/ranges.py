"""The values that integer expressions and buffers of a kernel can have: intervals.

An interval holds every value that legal inputs can give; it need not be the smallest one.  What may
wrap has the whole range of its type.  Floats have no interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Kernel, Literal, Op, Reduce, Statement
from isamap.ir.statements import bind_extents, identity


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low} .. {self.high}"

    def __or__(self, other: "Interval") -> "Interval":
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def fits(self, dtype: DType) -> bool:
        """Return whether an integer type or bool has all these values."""
        return dtype.lowest <= self.low and self.high <= dtype.highest


Intervals = Mapping[str, Interval]
"""What is known of buffers; one without an entry has any value of its type."""


def full(dtype: DType) -> Interval:
    """Return all values of an integer type or bool."""
    return Interval(dtype.lowest, dtype.highest)


def wrapped(exact: Interval, dtype: DType) -> Interval:
    """Return the values of a type that are congruent to some numbers modulo its size."""
    size = dtype.highest - dtype.lowest + 1
    turns = (exact.low - dtype.lowest) // size
    if turns != (exact.high - dtype.lowest) // size:
        return full(dtype)
    return Interval(exact.low - turns * size, exact.high - turns * size)


def interval_of(expr: Expr, statement: Statement, known: Intervals) -> Interval | None:
    """Return the values of an expression of a statement; None if it is a float."""
    return None if expr.dtype.is_float else _Reader(statement, known).of(expr)


def exact_interval_of(expr: Expr, statement: Statement, known: Intervals) -> Interval | None:
    """Return the values of an expression before its last operation wraps; None if it is a float.

    ``interval.fits(expr.dtype)`` then says that this operation does not wrap or saturate.  Of an
    operation that does not wrap it is the interval of its values.
    """
    if expr.dtype.is_float:
        return None
    reader = _Reader(statement, known)
    return reader.exact(expr) if isinstance(expr, Op) else reader.of(expr)


def intervals_before(kernel: Kernel, number: int) -> dict[str, Interval]:
    """Return what integer buffers can hold when a statement begins, padding values included."""
    if all(b.dtype.is_float for b in kernel.buffers):
        return {}
    kernel = bind_extents(kernel)
    found = {b.name: i for b in kernel.buffers if (i := _declared(b)) is not None}
    written: set[str] = set()
    for statement in kernel.statements[:number]:
        name = statement.target.buffer
        buffer = kernel.buffer(name)
        if buffer.dtype.is_float:
            continue
        fresh = name not in written and buffer.role in ("out", "local")
        before = None if fresh else found.get(name, full(buffer.dtype))
        after = _left(statement, before, found)
        if fresh and statement.reduction != "=" and not _covers(statement, buffer):
            after |= _of_literal(identity(statement.reduction, buffer.dtype))
        found[name] = after if before is None else after | before
        if buffer.pad is not None:
            found[name] |= _of_literal(buffer.pad)
        written.add(name)
    return found


def _declared(buffer: Buffer) -> Interval | None:
    """Return what a buffer holds when the kernel begins; None if nothing more than its type says.

    Each element of an ``out`` or a ``local`` is written before it is read.
    """
    if not buffer.dtype.is_float and buffer.contents is not None:
        numbers = [int(value(literal)) for literal in buffer.contents.elements]
        found = Interval(min(numbers), max(numbers))
        return found if buffer.pad is None else found | _of_literal(buffer.pad)
    if buffer.dtype.is_float or buffer.values is None:
        return None
    found = _of_literal(buffer.values[0]) | _of_literal(buffer.values[1])
    return found if buffer.pad is None else found | _of_literal(buffer.pad)


def _of_literal(literal: Literal) -> Interval:
    number = int(value(literal))
    return Interval(number, number)


def _left(statement: Statement, before: Interval | None, known: Intervals) -> Interval:
    """Return what a statement leaves in the elements it writes, ``before`` in them or nothing."""
    dtype = statement.target.dtype
    new = interval_of(statement.value, statement, known)
    assert new is not None, "the value has the type of the target"
    if statement.reduction == "=":
        return new
    start = before or _of_literal(identity(statement.reduction, dtype))
    if statement.reduction == "+=":
        counts = _terms(statement)
        if counts is None:
            return full(dtype)
        ends = [count * end for count in counts for end in (new.low, new.high)]
        # A sum that wraps on the way but not at its end is right at its end.
        return wrapped(Interval(start.low + min(ends), start.high + max(ends)), dtype)
    if statement.reduction in ("max=", "min="):
        # An identity is replaced by the first term.
        return new if before is None else _both(statement, start, new)
    op = {"or=": "|", "and=": "&", "xor=": "^"}.get(statement.reduction)
    if op is None or dtype.kind == "bool":
        return full(dtype)
    return _Reader(statement, known).bits(op, start, new, dtype) | new


def _covers(statement: Statement, buffer: Buffer) -> bool:
    """Return whether a statement is seen to write every element of its target."""
    sizes = {v.name: v.extent for v in statement.variables if v.lower == const(0)}
    names = [index.name for index in statement.target.indices]
    found = [sizes.get(name) if name is not None else None for name in names]
    return len(set(names)) == len(names) and tuple(found) == buffer.shape


def _both(statement: Statement, start: Interval, new: Interval) -> Interval:
    pick = max if statement.reduction == "max=" else min
    return Interval(pick(start.low, new.low), pick(start.high, new.high)) | start


def _terms(statement: Statement) -> tuple[int, int] | None:
    """Return the least and the greatest number of terms that reach one element; None if unknown.

    At least one term reaches each element that the statement writes.
    """
    own = [index.name for index in statement.target.indices]
    moved = {
        name
        for index in statement.target.indices
        for name in index.names
        if name in {v.name for v in statement.variables}
    }
    plain = moved <= {name for name in own if name is not None}
    counts = [v.extent.constant for v in statement.variables if not (plain and v.name in own)]
    numbers = [count for count in counts if count is not None]
    if len(numbers) < len(counts):
        return None
    return (prod(numbers) if plain else 1), prod(numbers)


@dataclass(frozen=True, slots=True)
class _Reader:
    statement: Statement
    known: Intervals

    def of(self, expr: Expr) -> Interval:
        """Return the values of an expression that is no float."""
        match expr:
            case Literal():
                return _of_literal(expr)
            case Access(buffer, _, dtype):
                return self.known.get(buffer, full(dtype))
            case Coordinate(index, dtype):
                return self._index(index) or full(dtype)
            case Op(_, _, dtype):
                exact = wrapped(self.exact(expr), dtype)
                if not dtype.is_integer or not _is_ring(expr):
                    return exact
                other = wrapped(self.congruent(expr), dtype)
                return min(exact, other, key=lambda ends: ends.high - ends.low)
            case Reduce(_, _, _, dtype):
                return full(dtype)

    def congruent(self, expr: Expr) -> Interval:
        """Return numbers congruent to the values of an integer modulo the size of its type.

        Sums and products of what wraps are congruent to those of what does not: u8(a) + 128 is
        a + 128 for a in -128 .. 127.
        """
        match expr:
            case Op("cast", (inner,), dtype) if inner.dtype.is_integer:
                return self.congruent(inner) if inner.dtype.bits >= dtype.bits else self.of(inner)
            case Op(op, args, dtype) if dtype.is_integer and _is_ring(expr):
                return _combined(op, [self.congruent(arg) for arg in args])
            case _:
                return self.of(expr)

    def exact(self, expr: Op) -> Interval:
        """Return the values of an operation before they wrap or saturate."""
        dtype = expr.dtype
        if expr.op in ("<", "<=", ">", ">=", "==", "!=") or dtype.kind == "bool":
            return full(dtype)
        if any(arg.dtype.is_float for arg in expr.args):
            return full(dtype)
        args = [self.of(arg) for arg in expr.args]
        match expr.op, args:
            case "cast", [a]:
                return a
            case "sat", [a]:
                top, low = dtype.highest, dtype.lowest
                return Interval(min(max(a.low, low), top), max(min(a.high, top), low))
            case (("+" | "-" | "*" | "neg"), _):
                return _combined(expr.op, args)
            case "~", [a]:
                return Interval(-1 - a.high, -1 - a.low)
            case "abs", [a]:
                low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
                return Interval(low, max(abs(a.low), abs(a.high)))
            case "min", [a, b]:
                return Interval(min(a.low, b.low), min(a.high, b.high))
            case "max", [a, b]:
                return Interval(max(a.low, b.low), max(a.high, b.high))
            case "select", [_, a, b]:
                return a | b
            case (("&" | "|" | "^"), [a, b]):
                return self.bits(expr.op, a, b, dtype)
            case (("//" | "%" | "<<" | ">>"), [a, b]) if b.low == b.high:
                return _by_constant(expr.op, a, b.low, dtype)
            case _:
                return full(dtype)

    def bits(self, op: str, a: Interval, b: Interval, dtype: DType) -> Interval:
        """Return the values of a bitwise operation."""
        if a.low >= 0 and b.low >= 0:
            if op == "&":
                return Interval(0, min(a.high, b.high))
            return Interval(0, (1 << max(a.high, b.high).bit_length()) - 1)
        if op == "&" and max(a.low, b.low) >= 0:
            return Interval(0, a.high if a.low >= 0 else b.high)
        return full(dtype)

    def _index(self, index: Index) -> Interval | None:
        ranges: dict[str, tuple[int, int]] = {}
        for variable in self.statement.variables:
            low, size = variable.lower.constant, variable.extent.constant
            if low is not None and size is not None:
                ranges[variable.name] = (low, low + size - 1)
        ends = index.bounds(ranges)
        return Interval(*ends) if ends is not None else None


def _is_ring(expr: Op) -> bool:
    return expr.op in ("+", "-", "*", "neg")


def _combined(op: str, args: Sequence[Interval]) -> Interval:
    """Return the values of a ring operation that does not wrap."""
    match op, args:
        case "+", [a, b]:
            return Interval(a.low + b.low, a.high + b.high)
        case "-", [a, b]:
            return Interval(a.low - b.high, a.high - b.low)
        case "*", [a, b]:
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Interval(min(ends), max(ends))
        case _:
            (a,) = args
            return Interval(-a.high, -a.low)


def _by_constant(op: str, a: Interval, number: int, dtype: DType) -> Interval:
    match op:
        case "//" if number > 0:
            return Interval(a.low // number, a.high // number)
        case "%" if number > 0:
            if a.low // number == a.high // number:
                return Interval(a.low % number, a.high % number)
            return Interval(0, number - 1)
        case "<<" if 0 <= number < dtype.bits:
            return Interval(a.low << number, a.high << number)
        case ">>" if 0 <= number < dtype.bits:
            return Interval(a.low >> number, a.high >> number)
        case _:
            return full(dtype)
