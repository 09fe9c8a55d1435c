"""Every element of a register has a value when it is read: data flow over a lowered kernel.

Nothing is asked of a solver here.  What an instruction reads is taken at the largest, what it
writes at the smallest value of each extent that is known at run time only; a loop whose count may
be 0 writes nothing that is seen after it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Buffer, Statement
from isamap.ir.statements import accesses
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
)

Bits = NDArray[np.bool_]
State = dict[str, Bits]
"""The elements of each register that have a value for certain."""

_POINTS = 1 << 22
"""Iterations of an instruction that are looked at."""


@dataclass(frozen=True, slots=True)
class Flow:
    """``faults`` are reads without a value or of a register that is not there; ``undecided`` what
    could not be followed, ``reads`` how many operands were."""

    reads: int
    faults: tuple[str, ...]
    undecided: tuple[str, ...]


def register_flow(machine: Accelerator, lowered: LoweredKernel) -> Flow:
    """Return whether every register element is written before it is read."""
    flow = _Flow({entry.name: entry for entry in machine.entries})
    flow.run(lowered.code, {}, {})
    return Flow(flow.reads, tuple(dict.fromkeys(flow.faults)), tuple(dict.fromkeys(flow.undecided)))


class _Flow:
    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self.reads = 0
        self.faults: list[str] = []
        self.undecided: list[str] = []
        self.known: dict[object, tuple[Bits, Bits] | None] = {}
        self.shared: frozenset[str] = frozenset()  # registers of several parallel iterations
        self.inside = False  # such an iteration

    def run(self, nodes: tuple[Node, ...], state: State, scope: Mapping[str, Register]) -> State:
        """Return what has a value after some nodes."""
        for node in nodes:
            match node:
                case Call():
                    state = self._call(node, state, scope)
                case Copy() | Prefetch() | Token() | Setting():
                    pass
                case Scope(registers, body):
                    inner = dict(state)
                    for register in registers:
                        inner[register.name] = np.zeros(prod(register.shape), np.bool_)
                    inside = {**scope, **{r.name: r for r in registers}}
                    outside = self.shared
                    self.shared = outside - {r.name for r in registers}
                    after = self.run(body, inner, inside)
                    self.shared = outside
                    outer = {name: after[name] for name in state}
                    # A register of the scope may hide one of the same name around it.
                    hidden = {r.name for r in registers} & state.keys()
                    state = {**outer, **{name: state[name] for name in hidden}}
                case Loop(_, count, body, parallel):
                    outside = self.shared
                    self.shared = frozenset(scope) if parallel and not self.inside else outside
                    before, self.inside = self.inside, self.inside or parallel
                    after = self.run(body, state, scope)
                    self.shared, self.inside = outside, before
                    state = after if (count.constant or 0) >= 1 else state
                case Guard(_, body, otherwise):
                    one, other = self.run(body, state, scope), self.run(otherwise, state, scope)
                    state = {name: one[name] & other[name] for name in state}
        return state

    def _call(self, call: Call, state: State, scope: Mapping[str, Register]) -> State:
        entry = self.entries.get(call.instruction)
        if entry is None:
            self.faults.append(f"there is no instruction {call.instruction}")
            return state
        result = dict(state)
        for name, place in call.operands:
            if not isinstance(place, Register):
                continue
            if scope.get(place.name) != place:
                self.faults.append(f"{call.instruction} uses {place.name}, which is not in scope")
                continue
            operand = entry.instruction.operand(name)
            if (place.storage, place.dtype) != (operand.storage, operand.dtype):
                text = f"{call.instruction}: {place.name} is no {operand.dtype} @ {operand.storage}"
                self.faults.append(text)
                continue
            found = self._footprint(call, entry, operand, place)
            if found is None:
                self.undecided.append(f"operand {name} of {call.instruction}")
                result[place.name] = np.ones_like(state[place.name])  # no fault follows from it
                continue
            reads, writes = found
            self.reads += bool(reads.any())
            missing = reads & ~state[place.name]
            if missing.any():
                element = int(np.argmax(missing))
                text = f"{call.instruction} reads element {element} of {place.name} before a write"
                self.faults.append(text)
            if writes.any() and place.name in self.shared:
                self.faults.append(f"parallel iterations write the same register {place.name}")
            result[place.name] = result[place.name] | writes
        return result

    def _footprint(
        self, call: Call, entry: Entry, operand: Buffer, place: Register
    ) -> tuple[Bits, Bits] | None:
        key = (entry.name, operand.name, place.shape, call.symbols)
        if key not in self.known:
            self.known[key] = footprint(entry, operand, place.shape, dict(call.symbols))
        return self.known[key]


def footprint(
    entry: Entry, operand: Buffer, shape: tuple[int, ...], given: Mapping[str, Index]
) -> tuple[Bits, Bits] | None:
    """Return the elements that an instruction may read from, and surely writes to, a register.

    None if an index or an extent cannot be followed.
    """
    reads, writes = np.zeros(prod(shape), np.bool_), np.zeros(prod(shape), np.bool_)
    for most in (True, False):
        symbols = _extremes(entry, given, most)
        done = np.zeros(prod(shape), np.bool_)
        for statement in entry.instruction.statements:
            for access, is_write in _accesses(statement, operand):
                touched = _elements(statement, access, operand, shape, symbols, is_write)
                if touched is None:
                    return None
                if is_write:
                    done |= touched
                elif most:
                    reads |= touched & ~done
        if not most:
            writes = done
    return reads, writes


def _accesses(statement: Statement, operand: Buffer) -> Iterator[tuple[Access, bool]]:
    """Yield a statement's reads of an operand, then its write."""
    for access in accesses(statement.value):
        if access.buffer == operand.name:
            yield access, False
    if statement.target.buffer == operand.name:
        # An 'out' operand starts from the identity of its reduction.
        if statement.reduction != "=" and operand.role == "inout":
            yield statement.target, False
        yield statement.target, True


