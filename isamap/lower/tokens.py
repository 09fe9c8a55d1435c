"""Tokens by which queues wait for each other, where hardware does not hold back what must wait.

In each list of nodes, what one unit does after another one on the same place waits for it: the
first posts to a channel after its last such node, the second waits before its node.  In a loop it
waits for what earlier iterations did, too, but not for the last ones where these used other places
of a fragment.  Nothing is told apart within an array in memory.  Copies and instructions of the
host wait for everything and are waited for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from isamap.hw.accelerator import Accelerator, Entry
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Token,
    Window,
)

Area = tuple[str, int, int]
"""An array, a register or a storage, and the first row and the first after it."""


def with_tokens(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return the lowered kernel with the tokens that a machine's queues need, if they need any."""
    if accelerator.queues != "tokens":
        return lowered
    tokens = _Tokens(accelerator, accelerator.by_name)
    prepare, body = (tokens.nodes(nodes, None) for nodes in (lowered.prepare, lowered.body))
    return replace(lowered, prepare=prepare, body=body)


@dataclass(frozen=True, slots=True)
class _Effect:
    """A unit reads or writes an area.

    ``owner`` is the fragment, if it is one; ``settled`` if a loop inside has tokens for what its
    iterations do to it.
    """

    unit: str
    area: Area
    write: bool
    owner: Register | None = None
    settled: bool = False


@dataclass(slots=True)
class _Slot:
    """A place in a list of nodes: what it does, and the tokens before and after it."""

    effects: tuple[_Effect, ...]
    barrier: bool = False
    before: list[Token] = field(default_factory=list)
    after: list[Token] = field(default_factory=list)


Last = dict[Area, dict[tuple[str, bool, Register | None, bool], int]]
"""For each area by which unit, and how, it was used last: the number of the slot."""


