"""Values of expressions, at a whole box of points or at a list of points at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np

from isamap.diagnostics import VerifyError, fail
from isamap.interp.arithmetic import Arithmetic
from isamap.interp.cells import Box, Cell, Linear, linear, strided
from isamap.interp.rounding import Values
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Literal, Op, Reduce, Statement


class Observer(Protocol):
    """Sees every access: index arrays broadcast against each other, one for each dimension."""

    def __call__(
        self, statement: Statement, access: Access, indices: tuple[Values, ...], write: bool
    ) -> None:
        """Take note of a read or a write of the elements at ``indices``."""
        ...


@dataclass(frozen=True, slots=True)
class Frame:
    """The points at which an expression is evaluated.

    Either a box, one dimension a variable; or ``points``, integer arrays that broadcast against
    each other.
    """

    box: Box | None
    points: Mapping[str, Values] = field(default_factory=dict)

    @property
    def values(self) -> Mapping[str, Values]:
        """The value of each variable, as arrays that broadcast to the points."""
        if self.box is None:
            return self.points
        found = {}
        for axis, (name, start, count) in enumerate(self.box):
            shape = [1] * len(self.box)
            shape[axis] = count
            found[name] = np.arange(start, start + count, dtype=np.int64).reshape(shape)
        return found


Compiled: TypeAlias = Callable[[Frame], Values]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Compiles expressions to functions of a frame.

    ``cells`` holds the buffers; a computed buffer without a cell is asked of ``elements``, which
    returns its values at given indices.
    """

    kernel: Kernel
    cells: Mapping[str, Cell]
    symbols: Mapping[str, int]
    arithmetic: Arithmetic
    observer: Observer | None = None
    elements: Callable[[Access, tuple[Values, ...]], Values] | None = None

    def compile(self, expr: Expr, statement: Statement) -> Compiled:
        """Return the function that evaluates an expression of a statement."""
        match expr:
            case Literal():
                value = self.arithmetic.constant(expr)
                return lambda frame: value
            case Coordinate(index, _):
                return lambda frame: self.arithmetic.coordinate(
                    self.index_values(index, frame.values, statement)
                )
            case Access():
                return self._access(expr, statement)
            case Op(op, args, dtype):
                parts = [self.compile(arg, statement) for arg in args]
                function = self.arithmetic.operation(op, tuple(a.dtype for a in args), dtype)
                return _applied(function, parts)
            case Reduce():
                raise AssertionError("what a text says is interpreted, not what stands for it")
            case _:
                assert_never(expr)

    def forms(self, access: Access) -> tuple[Linear, ...] | None:
        """Return the linear forms of an access's indices, or None if one is not linear."""
        found = [linear(index, self.symbols) for index in access.indices]
        forms = tuple(f for f in found if f is not None)
        return forms if len(forms) == len(found) else None

    def index_values(
        self, index: Index, values: Mapping[str, Values], statement: Statement
    ) -> Values:
        """Return an index expression's values."""

        def read(buffer: str, indices: tuple[Any, ...]) -> Values:
            dtype = self.kernel.buffer(buffer).dtype
            access = Access(buffer, tuple(_index_of(buffer, index, indices)), dtype)
            got = tuple(np.asarray(i, np.int64) for i in indices)
            return self.arithmetic.index(self.gather(access, got, values, statement))

        environment: dict[str, Any] = {**self.symbols, **values}
        return np.asarray(index.evaluate(environment, read), np.int64)

    def gather(
        self,
        access: Access,
        indices: tuple[Values, ...],
        values: Mapping[str, Values],
        statement: Statement,
    ) -> Values:
        """Return the elements at indices, the padding value outside; a fault if there is none."""
        if self.observer is not None:
            self.observer(statement, access, indices, False)
        cell = self.cells.get(access.buffer)
        if cell is None:
            assert self.elements is not None
            return self.elements(access, indices)
        outside = outside_of(cell.shape, indices)
        if not outside.any():
            check_written(cell, access, indices)
            return np.asarray(cell.data.reshape(-1)[cell.address(indices)])
        if cell.pad is None:
            raise out_of_bounds(access, cell.shape, indices, _in_order(statement, values))
        clipped = tuple(
            np.clip(i, 0, max(0, n - 1)) for i, n in zip(indices, cell.shape, strict=True)
        )
        found = cell.data.reshape(-1)[cell.address(clipped)]
        return np.asarray(np.where(outside, cell.pad, found))

    def _access(self, access: Access, statement: Statement) -> Compiled:
        cell = self.cells.get(access.buffer)
        forms = self.forms(access)
        view = None if cell is None or forms is None else strided(cell, forms)

        def load(frame: Frame) -> Values:
            if view is not None and cell is not None and forms is not None:
                plain = self.observer is None and cell.written is None
                if plain and frame.box is not None and cell.fits(forms, frame.box):
                    return view.view(frame.box)
            values = frame.values
            indices = tuple(self.index_values(i, values, statement) for i in access.indices)
            return self.gather(access, indices, values, statement)

        return load


def _applied(function: Callable[..., Values], parts: Sequence[Compiled]) -> Compiled:
    match parts:
        case [first]:
            return lambda frame: function(first(frame))
        case [first, second]:
            return lambda frame: function(first(frame), second(frame))
        case _:
            return lambda frame: function(*(part(frame) for part in parts))


def _index_of(buffer: str, index: Index, indices: tuple[Any, ...]) -> tuple[Index, ...]:
    """Return the expressions of the read atom, for the observer and for messages."""
    for atom in index.reads:
        if atom.buffer == buffer and len(atom.indices) == len(indices):
            return atom.indices
    return ()


def _in_order(statement: Statement, values: Mapping[str, Values]) -> Mapping[str, Values]:
    return {v.name: values[v.name] for v in statement.variables if v.name in values}


def outside_of(shape: Sequence[int], indices: Sequence[Values]) -> Values:
    """Return where indices lie outside a shape."""
    outside = np.zeros((), np.bool_)
    for index, size in zip(indices, shape, strict=True):
        outside = outside | (index < 0) | (index >= size)
    return np.asarray(outside)


def check_written(cell: Cell, access: Access, indices: tuple[Values, ...]) -> None:
    """Raise VerifyError if an element is read that no statement has written."""
    if cell.written is None:
        return
    missing = ~cell.written[indices]
    if missing.any():
        at = np.unravel_index(int(np.argmax(missing)), missing.shape)
        place = ", ".join(str(np.broadcast_to(i, missing.shape)[at]) for i in indices)
        message = f"{access.buffer}[{place}] is read before it is written"
        raise VerifyError(fail("E202", message, access.span))


def out_of_bounds(
    access: Access, shape: Sequence[int], indices: Sequence[Values], values: Mapping[str, Values]
) -> VerifyError:
    """Return the error for an access outside its buffer, with the first offending values."""
    outside = outside_of(shape, indices)
    at = np.unravel_index(int(np.argmax(outside)), outside.shape)
    place = tuple(int(np.broadcast_to(i, outside.shape)[at]) for i in indices)
    used = frozenset().union(*(index.names for index in access.indices))
    named = [
        f"{name} = {int(np.broadcast_to(value, outside.shape)[at])}"
        for name, value in values.items()
        if name in used
    ]
    where = f" at {', '.join(named)}" if named else ""
    message = (
        f"{access.buffer}[{', '.join(map(str, place))}] is outside its shape "
        f"[{', '.join(map(str, shape))}]{where}"
    )
    return VerifyError(fail("E201", message, access.span))
