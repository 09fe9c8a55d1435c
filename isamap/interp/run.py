"""The reference interpreter: what a kernel means.

A statement is a perfect loop nest over its variables, taken in lexicographic order, the target's
variables first.  Points with different targets do not depend on each other, so that all of them
are computed by one array operation for each step of the reduction.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isamap.diagnostics import VerifyError, fail
from isamap.interp.arguments import bind_symbols, check_arrays
from isamap.interp.arithmetic import Arithmetic, declared
from isamap.interp.cells import (
    Box,
    Cell,
    Linear,
    Strided,
    blocks,
    is_injective,
    size_of,
    strided,
)
from isamap.interp.declared import Declared
from isamap.interp.evaluate import (
    Compiled,
    Evaluator,
    Frame,
    Observer,
    out_of_bounds,
    outside_of,
)
from isamap.interp.rounding import Values
from isamap.interp.setup import box_of, make_cells, split
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses

ROOM = 1 << 17
"""Points of one array operation: enough to amortise its call, few enough for the caches."""


def interpret(
    kernel: Kernel,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int] | None = None,
    arithmetic: Arithmetic | None = None,
    observer: Observer | None = None,
) -> dict[str, Values]:
    """Return the content of every out, inout and local buffer after the kernel.

    ``arrays`` holds an array for every in, const and inout buffer, of the declared shape and type
    (any numbers where ``arithmetic`` is not the declared types).  Symbols that are not given are
    taken from the shapes.  ArgumentsError for arrays that do not fit; VerifyError for an access
    outside its buffer, a read of an element that was not written, an output not written.
    """
    arithmetic = arithmetic or declared()
    values = bind_symbols(kernel, symbols or {}, arrays)
    check_arrays(kernel, arrays, values, isinstance(arithmetic, Declared) and not arithmetic.wide)
    with np.errstate(all="ignore"):
        cells = run_statements(kernel, kernel.statements, arrays, values, arithmetic, observer)
        check_outputs(kernel, cells)
        return {
            b.name: arithmetic.decode(np.ascontiguousarray(cells[b.name].inner), b.dtype)
            for b in kernel.buffers
            if b.role in ("out", "inout", "local")
        }


def run_statements(
    kernel: Kernel,
    statements: tuple[Statement, ...],
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int],
    arithmetic: Arithmetic,
    observer: Observer | None = None,
) -> dict[str, Cell]:
    """Return all buffers after some statements of a kernel, run in order from the start."""
    cells = make_cells(kernel, statements, arrays, symbols, arithmetic)
    for statement in statements:
        _Run(kernel, statement, cells, symbols, arithmetic, observer).run()
    return cells


def check_outputs(kernel: Kernel, cells: Mapping[str, Cell]) -> None:
    """Raise VerifyError if an element of an out buffer was not written."""
    for buffer in kernel.buffers:
        written = cells[buffer.name].written
        if buffer.role == "out" and written is not None:
            at = np.unravel_index(int(np.argmin(written)), written.shape)
            place = ", ".join(map(str, at))
            message = f"{buffer.name}[{place}] is never written"
            raise VerifyError(fail("E203", message, buffer.span))


@dataclass(frozen=True, slots=True)
class Folding:
    """How the values of a statement reach its target."""

    arithmetic: Arithmetic
    statement: Statement

    def combine(self, total: Values, value: Values, step: Box) -> None:
        """Combine values over reduction steps (the leading dimensions) with targets, in place."""
        rank = len(step)
        value = np.asarray(value)
        if value.ndim == 0:
            value = value.reshape((1,) * (rank + total.ndim))
        counts = tuple(count for _, _, count in step)
        terms = np.broadcast_to(value, counts + value.shape[rank:])
        terms = terms.reshape((size_of(step), *value.shape[rank:]))
        if self.statement.reduction == "=":
            total[...] = terms[-1]
        else:
            op = REDUCTION_OPERATIONS[self.statement.reduction]
            self.arithmetic.fold(op, self.statement.target.dtype, total, terms)

    def finish(self, total: Values, terms: int) -> None:
        """End a reduction of so many terms into each target, in place."""
        if self.statement.reduction != "=":
            op = REDUCTION_OPERATIONS[self.statement.reduction]
            self.arithmetic.finish(op, self.statement.target.dtype, total, terms)


class _Run:
    """One statement, to be run once."""

    def __init__(
        self,
        kernel: Kernel,
        statement: Statement,
        cells: dict[str, Cell],
        symbols: Mapping[str, int],
        arithmetic: Arithmetic,
        observer: Observer | None,
    ) -> None:
        self.statement = statement
        self.target = cells[statement.target.buffer]
        self.arithmetic = arithmetic
        self.observer = observer
        self.targets, self.reductions = split(statement, box_of(statement, symbols))
        if statement.reduction == "=" and size_of(self.reductions):
            # The last of the points that assign to one element wins.
            self.reductions = tuple((n, s + count - 1, 1) for n, s, count in self.reductions)
        sources = _sources(statement, cells)
        self.evaluator = Evaluator(kernel, sources, symbols, arithmetic, observer)
        self.folding = Folding(arithmetic, statement)

    def run(self) -> None:
        """Execute the statement."""
        if not size_of(self.targets + self.reductions):
            return
        compute = self.evaluator.compile(self.statement.value, self.statement)
        forms = self.evaluator.forms(self.statement.target)
        if forms is not None and self._is_inside(forms):
            target = strided(self.target, forms)
            if is_injective(target, self.targets):
                for box in blocks(self.targets, ROOM):
                    self._run_box(compute, target, box)
                self._mark_box(target)
                return
        self._run_points(compute)

    def _is_inside(self, forms: tuple[Linear, ...]) -> bool:
        ends = [form.ends(self.targets) for form in forms]
        shape = self.target.shape
        return all(a >= 0 and b < n for (a, b), n in zip(ends, shape, strict=True))

    # --- distinct, affine targets: views ----------------------------------------------------------
    def _run_box(self, compute: Compiled, target: Strided, box: Box) -> None:
        total = target.view(box, full=True)
        if self.observer is not None:
            values = Frame(box).values
            self.observer(self.statement, self.statement.target, self._indices(values), True)
        steps = blocks(self.reductions, max(1, ROOM // total.size))
        for step in steps:
            self.folding.combine(total, compute(Frame(step + box)), step)
        self.folding.finish(total, size_of(self.reductions))

    def _mark_box(self, target: Strided) -> None:
        written = self.target.written
        if written is None:
            return
        if size_of(self.targets) == written.size:
            self.target.written = None
            return
        for box in blocks(self.targets, ROOM):
            self._mark(self._indices(Frame(box).values))

    # --- any other target: lists of points --------------------------------------------------------
    def _run_points(self, compute: Compiled) -> None:
        values = {name: v.reshape(-1) for name, v in _full(self.targets).items()}
        indices = self._indices(values)
        shape = self.target.shape
        if outside_of(shape, indices).any():
            raise out_of_bounds(self.statement.target, shape, indices, values)
        if self.observer is not None:
            self.observer(self.statement, self.statement.target, indices, True)
        addresses = np.broadcast_to(self.target.address(indices), (size_of(self.targets),))
        flat = self.target.data.reshape(-1)
        rounds = occurrences(addresses)
        for number in range(int(rounds.max()) + 1):
            for chosen in _pieces(np.flatnonzero(rounds == number)):
                total = flat[addresses[chosen]]
                points = {name: value[chosen] for name, value in values.items()}
                for step in blocks(self.reductions, max(1, ROOM // len(chosen))):
                    self.folding.combine(
                        total, compute(point_frame(step, points, len(chosen))), step
                    )
                flat[addresses[chosen]] = total
        distinct = np.unique(addresses)
        total = flat[distinct]
        self.folding.finish(total, (int(rounds.max()) + 1) * size_of(self.reductions))
        flat[distinct] = total
        self._mark(indices)

    # --- both -------------------------------------------------------------------------------------
    def _indices(self, values: Mapping[str, Values]) -> tuple[Values, ...]:
        target = self.statement.target
        return tuple(self.evaluator.index_values(i, values, self.statement) for i in target.indices)

    def _mark(self, indices: tuple[Values, ...]) -> None:
        if self.target.written is not None:
            self.target.written[indices] = True
            if self.target.written.all():
                self.target.written = None


def _sources(statement: Statement, cells: dict[str, Cell]) -> dict[str, Cell]:
    """Return the cells that a statement reads: what it reads of its target is the old content."""
    name = statement.target.buffer
    if not any(access.buffer == name for access in accesses(statement.value)):
        return cells
    cell = cells[name]
    old = Cell(cell.buffer, cell.shape, cell.data.copy(), cell.low, cell.pad, cell.written)
    return {**cells, name: old}


def _full(box: Box) -> dict[str, Values]:
    shape = tuple(count for _, _, count in box)
    return {n: np.broadcast_to(v, shape) for n, v in Frame(box).values.items()}


def point_frame(step: Box, points: Mapping[str, Values], count: int) -> Frame:
    """Return a frame of reduction steps times ``count`` points, the points last."""
    found = {name: v.reshape((*v.shape, 1)) for name, v in Frame(step).values.items()}
    found |= {name: v.reshape((1,) * len(step) + (count,)) for name, v in points.items()}
    return Frame(None, found)


def _pieces(chosen: Values) -> list[Values]:
    return [chosen[at : at + ROOM] for at in range(0, len(chosen), ROOM)]


def occurrences(addresses: Values) -> Values:
    """Return for each address how often it has occurred before, in order."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(ordered)]]))
    found = np.empty(len(addresses), np.int64)
    found[order] = np.arange(len(addresses)) - np.repeat(starts, lengths)
    return found