@dataclass(slots=True)
class _Tokens:
    accelerator: Accelerator
    entries: Mapping[str, Entry]
    channels: int = 0

    def nodes(self, nodes: Sequence[Node], loop: Loop | None) -> tuple[Node, ...]:
        """Return nodes with tokens; those of ``loop`` if they are its body."""
        slots: list[_Slot] = []
        declared: set[Register] = set()
        self._flatten(nodes, slots, declared)
        last: Last = {}
        reached = self._in_order(slots, last)
        if loop is not None:
            self._carried(slots, last, declared, reached)
        made, rest = self._rebuilt(nodes, slots)
        assert not rest
        return made

    def _flatten(self, nodes: Sequence[Node], slots: list[_Slot], declared: set[Register]) -> None:
        for node in nodes:
            if isinstance(node, Scope):
                declared |= set(node.registers)
                self._flatten(node.body, slots, declared)
            else:
                slots.append(_Slot(tuple(self._effects(node)), self._is_host(node)))

    def _is_host(self, node: Node) -> bool:
        """Return whether the host does what a node says, when all queues are done."""
        if isinstance(node, Call):
            return self.accelerator.queue(self.entries[node.instruction]) is None
        return isinstance(node, Copy)

    def _rebuilt(
        self, nodes: Sequence[Node], slots: Sequence[_Slot]
    ) -> tuple[tuple[Node, ...], Sequence[_Slot]]:
        """Return nodes with the tokens of the first slots, and the slots that are left."""
        made: list[Node] = []
        for node in nodes:
            if isinstance(node, Scope):
                body, slots = self._rebuilt(node.body, slots)
                made.append(replace(node, body=body))
                continue
            (slot, *slots) = slots
            made += [*slot.before, self._inside(node), *slot.after]
        return tuple(made), slots

    def _inside(self, node: Node) -> Node:
        match node:
            case Loop(body=body):
                return replace(node, body=self.nodes(body, node))
            case Guard(_, body, otherwise):
                inside = self.nodes(body, None)
                return replace(node, body=inside, otherwise=self.nodes(otherwise, None))
            case _:
                return node

    # --- what nodes do ----------------------------------------------------------------------------
    def _effects(self, node: Node) -> Iterable[_Effect]:
        match node:
            case Call():
                yield from self._of_call(node)
            case Loop(body=body):
                own: set[Register] = set()
                _declared(body, own)
                for effect in self._of(body):
                    is_own = effect.owner in own
                    yield replace(effect, settled=effect.settled or is_own)
            case Guard(_, body, otherwise):
                yield from self._of((*body, *otherwise))
            case Scope(_, body):
                yield from self._of(body)
            case _:
                return

    def _of(self, nodes: Iterable[Node]) -> tuple[_Effect, ...]:
        return tuple(dict.fromkeys(e for node in nodes for e in self._effects(node)))

    def _of_call(self, call: Call) -> Iterable[_Effect]:
        entry = self.entries[call.instruction]
        if (unit := self.accelerator.queue(entry)) is None:
            return
        for name, place in call.operands:
            role = entry.instruction.operand(name).role
            if isinstance(place, Register):
                area, owner = self._area(place), place
            elif isinstance(place, Window):
                area, owner = (place.buffer, 0, 1), None
            else:
                continue
            if role != "out":
                yield _Effect(unit, area, False, owner)
            if role in ("out", "inout"):
                yield _Effect(unit, area, True, owner)

    def _area(self, register: Register) -> Area:
        if register.number is None:
            return f"{register.name} @", 0, 1
        storage = self.accelerator.storage(register.storage)
        file, _ = self.accelerator.register_file(storage)
        size = prod(register.shape) * register.dtype.bytes
        rows = self.accelerator.rows_for(storage, size) * register.places
        return f"@ {file.name}", register.number, register.number + rows

    # --- who waits for whom -----------------------------------------------------------------------
    def _in_order(self, slots: Sequence[_Slot], last: Last) -> dict[tuple[str, str], int]:
        """Add tokens for what follows in one pass; return from which slot on a unit has waited.

        The slot is the first before which the second unit waits for the first one.
        """
        covered: dict[tuple[str, str], int] = {}
        reached: dict[tuple[str, str], int] = {}
        barrier = -1
        for number, slot in enumerate(slots):
            wanted: dict[tuple[str, str], int] = {}
            for effect in slot.effects:
                for _, users in _overlapping(last, effect.area):
                    for (unit, write, _, _), at in users.items():
                        if unit != effect.unit and (write or effect.write):
                            pair = unit, effect.unit
                            wanted[pair] = max(wanted.get(pair, -1), at)
            for pair, at in wanted.items():
                if at > max(covered.get(pair, -1), barrier):
                    self._link(slots[at], slot, pair, 0)
                    covered[pair] = at
                    reached.setdefault(pair, number)
            if slot.barrier:
                barrier = number
            for effect in slot.effects:
                users = last.setdefault(effect.area, {})
                users[effect.unit, effect.write, effect.owner, effect.settled] = number
        return reached

    def _carried(
        self,
        slots: Sequence[_Slot],
        last: Last,
        declared: set[Register],
        reached: dict[tuple[str, str], int],
    ) -> None:
        """Add tokens for what earlier iterations did.

        A unit that has waited for another one in the same iteration has waited for all that this
        one did in those before.
        """
        done: dict[tuple[str, str, int], int] = {}
        for number, slot in enumerate(slots):
            wanted: dict[tuple[str, str, int], int] = {}
            for effect in slot.effects:
                for _, users in _overlapping(last, effect.area):
                    for (unit, write, owner, settled), at in users.items():
                        if unit == effect.unit or not (write or effect.write):
                            continue
                        if reached.get((unit, effect.unit), number + 1) <= number:
                            continue
                        same = owner is not None and owner == effect.owner
                        inside = settled or effect.settled
                        if same and inside and at == number:
                            continue  # the loop that this slot is has seen to it
                        turns = 1
                        if same and not inside and owner in declared and owner:
                            turns = owner.places
                        key = unit, effect.unit, turns
                        wanted[key] = max(wanted.get(key, -1), at)
            for (first, second, turns), at in wanted.items():
                if at > done.get((first, second, turns), -1):
                    self._link(slots[at], slot, (first, second), turns - 1)
                    done[first, second, turns] = at

    def _link(self, first: _Slot, second: _Slot, pair: tuple[str, str], behind: int) -> None:
        channel = f"{pair[0]}_{pair[1]}_{self.channels}"
        self.channels += 1
        first.after.append(Token(pair[0], channel))
        second.before.append(Token(pair[1], channel, waits=True, behind=behind))


def _declared(nodes: Sequence[Node], found: set[Register]) -> None:
    """Add the registers that a loop's body declares, or a loop inside it."""
    for node in nodes:
        match node:
            case Scope(registers, body):
                found |= set(registers)
                _declared(body, found)
            case Loop(body=body):
                _declared(body, found)
            case _:
                pass


def _overlapping(
    last: Last, area: Area
) -> Iterable[tuple[Area, dict[tuple[str, bool, Register | None, bool], int]]]:
    name, begin, end = area
    return [
        (other, users)
        for other, users in last.items()
        if other[0] == name and other[1] < end and begin < other[2]
    ]
