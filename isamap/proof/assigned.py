"""Numbered registers hold what is read from them: data flow over who wrote a number last.

This knows nothing of how numbers are given.  For each number it follows the fragments that may have
written it last; a fragment is read only where that is itself, for each of its numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.nodes import Buffer
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
from isamap.proof.registers import footprint

Slot = tuple[str, int]
"""A register file and one of its numbers."""

Holders = Mapping[Slot, frozenset[str]]
"""The fragments that may have written to a register last; none where nobody has."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """``fragments`` in numbered registers are used; ``faults`` are numbers that are wrong, and
    reads of what another fragment has overwritten."""

    fragments: int
    faults: tuple[str, ...]


def assigned_registers(machine: Accelerator, lowered: LoweredKernel) -> Assigned:
    """Return whether each fragment still has its numbered register when it is read."""
    flow = _Flow(machine)
    if any(machine.rows(storage) is not None for storage in machine.storages):
        # What a call finds in the registers when it begins is nobody's.
        for nodes in (lowered.prepare, lowered.body):
            flow.run(nodes, {})
    return Assigned(len(flow.seen), tuple(dict.fromkeys(flow.faults)))


class _Flow:
    def __init__(self, machine: Accelerator) -> None:
        self.machine = machine
        self.entries = {entry.name: entry for entry in machine.entries}
        self.seen: set[str] = set()
        self.faults: list[str] = []
        self.whole: dict[object, bool] = {}

    def run(self, nodes: tuple[Node, ...], state: Holders) -> Holders:
        """Return who may hold each register after some nodes."""
        for node in nodes:
            match node:
                case Call():
                    state = self._call(node, state)
                case Copy() | Prefetch() | Token() | Setting():
                    pass
                case Scope(_, body):
                    state = self.run(body, state)
                case Loop(_, _, body):
                    # An iteration begins with what comes before the loop or after another one.
                    begin = state
                    while (after := _either(begin, self.run(body, begin))) != begin:
                        begin = after
                    state = begin
                case Guard(_, body, otherwise):
                    state = _either(self.run(body, state), self.run(otherwise, state))
        return state

    def _call(self, call: Call, state: Holders) -> Holders:
        entry = self.entries.get(call.instruction)
        if entry is None:
            return state  # another claim says so
        written: list[tuple[str, tuple[Slot, ...]]] = []
        for name, place in call.operands:
            if not isinstance(place, Register):
                continue
            slots = self._slots(place)
            operand = entry.instruction.operand(name)
            if slots and (operand.role != "out" or not self._is_whole(call, entry, operand, place)):
                self._look(call, place, slots, state, fresh=operand.role == "out")
            if operand.role in ("out", "inout"):
                written.append((place.name, slots))
        result = dict(state)
        for name, slots in written:
            result.update(dict.fromkeys(slots, frozenset((name,))))
        taken = [slot for _, slots in written for slot in slots]
        if len(set(taken)) < len(taken):
            self.faults.append(f"{call.instruction} writes two results to one register")
        return result

    def _slots(self, place: Register) -> tuple[Slot, ...]:
        """Return the registers that a fragment is in; none where they have no numbers."""
        storage = next((s for s in self.machine.storages if s.name == place.storage), None)
        if storage is None or self.machine.rows(storage) is None:
            if place.number is not None:
                self.faults.append(f"{place.name} has a number, and {place.storage} has none")
            return ()
        self.seen.add(place.name)
        file, _ = self.machine.register_file(storage)
        each = self.machine.rows_for(storage, prod(place.shape) * place.dtype.bytes)
        each *= place.places
        number = -1 if place.number is None else place.number
        if not self.machine.may_begin(storage, number, each):
            self.faults.append(f"{place.name} cannot be in {file.name} {place.number}")
            return ()
        return tuple((file.name, n) for n in range(number, number + each))

    def _look(
        self, call: Call, place: Register, slots: tuple[Slot, ...], state: Holders, fresh: bool
    ) -> None:
        """Note where a register that is read, or kept in part, may be another fragment's.

        One that is written in part for the first time (``fresh``) may be nobody's yet.
        """
        for slot in slots:
            others = state.get(slot, frozenset()) - {place.name}
            if others and not (fresh and place.name not in state.get(slot, frozenset())):
                file, number = slot
                self.faults.append(
                    f"{call.instruction} finds {min(others)} in {file} {number}, not {place.name}"
                )

    def _is_whole(self, call: Call, entry: Entry, operand: Buffer, place: Register) -> bool:
        """Return whether an instruction writes all of a register for certain."""
        key = (entry.name, operand.name, place.shape, call.symbols)
        if key not in self.whole:
            found = footprint(entry, operand, place.shape, dict(call.symbols))
            self.whole[key] = found is not None and bool(found[1].sum() == prod(place.shape))
        return self.whole[key]


def _either(one: Holders, other: Holders) -> Holders:
    slots = one.keys() | other.keys()
    return {s: one.get(s, frozenset()) | other.get(s, frozenset()) for s in slots}
