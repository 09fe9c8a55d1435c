"""Execution of one instruction on operands that lie anywhere in flat arrays.

A :class:`Plan` holds everything that does not depend on where the operands lie, so that a call is
a few numpy operations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeAlias, assert_never

import numpy as np

from isamap.interp.arguments import shape_of
from isamap.interp.arithmetic import Arithmetic, declared
from isamap.interp.cells import Box, linear, pitches, size_of
from isamap.interp.evaluate import Frame, outside_of
from isamap.interp.rounding import Values
from isamap.interp.run import occurrences
from isamap.interp.setup import box_of, split
from isamap.interp.tables import carried
from isamap.ir.index import Index
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Instruction,
    Literal,
    Op,
    Reduce,
    Statement,
)
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import identity


class CallFault(AssertionError):
    """An instruction was used in a way that its description does not allow."""


Place: TypeAlias = tuple[Values, int]
"""A flat array of carried values and the element at which an operand begins."""

Loader: TypeAlias = Callable[[Sequence[Place]], Values]
Step: TypeAlias = Callable[[Sequence[Place]], None]
Combine: TypeAlias = Callable[[Values, Values], None]
Store: TypeAlias = Callable[[Sequence[Place], Values, Combine], None]


@dataclass(frozen=True, slots=True)
class Footprint:
    """The elements of one operand that a plan touches, as addresses from the operand's begin.

    ``reads`` are those that must have a value before the call, ``writes`` those that it writes.
    """

    reads: Values
    writes: Values

    @property
    def ends(self) -> tuple[int, int] | None:
        """The least and the largest address, None if nothing is touched."""
        touched = np.concatenate([self.reads, self.writes])
        return (int(touched.min()), int(touched.max())) if touched.size else None


class Plan:
    """An instruction bound to symbols and to the pitches of its operands."""

    def __init__(
        self,
        instruction: Instruction,
        symbols: Mapping[str, int],
        operand_pitches: Mapping[str, tuple[int, ...]],
        arithmetic: Arithmetic,
    ) -> None:
        self.instruction = instruction
        self.arithmetic = arithmetic
        self.symbols = {e.name: e.value for e in instruction.extents if e.value is not None}
        self.symbols |= symbols
        self.names = tuple(o.name for o in instruction.operands)
        self.shapes = {o.name: shape_of(o, self.symbols) for o in instruction.operands}
        self.pitches = {n: operand_pitches.get(n) or pitches(s) for n, s in self.shapes.items()}
        self._locals = [
            (position, prod(self.shapes[o.name]), arithmetic.carrier(o.dtype))
            for position, o in enumerate(instruction.operands)
            if o.role == "local"
        ]
        self._tables = [
            (position, carried(o.contents, arithmetic))
            for position, o in enumerate(instruction.operands)
            if o.contents is not None
        ]
        self._reads: dict[str, list[Values]] = {name: [] for name in self.names}
        self._writes: dict[str, list[Values]] = {name: [] for name in self.names}
        self._steps = [self._statement(s) for s in instruction.statements]

    @cached_property
    def footprints(self) -> Mapping[str, Footprint]:
        """What is touched of each operand, by name."""
        return {n: self._footprint(self.instruction.operand(n)) for n in self.names}

    def run(self, places: list[Place]) -> None:
        """Execute the statements; ``places`` are in the order of the operands.

        The caller has checked that every touched address lies in its array; places of local
        operands and of tables are set here.
        """
        for position, size, data_type in self._locals:
            places[position] = (np.zeros(size, data_type), 0)
        for position, elements in self._tables:
            places[position] = (elements, 0)
        for step in self._steps:
            step(places)

    # --- what is touched --------------------------------------------------------------------------
    def _footprint(self, operand: Buffer) -> Footprint:
        def gathered(found: list[Values]) -> Values:
            return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

        reads, writes = gathered(self._reads[operand.name]), gathered(self._writes[operand.name])
        if operand.role in ("out", "local"):
            reads = reads[:0]  # only what the instruction itself has written
        return Footprint(reads, writes)

    # --- statements -------------------------------------------------------------------------------
    def _statement(self, statement: Statement) -> Step:
        targets, reductions = split(statement, box_of(statement, self.symbols))
        box = reductions + targets
        if not size_of(box):
            return lambda places: None
        target, dtype = statement.target, statement.target.dtype
        fresh = not self._writes[target.buffer] and self._is_output(target.buffer)
        compute = self._compile(statement.value, box)
        store = self._store(target, targets)
        counts = tuple(count for _, _, count in reductions)
        if statement.reduction == "=":
            last = (-1,) * len(counts)
            return lambda places: store(places, compute(places)[last], _assign)
        if not fresh:
            self._reads[target.buffer] += self._writes[target.buffer][-1:]
        start = self.arithmetic.constant(identity(statement.reduction, dtype)) if fresh else None
        op, fold = REDUCTION_OPERATIONS[statement.reduction], self.arithmetic.fold

        def combine(total: Values, terms: Values) -> None:
            fold(op, dtype, total, terms)

        def reduce(places: Sequence[Place]) -> None:
            value = compute(places)
            rest = value.shape[len(counts) :]
            if value.shape[: len(counts)] != counts:
                value = np.broadcast_to(value, counts + rest)
            if start is not None:
                store(places, start, _assign)
            store(places, value.reshape((-1, *rest)), combine)

        return reduce

    def _is_output(self, name: str) -> bool:
        return self.instruction.operand(name).role in ("out", "local")

    def _store(self, target: Access, box: Box) -> Store:
        """Return the function that assigns a value to the target, or folds terms into it."""
        at, data_type = self.names.index(target.buffer), self.arithmetic.carrier(target.dtype)
        if any(index.reads for index in target.indices):
            self._writes[target.buffer].append(np.zeros(0, np.int64))
            return self._store_anywhere(target, box, at)
        addresses, outside = self._addresses(target, box)
        if outside.any():
            raise CallFault(f"{self.instruction.name} writes outside its operand {target.buffer}")
        flat = np.broadcast_to(addresses, tuple(n for _, _, n in box)).reshape(-1)
        # Most are written in order, and sorting them would be most of the work.
        written = flat if (flat[1:] > flat[:-1]).all() else np.unique(flat)
        self._writes[target.buffer].append(written)
        if not is_strided(target, self.symbols) or len(written) < len(flat):
            rounds = occurrences(flat)
            return lambda places, value, combine: _scatter(
                places[at], flat, rounds, box, value, combine
            )
        first, shape, strides = self._strided(target, box, full=True)
        size = data_type.itemsize

        def store(places: Sequence[Place], value: Values, combine: Combine) -> None:
            data, offset = places[at]
            view = np.ndarray(shape, data_type, data, (offset + first) * size, strides)
            combine(view, value)

        return store

    def _store_anywhere(self, target: Access, box: Box, at: int) -> Store:
        """Return the store of a target whose indices are read from an operand."""

        def store(places: Sequence[Place], value: Values, combine: Combine) -> None:
            indices = self._indices(target, box, places)
            if outside_of(self.shapes[target.buffer], indices).any():
                raise CallFault(f"an index of {target.buffer} is outside {target.buffer}")
            flat = np.broadcast_to(
                self._address(target.buffer, indices), tuple(n for _, _, n in box)
            ).reshape(-1)
            _check_inside(target.buffer, flat, places[at])
            _scatter(places[at], flat, occurrences(flat), box, value, combine)

        return store

    # --- expressions ------------------------------------------------------------------------------
    def _compile(self, expr: Expr, box: Box) -> Loader:
        match expr:
            case Literal():
                value = self.arithmetic.constant(expr).reshape((1,) * len(box))
                return lambda places: value
            case Coordinate(index, _):
                return lambda places: self.arithmetic.coordinate(self._index(index, box, places))
            case Access():
                return self._load(expr, box)
            case Op(op, args, dtype):
                parts = [self._compile(arg, box) for arg in args]
                function = self.arithmetic.operation(op, tuple(a.dtype for a in args), dtype)
                return _applied(function, parts)
            case Reduce():
                raise AssertionError("what a text says is executed, not what stands for it")
            case _:
                assert_never(expr)

    def _load(self, access: Access, box: Box) -> Loader:
        name, data_type = access.buffer, self.arithmetic.carrier(access.dtype)
        at = self.names.index(name)
        declared_pad = self.instruction.operand(name).pad
        pad = None if declared_pad is None else self.arithmetic.constant(declared_pad)
        if any(index.reads for index in access.indices):
            return lambda places: self._load_anywhere(access, box, places, pad)
        addresses, outside = self._addresses(access, box)
        if outside.any() and pad is None:
            raise CallFault(f"{self.instruction.name} reads outside its operand {name}")
        shape = np.broadcast_shapes(addresses.shape, outside.shape)
        inside = ~np.broadcast_to(outside, shape)
        live = np.broadcast_to(addresses, shape)[inside]
        self._reads[name].append(live)
        if not outside.any() and is_strided(access, self.symbols):
            first, view_shape, strides = self._strided(access, box, full=False)
            size = data_type.itemsize

            def view(places: Sequence[Place]) -> Values:
                data, offset = places[at]
                return np.ndarray(view_shape, data_type, data, (offset + first) * size, strides)

            return view
        filled = np.zeros(shape, data_type) if pad is None else np.full(shape, pad, data_type)

        def gather(places: Sequence[Place]) -> Values:
            data, offset = places[at]
            value = filled.copy()
            value[inside] = data[live + offset]
            return value

        return gather

    def _load_anywhere(
        self, access: Access, box: Box, places: Sequence[Place], pad: Values | None
    ) -> Values:
        """Return the elements of an access whose indices are read from an operand."""
        shape = self.shapes[access.buffer]
        indices = self._indices(access, box, places)
        outside = outside_of(shape, indices)
        if outside.any():
            if pad is None:
                raise CallFault(f"an index of {access.buffer} is outside {access.buffer}")
            indices = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, shape, strict=True))
        place = places[self.names.index(access.buffer)]
        addresses = self._address(access.buffer, indices)
        _check_inside(access.buffer, addresses[~outside] if outside.any() else addresses, place)
        data, offset = place
        found = np.asarray(data[np.clip(addresses + offset, 0, data.size - 1)])
        return found if pad is None else np.asarray(np.where(outside, pad, found))

    # --- addresses --------------------------------------------------------------------------------
    def _index(self, index: Index, box: Box, places: Sequence[Place]) -> Values:
        """Return an index's values over a box, with one dimension a variable."""

        def read(name: str, indices: tuple[Any, ...]) -> Values:
            got = tuple(np.asarray(i, np.int64) for i in indices)
            if outside_of(self.shapes[name], got).any():
                raise CallFault(f"{self.instruction.name} reads outside its operand {name}")
            addresses, place = self._address(name, got), places[self.names.index(name)]
            _check_inside(name, addresses, place)
            return self.arithmetic.index(np.asarray(place[0][addresses + place[1]]))

        environment: dict[str, Any] = {**self.symbols, **Frame(box).values}
        values = np.asarray(index.evaluate(environment, read), np.int64)
        return values if values.ndim else values.reshape((1,) * len(box))

    def _indices(self, access: Access, box: Box, places: Sequence[Place]) -> tuple[Values, ...]:
        return tuple(self._index(index, box, places) for index in access.indices)

    def _address(self, name: str, indices: Sequence[Values]) -> Values:
        total = np.zeros((), np.int64)
        for index, pitch in zip(indices, self.pitches[name], strict=True):
            total = total + index * pitch
        return np.asarray(total, np.int64)

    def _addresses(self, access: Access, box: Box) -> tuple[Values, Values]:
        """Return the addresses of an access over a box, and where it leaves the operand."""
        indices = self._indices(access, box, ())
        addresses = self._address(access.buffer, indices)
        if not addresses.ndim:
            addresses = addresses.reshape((1,) * len(box))
        return addresses, outside_of(self.shapes[access.buffer], indices)

    def _strided(
        self, access: Access, box: Box, full: bool
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return first address, shape and byte strides of a linear access over a box."""
        size = self.arithmetic.carrier(access.dtype).itemsize
        first, steps = 0, dict.fromkeys((name for name, _, _ in box), 0)
        for index, pitch in zip(access.indices, self.pitches[access.buffer], strict=True):
            form = linear(index, self.symbols)
            assert form is not None
            first += form.constant * pitch
            for name, factor in form.coefficients.items():
                steps[name] += factor * pitch
        first += sum(steps[name] * start for name, start, _ in box)
        shape = tuple(count if full or steps[name] else 1 for name, _, count in box)
        return first, shape, tuple(steps[name] * size for name, _, _ in box)


def is_strided(access: Access, symbols: Mapping[str, int]) -> bool:
    """Return whether all indices of an access are linear in the variables."""
    return all(linear(index, symbols) is not None for index in access.indices)


def _assign(total: Values, value: Values) -> None:
    total[...] = value


def _scatter(
    place: Place, flat: Values, rounds: Values, box: Box, value: Values, combine: Combine
) -> None:
    """Combine values with elements of which some are met several times, in order."""
    data, offset = place
    shape = tuple(count for _, _, count in box)
    lead = value.shape[: value.ndim - len(shape)] if value.ndim >= len(shape) else ()
    terms = np.broadcast_to(value, lead + shape).reshape((*lead, -1))
    for number in range(int(rounds.max()) + 1):
        chosen = np.flatnonzero(rounds == number)
        total = data[flat[chosen] + offset]
        combine(total, terms[..., chosen])
        data[flat[chosen] + offset] = total


def _check_inside(name: str, addresses: Values, place: Place) -> None:
    data, offset = place
    if addresses.size and (addresses.min() + offset < 0 or addresses.max() + offset >= data.size):
        raise CallFault(f"an index leads outside the array in which {name} lies")


def _applied(function: Callable[..., Values], parts: Sequence[Loader]) -> Loader:
    match parts:
        case [first]:
            return lambda places: function(first(places))
        case [first, second]:
            return lambda places: function(first(places), second(places))
        case _:
            return lambda places: function(*(part(places) for part in parts))


# --- single calls ---------------------------------------------------------------------------
def execute(
    instruction: Instruction, operands: Mapping[str, Values], symbols: Mapping[str, int]
) -> None:
    """Execute an instruction on arrays of the operands' shapes and types, written in place.

    Operands in memory may be views with any strides; ``symbols`` gives the extents without value.
    CallFault if the arrays do not fit.
    """
    key = tuple(sorted(symbols.items()))
    plan = _plan(_Identity(instruction), key)
    arithmetic = plan.arithmetic
    places: list[Place] = []
    for operand in instruction.operands:
        shape = plan.shapes[operand.name]
        if operand.role in ("local", "table"):
            places.append((np.zeros(0), 0))
            continue
        array = operands.get(operand.name)
        if array is None or array.shape != shape or array.dtype != operand.dtype.numpy:
            given = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            wanted = f"{operand.dtype}{list(shape)}"
            raise CallFault(f"{instruction.name}.{operand.name} is {wanted}, given is {given}")
        carried = np.array(array, arithmetic.carrier(operand.dtype), order="C")
        places.append((carried.reshape(-1), 0))
    with np.errstate(all="ignore"):
        plan.run(places)
    for operand, (data, _) in zip(instruction.operands, places, strict=True):
        if operand.role in ("out", "inout"):
            result = data.reshape(plan.shapes[operand.name])
            operands[operand.name][...] = arithmetic.decode(result, operand.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """An instruction as a key: hashing the tree at every call would cost more than the call."""

    instruction: Instruction

    def __hash__(self) -> int:
        return id(self.instruction)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.instruction is self.instruction


@lru_cache(maxsize=4096)
def _plan(key: _Identity, symbols: tuple[tuple[str, int], ...]) -> Plan:
    return Plan(key.instruction, dict(symbols), {}, declared())
