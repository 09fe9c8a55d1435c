"""Results that every legitimate evaluation must give bit for bit.

A sum whose terms are all multiples of some power of two, and whose magnitudes add up to no more
than its type holds exactly, is the same in every order and with every fused operation.  Data on a
coarse grid, as :func:`isamap.interp.inputs.random_inputs` draws it, makes most kernels so, and then
no tolerance is needed to check them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isamap.interp.cells import Box, size_of
from isamap.interp.rounding import Values, literal_value
from isamap.interp.setup import box_of, split
from isamap.interp.tables import table_array
from isamap.ir.dtype import DType
from isamap.ir.index import Index, Name
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Kernel, Literal, Op, Reduce, Statement

_FINEST = 40
"""Grids finer than 2**-40 are no grids."""

_PIECE = 1 << 22


@dataclass(frozen=True, slots=True)
class Fact:
    """What holds for all values of an expression or a buffer.

    ``fixed``: every legitimate evaluation gives the same values.  ``grid``: they are multiples of
    ``2**grid``; None if nothing is known.  ``size`` is no less than any magnitude.
    """

    fixed: bool
    grid: int | None = None
    size: float = math.inf


_LOOSE = Fact(False)
_FIXED = Fact(True)

# One rounding of exact arguments, or none: the same everywhere.
_SINGLE = frozenset({"/", "sqrt", "round", "floor", "ceil", "trunc", "cast", "sat"})

_CHOOSING = frozenset({"min", "max", "abs", "neg"})


def fixed_outputs(
    kernel: Kernel, arrays: Mapping[str, Values], symbols: Mapping[str, int]
) -> frozenset[str]:
    """Return the buffers whose content after the kernel is the same in every evaluation."""
    facts: dict[str, Fact] = {}
    for buffer in kernel.buffers:
        if buffer.role in ("in", "const", "table", "inout"):
            array = table_array(buffer) if buffer.contents else np.asarray(arrays[buffer.name])
            with np.errstate(over="ignore", invalid="ignore"):  # then they are on no grid
                facts[buffer.name] = _of_array(buffer, array)
    for statement in kernel.statements:
        box = box_of(statement, symbols)
        reader = _Reader(kernel, facts, symbols, box)
        found = reader.reduced(statement, box)
        name = statement.target.buffer
        facts[name] = _either(facts[name], found) if name in facts else found
    return frozenset(name for name, fact in facts.items() if fact.fixed)


def _of_array(buffer: Buffer, array: Values) -> Fact:
    if array.size == 0:
        return Fact(True, 0, 0.0)
    if not buffer.dtype.is_float:
        wide = array.astype(np.int64) if buffer.dtype.bits < 64 else array
        return Fact(True, 0, float(max(abs(int(wide.min())), abs(int(wide.max())))))
    flat = array.reshape(-1)
    grid = next((g for g in range(_FINEST) if _is_on(flat[:4096], g)), None)
    pieces = range(0, flat.size, _PIECE)
    if grid is None or not all(_is_on(flat[at : at + _PIECE], grid) for at in pieces):
        return _FIXED
    held = (_wide(flat[at : at + _PIECE]) for at in pieces)
    return Fact(True, -grid, max(float(max(-x.min(), x.max())) for x in held))


def _wide(values: Values) -> Values:
    return values if values.dtype.itemsize >= 4 else values.astype(np.float32)


def _is_on(values: Values, grid: int) -> bool:
    """Return whether all values are finite multiples of ``2**-grid``, none of them huge."""
    wide = _wide(values)
    scaled = wide * wide.dtype.type(2.0**grid)
    return bool((np.isfinite(scaled) & (scaled == np.rint(scaled))).all())


@dataclass(frozen=True, slots=True)
class _Reader:
    """Finds facts of the expressions of one statement."""

    kernel: Kernel
    facts: Mapping[str, Fact]
    symbols: Mapping[str, int]
    box: Box

    def reduced(self, statement: Statement, box: Box) -> Fact:
        """Return the fact of what a statement leaves in its target."""
        fact, dtype = self.of(statement.value), statement.target.dtype
        if not all(self._is_fixed(index) for index in statement.target.indices):
            return _LOOSE
        if statement.reduction == "=":
            return fact
        if not dtype.is_float or statement.reduction in ("max=", "min="):
            # The identity of max and min is infinite; it stays only where nothing is reduced.
            return fact if statement.reduction in ("max=", "min=") else _integer(fact.fixed, dtype)
        if statement.reduction != "+=" or fact.grid is None or not fact.fixed:
            return _LOOSE
        before = self.facts.get(statement.target.buffer, Fact(True, fact.grid, 0.0))
        if before.grid is None or not before.fixed:
            return _LOOSE
        total = _terms(statement, box) * fact.size + before.size
        return _exact(dtype, min(fact.grid, before.grid), total) or _LOOSE

    def of(self, expr: Expr) -> Fact:
        """Return the fact of an expression."""
        match expr:
            case Literal():
                return _of_literal(expr)
            case Coordinate(index, _):
                return self._of_index(index)
            case Access(buffer, indices, _):
                if not all(self._is_fixed(index) for index in indices):
                    return _LOOSE
                fact = self.facts.get(buffer, _LOOSE)
                pad = self.kernel.buffer(buffer).pad
                return fact if pad is None else _either(fact, _of_literal(pad))
            case Op(op, args, dtype):
                approximate = self.kernel.permissions.approximate is not None
                if approximate and op in ("/", "sqrt"):
                    return _LOOSE
                return _of_operation(op, [self.of(arg) for arg in args], dtype)
            case Reduce():
                return _LOOSE

    def _of_index(self, index: Index) -> Fact:
        ranges = {name: (start, start + count - 1) for name, start, count in self.box}
        ends = index.substitute(self.symbols).bounds(ranges)
        size = float(max(map(abs, ends))) if ends is not None else math.inf
        return Fact(self._is_fixed(index), 0, size)

    def _is_fixed(self, index: Index) -> bool:
        return all(self.facts.get(atom.buffer, _LOOSE).fixed for atom in index.reads)


def _terms(statement: Statement, box: Box) -> int:
    """Return a number of terms that no element of the target exceeds."""
    targets, reductions = split(statement, box)
    alone = set()
    for index in statement.target.indices:
        match index.atoms:
            case (Name(name),) if len(index.names) == 1:
                alone.add(name)
            case _:
                pass
    return size_of(reductions + tuple(v for v in targets if v[0] not in alone))


def _of_literal(literal: Literal) -> Fact:
    value = literal_value(literal)
    if not isinstance(value, Fraction):
        return Fact(True, 0, 0.0) if value == 0 else _FIXED
    power = value.denominator.bit_length() - 1
    if value.denominator != 1 << power or power > _FINEST:
        return _FIXED
    return _exact(literal.dtype, -power, float(abs(value))) or _FIXED


def _of_operation(op: str, facts: list[Fact], dtype: DType) -> Fact:
    fixed = all(fact.fixed for fact in facts)
    if not fixed:
        return _LOOSE
    if not dtype.is_float:
        return _integer(True, dtype)
    if op in _CHOOSING:
        return _joined(facts)
    if op == "select":
        return _joined(facts[1:])
    grids = [fact.grid for fact in facts if fact.grid is not None]
    if len(grids) == len(facts):
        sizes = [fact.size for fact in facts]
        exact = None
        if op in ("+", "-"):
            exact = _exact(dtype, min(grids), sum(sizes))
        elif op == "*":
            exact = _exact(dtype, sum(grids), sizes[0] * sizes[1])
        elif op == "fma":
            size = sizes[0] * sizes[1] + sizes[2]
            exact = _exact(dtype, min(grids[0] + grids[1], grids[2]), size)
        elif op in ("cast", "sat"):
            exact = _exact(dtype, grids[0], sizes[0])
        if exact is not None:
            return exact
    return _FIXED if op in _SINGLE else _LOOSE


def _exact(dtype: DType, grid: int, size: float) -> Fact | None:
    """Return the fact of results on a grid if the type holds all of them, None otherwise."""
    if not dtype.is_float:
        return _integer(True, dtype)
    if size > math.ldexp(1.0, dtype.precision + grid) or size >= 2.0**dtype.max_exponent:
        return None
    if grid < 2 - dtype.max_exponent - dtype.precision:
        return None
    return Fact(True, grid, size)


def _integer(fixed: bool, dtype: DType) -> Fact:
    return Fact(fixed, 0, float(max(-dtype.lowest, dtype.highest)))


def _joined(facts: list[Fact]) -> Fact:
    found = facts[0]
    for fact in facts[1:]:
        found = _either(found, fact)
    return found


def _either(a: Fact, b: Fact) -> Fact:
    grid = None if a.grid is None or b.grid is None else min(a.grid, b.grid)
    return Fact(a.fixed and b.fixed, grid, max(a.size, b.size))
