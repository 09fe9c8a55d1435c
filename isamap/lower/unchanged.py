"""What a loop would bring to a register or scratchpad again and again, and brings but once.

A compiler of C takes what does not change out of a loop.  Instructions that no compiler orders stay
where they are put: weights that are stationary in an array, say, would be loaded for each row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Operand,
    Register,
    Scope,
    Window,
)
from isamap.lower.rounds import renamed

MOST = 4096
"""Calls of a loop whose first iteration stands apart, at most."""


def unchanged_kept(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return a lowered kernel in which what does not change in a loop is brought but once.

    The first iteration, which does that amid its calls, stands before the others.  That is for
    machines whose instructions no compiler orders.
    """
    if accelerator.is_reordered:
        return lowered
    kept = _Kept(accelerator.by_name)
    return replace(lowered, prepare=kept.nodes(lowered.prepare), body=kept.nodes(lowered.body))


@dataclass(frozen=True, slots=True)
class _Uses:
    """The calls of a loop that write each register, and the arrays that it writes."""

    writers: Mapping[str, int]
    arrays: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Kept:
    entries: Mapping[str, Entry]

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Return nodes whose loops keep what does not change in them, inner ones first."""
        found: list[Node] = []
        for node in nodes:
            match node:
                case Loop(body=body):
                    found.append(self._loop(replace(node, body=self.nodes(body))))
                case Scope(body=body):
                    found.append(replace(node, body=self.nodes(body)))
                case Guard(body=body, otherwise=otherwise):
                    parts = self.nodes(body), self.nodes(otherwise)
                    found.append(replace(node, body=parts[0], otherwise=parts[1]))
                case _:
                    found.append(node)
        return tuple(found)

    def _loop(self, loop: Loop) -> Node:
        """Return a loop after its first iteration, which brings what it needs but once."""
        trips = loop.count.constant
        if loop.parallel or trips is None or trips < 2 or _calls(loop.body) > MOST:
            return loop
        kept: dict[str, Register] = {}
        first, rest = self._parted(loop.body, loop.counter, self._uses(loop.body), kept, {})
        if not kept:
            return loop
        begun = renamed(first, {loop.counter: const(0)})
        again = renamed(rest, {loop.counter: var(loop.counter) + 1})
        return Scope(
            tuple(kept.values()), (*begun, replace(loop, count=const(trips - 1), body=again))
        )

    def _parted(
        self,
        nodes: Sequence[Node],
        counter: str,
        uses: _Uses,
        kept: dict[str, Register],
        scope: Mapping[str, Register],
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return what a loop does the first time and each other one; what is ``kept`` is added.

        ``scope`` has the registers of the scopes around.
        """
        first: list[Node] = []
        rest: list[Node] = []
        for node in nodes:
            if isinstance(node, Scope):
                inner = {**scope, **{register.name: register for register in node.registers}}
                parts = self._parted(node.body, counter, uses, kept, inner)
                registers = tuple(r for r in node.registers if r.name not in kept)
                for found, body in zip((first, rest), parts, strict=True):
                    found += [replace(node, registers=registers, body=body)] if registers else body
                continue
            first.append(node)
            target = self._brought(node, counter, uses, kept) if isinstance(node, Call) else None
            if target is not None and target in scope:
                kept[target] = scope[target]
            else:
                rest.append(node)
        return tuple(first), tuple(rest)

    def _brought(
        self, call: Call, counter: str, uses: _Uses, kept: Mapping[str, Register]
    ) -> str | None:
        """Return the register that nothing but this call writes, the same in each iteration."""
        roles = self._roles(call)
        target = None
        for name, place in call.operands:
            if roles[name] != "in":
                if target is not None or roles[name] != "out" or not isinstance(place, Register):
                    return None
                target = place.name
            elif not self._is_same(place, counter, uses, kept):
                return None
        if any(counter in index.names for _, index in call.symbols):
            return None
        return target if target is not None and uses.writers[target] == 1 else None

    def _is_same(
        self, place: Operand, counter: str, uses: _Uses, kept: Mapping[str, Register]
    ) -> bool:
        """Return whether what is read is the same in each iteration of a loop."""
        match place:
            case Register(name):
                return name in kept or name not in uses.writers
            case Window(buffer, offset):
                return buffer not in uses.arrays and _is_without(offset, counter)
            case Literal():
                return True
            case Index():
                return _is_without(place, counter)

    def _uses(self, nodes: Sequence[Node]) -> _Uses:
        writers: dict[str, int] = {}
        arrays: set[str] = set()
        for node in _all(nodes):
            if isinstance(node, Copy):
                arrays.add(node.target)
            elif isinstance(node, Call):
                roles = self._roles(node)
                for name, place in node.operands:
                    if roles[name] == "in":
                        continue
                    if isinstance(place, Register):
                        writers[place.name] = writers.get(place.name, 0) + 1
                    elif isinstance(place, Window):
                        arrays.add(place.buffer)
        return _Uses(writers, frozenset(arrays))

    def _roles(self, call: Call) -> Mapping[str, str]:
        """Return whether a call reads or writes each operand; one in the place of another: both."""
        entry = self.entries[call.instruction]
        own = {o.name: o.role for o in entry.instruction.operands}
        return {name: "inout" if name in entry.same else role for name, role in own.items()}


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        match node:
            case Loop(body=body) | Scope(body=body):
                yield from _all(body)
            case Guard(body=body, otherwise=otherwise):
                yield from _all(body)
                yield from _all(otherwise)


def _calls(nodes: Sequence[Node]) -> int:
    return sum(isinstance(node, Call) for node in _all(nodes))


def _is_without(index: Index, counter: str) -> bool:
    """Return whether an index is the same for all of a counter's values; arrays may be written."""
    return counter not in index.names and not index.reads
