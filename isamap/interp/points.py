"""Chosen elements of an output only: the same meaning, for kernels too large to interpret whole."""

from collections.abc import Mapping

import numpy as np

from isamap.diagnostics import LimitError, VerifyError, fail
from isamap.interp.arguments import bind_symbols, check_arrays, shape_of
from isamap.interp.arithmetic import Arithmetic, declared
from isamap.interp.cells import Box, Cell, Linear, blocks, linear, pitches, size_of
from isamap.interp.declared import Declared
from isamap.interp.evaluate import Evaluator, Frame, out_of_bounds, outside_of
from isamap.interp.rounding import Values
from isamap.interp.run import ROOM, Folding, occurrences, point_frame, run_statements
from isamap.interp.setup import box_of, first_writer, make_cells, split
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.statements import identity

WHOLE_COST = 1 << 27
"""Iterations up to which the statements before one are interpreted whole."""

POINT_COST = 1 << 34
"""Iterations of chosen elements beyond which they take too long."""

_SEARCH = 1 << 28
"""Points of a scattered target that are searched for those that write a chosen element."""


def interpret_at(
    kernel: Kernel,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int] | None,
    buffer: str,
    points: Values,
    arithmetic: Arithmetic | None = None,
) -> Values:
    """Return the elements of a computed buffer at ``points``, one row of indices each.

    They are exactly those that :func:`isamap.interp.run.interpret` gives.  LimitError when even
    these take too long.
    """
    arithmetic = arithmetic or declared()
    values = bind_symbols(kernel, symbols or {}, arrays)
    check_arrays(kernel, arrays, values, isinstance(arithmetic, Declared) and not arithmetic.wide)
    with np.errstate(all="ignore"):
        elements = _Elements(kernel, arrays, values, arithmetic)
        shape = shape_of(kernel.buffer(buffer), values)
        indices = tuple(np.asarray(column, np.int64) for column in np.transpose(points))
        indices = indices if shape else ()
        found = elements.at(buffer, indices, len(kernel.statements), len(points))
        return arithmetic.decode(found, kernel.buffer(buffer).dtype)


