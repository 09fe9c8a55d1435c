"""What the threads of a call execute together: which nodes they share, and where they must meet.

Every thread executes the whole body, but of a shared loop only its own iterations, and what stands
outside of these and writes to memory is left to the first thread.  Between nodes of which one
writes an array that the other touches they meet.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from isamap.emit.liveness import calls
from isamap.emit.once import written_once
from isamap.hw.accelerator import Entry
from isamap.ir.ahead import Uses
from isamap.lower.apart import uses
from isamap.lower.nodes import (
    Array,
    Call,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Setting,
    Token,
)


class Together:
    """Answers for the nodes of one function; arrays in ``private`` exist once per thread."""

    def __init__(self, entries: Mapping[str, Entry], private: frozenset[str]) -> None:
        self.entries = entries
        self.private = private

    @classmethod
    def of(
        cls, nodes: tuple[Node, ...], entries: Mapping[str, Entry], private: frozenset[str]
    ) -> "Together | None":
        """Return the answers for nodes of which threads share some loop, None for others."""
        together = cls(entries, private)
        return together if any(map(together.is_shared, nodes)) else None

    def touched(self, *nodes: Node) -> Uses:
        """Return the arrays in memory that nodes read and write, those of one thread left out."""
        found = uses(nodes, self.entries)
        return Uses(found.reads - self.private, found.writes - self.private)

    def is_shared(self, node: Node) -> bool:
        """Return whether threads share some loop of the node.

        They do not where something between the loops sets a register that it shares with them and
        writes to memory, too: the first thread's registers are not those of the others.
        """
        match node:
            case Loop(parallel=True):
                return True
            case Loop(body=body) | Scope(body=body):
                return self._any_shared(body)
            case Guard(_, body, otherwise):
                either = (*body, *otherwise)
                return self._any_shared(either)
            case _:
                return False

    def is_alone(self, node: Node) -> bool:
        """Return whether a node that is not shared is the first thread's: it writes to memory
        that is not each thread's own."""
        return bool(self.touched(node).writes)

    def must_meet(self, one: Uses, other: Uses) -> bool:
        """Return whether what one writes the other touches, so that threads meet in between."""
        return bool(one.writes & (other.reads | other.writes) or one.reads & other.writes)

    def may_come_late(self, nodes: tuple[Node, ...]) -> bool:
        """Return whether a thread may begin a function when others are past some of it.

        It finds the iterations taken and goes by where they met; but what every thread executes
        for itself must not read what the function has written over meanwhile.
        """
        written = self.touched(*nodes).writes
        return not any(self.touched(node).reads & written for node in self._for_itself(nodes))

    def _for_itself(self, nodes: tuple[Node, ...]) -> Iterator[Node]:
        """Yield what every thread executes."""
        for node in nodes:
            if not self.is_shared(node):
                if not self.is_alone(node):
                    yield node
                continue
            match node:
                case Loop(body=body, parallel=False) | Scope(body=body):
                    yield from self._for_itself(body)
                case Guard(_, body, otherwise):
                    yield from self._for_itself((*body, *otherwise))

    def _any_shared(self, nodes: tuple[Node, ...]) -> bool:
        apart = [node for node in nodes if not self.is_shared(node)]
        is_mixed = any(self.is_alone(node) and self._sets_registers(node) for node in apart)
        return len(apart) < len(nodes) and not is_mixed

    def _sets_registers(self, node: Node) -> bool:
        """Return whether a node writes registers that are declared outside of it."""
        own = {register.name for register in _declared(node)}
        for call in calls((node,)):
            instruction = self.entries[call.instruction].instruction
            for name, place in call.operands:
                if not isinstance(place, Register) or place.name in own:
                    continue
                if instruction.operand(name).role != "in":
                    return True
        return False


class InStep(Together):
    """Answers where all threads execute every call on scratchpads, each on a part of its own.

    Everything else is the first thread's.
    """

    def __init__(self, entries: Mapping[str, Entry], pads: frozenset[str]) -> None:
        super().__init__(entries, frozenset())
        self.pads = pads
        self.once: frozenset[str] = frozenset()

    @classmethod
    def on(
        cls,
        nodes: tuple[Node, ...],
        entries: Mapping[str, Entry],
        pads: frozenset[str],
        arrays: Iterable[Array],
    ) -> "InStep | None":
        """Return the answers for nodes with calls on the scratchpads ``pads``, None for others."""
        together = cls(entries, pads)
        if not any(map(together._has_step, nodes)):
            return None
        together.once = written_once(nodes, arrays, entries)
        return together

    def must_meet(self, one: Uses, other: Uses) -> bool:
        """Return whether threads must meet in between; stores to other elements have no order."""
        stores = (one.writes & other.writes) - self.once
        return bool(stores | (one.writes & other.reads) | (one.reads & other.writes))

    def is_shared(self, node: Node) -> bool:
        """Return whether a node that is no call holds some that all execute."""
        return not isinstance(node, Call) and self._has_step(node)

    def is_alone(self, node: Node) -> bool:
        """Return whether a node is the first thread's: it does nothing on scratchpads, and says
        nothing of the units and states that each thread has."""
        return not self._has_step(node) and not isinstance(node, Token | Setting)

    def may_come_late(self, nodes: tuple[Node, ...]) -> bool:
        """Return True: the description's own text has all cores begin at once."""
        return True

    def _has_step(self, node: Node) -> bool:
        return any(
            isinstance(place, Register) and place.storage in self.pads
            for call in calls((node,))
            for _, place in call.operands
        )


def without_threads(lowered: LoweredKernel) -> LoweredKernel:
    """Return a lowered kernel of which all cores execute every loop: one has no array alone."""
    arrays = tuple(replace(array, private=False) for array in lowered.arrays)
    prepare, body = map(_in_turn, (lowered.prepare, lowered.body))
    return replace(lowered, arrays=arrays, prepare=prepare, body=body)


def _in_turn(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    def each(node: Node) -> Node:
        match node:
            case Loop(body=body):
                return replace(node, body=_in_turn(body), parallel=False)
            case Scope(body=body):
                return replace(node, body=_in_turn(body))
            case Guard(_, body, otherwise):
                return replace(node, body=_in_turn(body), otherwise=_in_turn(otherwise))
            case _:
                return node

    return tuple(map(each, nodes))


def _declared(node: Node) -> tuple[Register, ...]:
    match node:
        case Scope(registers, body):
            return (*registers, *(r for inner in body for r in _declared(inner)))
        case Loop(body=body):
            return tuple(r for inner in body for r in _declared(inner))
        case Guard(_, body, otherwise):
            return tuple(r for inner in (*body, *otherwise) for r in _declared(inner))
        case _:
            return ()