def _extremes(entry: Entry, given: Mapping[str, Index], most: bool) -> dict[str, int]:
    found = {}
    for extent in entry.instruction.extents:
        value = given[extent.name].constant if extent.name in given else extent.value
        if value is None and extent.range is not None:
            value = extent.range[1] - 1 if most else extent.range[0]
        if value is not None:  # a pitch in memory may be anything
            found[extent.name] = value
    return found


def _elements(
    statement: Statement,
    access: Access,
    operand: Buffer,
    shape: tuple[int, ...],
    symbols: dict[str, int],
    is_write: bool,
) -> Bits | None:
    """Return the elements of a register of ``shape`` that an access reaches."""
    try:
        box = [
            (v.name, int(v.lower.evaluate(symbols)), int(v.extent.evaluate(symbols)))
            for v in statement.variables
        ]
        own = tuple(int(extent.evaluate(symbols)) for extent in operand.shape)
    except KeyError:
        return None
    points = prod(count for _, _, count in box)
    if any(index.reads for index in access.indices) or points > _POINTS:
        return None
    grids = np.indices([count for _, _, count in box]).reshape(len(box), points)
    values = {name: grid + low for (name, low, _), grid in zip(box, grids, strict=True)}
    found = np.zeros(prod(shape), np.bool_)
    if points == 0:
        return found
    places = [np.broadcast_to(i.evaluate({**symbols, **values}), (points,)) for i in access.indices]
    inside = np.ones(points, np.bool_)
    for place, size in zip(places, own, strict=True):
        inside &= (place >= 0) & (place < size)
    if prod(own) == prod(shape):
        shape = own  # the same elements in the same order, however they are grouped
    if len(own) != len(shape) or any(n > held for n, held in zip(own, shape, strict=True)):
        return None
    if not inside.all() and (is_write or operand.pad is None):
        return None
    flat = np.zeros(points, np.int64)
    for place, held in zip(places, shape, strict=True):
        flat = flat * held + place
    found[flat[inside]] = True
    return found