class _Elements:
    """Elements of computed buffers, asked for by index."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Mapping[str, Values],
        symbols: Mapping[str, int],
        arithmetic: Arithmetic,
    ) -> None:
        self.kernel, self.arrays = kernel, arrays
        self.symbols, self.arithmetic = symbols, arithmetic
        self.spent = 0
        written = {s.target.buffer for s in kernel.statements}
        given = make_cells(kernel, (), arrays, symbols, arithmetic)
        self.inputs = {name: cell for name, cell in given.items() if name not in written}
        self.start = given
        self.whole: dict[int, dict[str, Cell]] = {}

    def at(self, buffer: str, indices: tuple[Values, ...], before: int, count: int) -> Values:
        """Return the elements of a buffer as they are before statement number ``before``."""
        shape = shape_of(self.kernel.buffer(buffer), self.symbols)
        if outside_of(shape, indices).any():
            access = Access(buffer, (), self.kernel.buffer(buffer).dtype)
            raise out_of_bounds(access, shape, indices, {})
        flat = np.zeros(count, np.int64)
        for index, pitch in zip(indices, pitches(shape), strict=True):
            flat = flat + index * pitch
        distinct, where = np.unique(flat, return_inverse=True)
        chosen: tuple[Values, ...] = ()
        if shape:
            chosen = tuple(np.asarray(i, np.int64) for i in np.unravel_index(distinct, shape))
        values, written = self._begin(buffer, chosen, len(distinct))
        for number, statement in enumerate(self.kernel.statements[:before]):
            if statement.target.buffer == buffer:
                self._apply(number, statement, chosen, distinct, values, written)
        if not written.all():
            place = ", ".join(str(i[np.argmin(written)]) for i in chosen)
            message = f"{buffer}[{place}] is read before it is written"
            raise VerifyError(fail("E202", message, self.kernel.buffer(buffer).span))
        return np.asarray(values[where.reshape(-1)])

    def _begin(self, buffer: str, indices: tuple[Values, ...], count: int) -> tuple[Values, Values]:
        """Return what elements start from, and which of them have a value from the start."""
        declaration = self.kernel.buffer(buffer)
        if declaration.role == "inout":
            cell = self.start[buffer]
            content = np.broadcast_to(cell.data.reshape(-1)[cell.address(indices)], (count,))
            return content.copy(), np.ones(count, np.bool_)
        values = np.zeros(count, self.arithmetic.carrier(declaration.dtype))
        writer = first_writer(self.kernel.statements, buffer)
        if writer is None or writer.reduction == "=":
            return values, np.zeros(count, np.bool_)
        values[...] = self.arithmetic.constant(identity(writer.reduction, declaration.dtype))
        return values, np.full(count, declaration.role == "local")

    def _apply(
        self,
        number: int,
        statement: Statement,
        indices: tuple[Values, ...],
        flat: Values,
        values: Values,
        written: Values,
    ) -> None:
        """Do the part of a statement that writes the chosen elements."""
        targets, reductions = split(statement, box_of(statement, self.symbols))
        if not size_of(targets + reductions):
            return
        if statement.reduction == "=":
            reductions = tuple((n, s + count - 1, 1) for n, s, count in reductions)
        which, variables = self._writers(statement, targets, indices, flat, number)
        if not len(which):
            return
        self.spent += len(which) * size_of(reductions)
        if self.spent > POINT_COST:
            raise LimitError(fail("E220", f"{len(flat)} elements take too long to interpret"))
        evaluator = self._evaluator(number)
        compute = evaluator.compile(statement.value, statement)
        folding = Folding(self.arithmetic, statement)
        rounds = occurrences(which)
        times = int(rounds.max()) + 1
        for turn in range(times):
            members = np.flatnonzero(rounds == turn)
            for at in range(0, len(members), ROOM):
                some = members[at : at + ROOM]
                total = values[which[some]]
                points = {name: value[some] for name, value in variables.items()}
                for step in blocks(reductions, max(1, ROOM // len(some))):
                    folding.combine(total, compute(point_frame(step, points, len(some))), step)
                values[which[some]] = total
        touched = np.unique(which)
        total = values[touched]
        folding.finish(total, times * size_of(reductions))
        values[touched] = total
        written[touched] = True

    def _evaluator(self, number: int) -> Evaluator:
        """Return the evaluator of a statement: what is computed before it is cheap, or asked."""
        before = self.kernel.statements[:number]
        cost = sum(size_of(box_of(s, self.symbols)) for s in before)
        cells: Mapping[str, Cell] = self.inputs
        if before and cost <= WHOLE_COST:
            if number not in self.whole:
                self.whole[number] = run_statements(
                    self.kernel, before, self.arrays, self.symbols, self.arithmetic
                )
            cells = self.whole[number]
        elif not before:
            cells = self.start

        def elements(access: Access, indices: tuple[Values, ...]) -> Values:
            shape = np.broadcast_shapes(*(i.shape for i in indices))
            flat = tuple(np.broadcast_to(i, shape).reshape(-1) for i in indices)
            buffer = self.kernel.buffer(access.buffer)
            extents = shape_of(buffer, self.symbols)
            outside = np.broadcast_to(outside_of(extents, flat), flat[0].shape if flat else (1,))
            if buffer.pad is None or not outside.any():
                count = len(flat[0]) if flat else 1
                return self.at(access.buffer, flat, number, count).reshape(shape)
            pad = self.arithmetic.constant(buffer.pad)
            found = np.full(len(outside), pad, self.arithmetic.carrier(buffer.dtype))
            inside = tuple(i[~outside] for i in flat)
            found[~outside] = self.at(access.buffer, inside, number, int((~outside).sum()))
            return found.reshape(shape)

        return Evaluator(self.kernel, cells, self.symbols, self.arithmetic, elements=elements)

    # --- which points of the loop nest write the chosen elements ----------------------------------
    def _writers(
        self,
        statement: Statement,
        targets: Box,
        indices: tuple[Values, ...],
        flat: Values,
        number: int,
    ) -> tuple[Values, dict[str, Values]]:
        """Return the number of the element written, and the variables, of all points that do.

        Points are in lexicographic order of the variables for each element.
        """
        forms = [linear(index, self.symbols) for index in statement.target.indices]
        affine = [form for form in forms if form is not None]
        if len(affine) == len(forms):
            solved = _solve(affine, targets, indices, len(flat))
            if solved is not None:
                return solved
        return self._search(statement, targets, flat, number)

    def _search(
        self, statement: Statement, targets: Box, flat: Values, number: int
    ) -> tuple[Values, dict[str, Values]]:
        if size_of(targets) > _SEARCH:
            message = f"{statement.target.buffer} is too large to search for chosen elements"
            raise LimitError(fail("E220", message, statement.span))
        evaluator = self._evaluator(number)
        shape = shape_of(self.kernel.buffer(statement.target.buffer), self.symbols)
        which: list[Values] = []
        found: dict[str, list[Values]] = {name: [] for name, _, _ in targets}
        for piece in blocks(targets, 1 << 20):
            values = Frame(piece).values
            extent = tuple(count for _, _, count in piece)
            address = np.zeros(extent, np.int64)
            for index, pitch in zip(statement.target.indices, pitches(shape), strict=True):
                address = address + evaluator.index_values(index, values, statement) * pitch
            place = np.searchsorted(flat, address).clip(0, len(flat) - 1)
            hit = flat[place] == address
            which.append(place[hit])
            for name, value in values.items():
                found[name].append(np.broadcast_to(value, extent)[hit])
        return np.concatenate(which), {n: np.concatenate(parts) for n, parts in found.items()}


def _solve(
    forms: list[Linear], targets: Box, indices: tuple[Values, ...], count: int
) -> tuple[Values, dict[str, Values]] | None:
    """Return the writers where some index holds each variable alone, None otherwise."""
    values: dict[str, Values] = {}
    valid = np.ones(count, np.bool_)
    for form, index in zip(forms, indices, strict=True):
        if len(form.coefficients) == 1:
            ((name, factor),) = form.coefficients.items()
            values.setdefault(name, (index - form.constant) // factor)
    if len(values) < len(targets):
        return None
    for form, index in zip(forms, indices, strict=True):
        reached: Values = np.full(count, form.constant)
        for name, factor in form.coefficients.items():
            reached = reached + factor * values[name]
        valid &= reached == index
    for name, start, extent in targets:
        valid &= (values[name] >= start) & (values[name] < start + extent)
    return np.flatnonzero(valid), {n: v[valid] for n, v in values.items()}
