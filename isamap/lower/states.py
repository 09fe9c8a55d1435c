"""States of the machine, which instructions find set: set where they change, and out of loops.

A pitch, a scale or a mode that an instruction takes from a register is set before it, once for all
that follow with the same value: before a loop where all in it want that one value and it does not
change there.  What a parallel loop holds is set inside of it, as other cores may have its rounds.
A state that holds several values has one of them for each as long as there is room.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, const
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Scope, Setting

Value: TypeAlias = Index | Literal
Slot: TypeAlias = tuple[str, int]
"""A state, and which of the values that it holds."""

Known: TypeAlias = dict[Slot, Value]
"""The values that states have for certain."""


def with_states(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return the lowered kernel with all states set, if the machine has any."""
    if not accelerator.states:
        return lowered
    entries = accelerator.by_name
    counts = {state.name: state.count for state in accelerator.states}
    prepare, body = (
        _States(entries, _slots(nodes, entries, counts)).nodes(nodes, {})
        for nodes in (lowered.prepare, lowered.body)
    )
    return replace(lowered, prepare=prepare, body=body)


def _slots(
    nodes: Iterable[Node], entries: Mapping[str, Entry], counts: Mapping[str, int]
) -> dict[tuple[str, Value], int]:
    """Return where states hold their values: in the order of the code, the last ones together."""
    found: dict[tuple[str, Value], int] = {}
    used: dict[str, int] = {}
    for call in _calls(nodes):
        for state, value in wanted_states(call, entries[call.instruction]).items():
            if (state, value) not in found:
                found[state, value] = min(used.get(state, 0), counts[state] - 1)
                used[state] = used.get(state, 0) + 1
    return found


def _calls(nodes: Iterable[Node]) -> Iterator[Call]:
    for node in nodes:
        match node:
            case Call():
                yield node
            case Loop(body=body) | Scope(body=body):
                yield from _calls(body)
            case Guard(_, body, otherwise):
                yield from _calls((*body, *otherwise))
            case _:
                pass


def wanted_states(call: Call, entry: Entry) -> dict[str, Value]:
    """Return the values that a call takes states to have."""
    symbols, operands = dict(call.symbols), dict(call.operands)
    extents = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
    found: dict[str, Value] = {}
    for state, source in entry.states.items():
        if isinstance(source, int):
            found[state] = const(source)
        elif source in operands:
            value = operands[source]
            assert isinstance(value, Index | Literal), "states have immediates' values"
            found[state] = value
        else:
            found[state] = symbols[source] if source in symbols else const(extents[source])
    return found


@dataclass(frozen=True, slots=True)
class _States:
    entries: Mapping[str, Entry]
    slots: Mapping[tuple[str, Value], int]

    def of_call(self, call: Call) -> Known:
        """Return what a call wants to be set, and where."""
        wanted = wanted_states(call, self.entries[call.instruction])
        return {(state, self.slots[state, value]): value for state, value in wanted.items()}

    def nodes(self, nodes: Iterable[Node], known: Known) -> tuple[Node, ...]:
        """Return nodes with what is set before them; ``known`` is what holds, and then holds."""
        made: list[Node] = []
        for node in nodes:
            made += self._node(node, known)
        return tuple(made)

    def _node(self, node: Node, known: Known) -> list[Node]:
        match node:
            case Call():
                return [*_set(self.of_call(node), known), node]
            case Scope(body=body):
                return [replace(node, body=self.nodes(body, known))]
            case Guard(_, body, otherwise):
                either, other = dict(known), dict(known)
                inside = self.nodes(body, either)
                outside = self.nodes(otherwise, other)
                _keep(known, {s: v for s, v in either.items() if other.get(s) == v})
                return [replace(node, body=inside, otherwise=outside)]
            case Loop():
                return self._loop(node, known)
            case _:
                return [node]

    def _loop(self, loop: Loop, known: Known) -> list[Node]:
        wanted = self._wanted(loop.body)
        moving = {loop.counter, *_counters(loop.body)}
        once = {
            state: next(iter(values))
            for state, values in wanted.items()
            if len(values) == 1 and not _names(next(iter(values))) & moving
        }
        before: list[Setting] = []
        if not loop.parallel:
            before = _set(once, known)
        within = {s: v for s, v in known.items() if s not in wanted or s in once}
        if loop.parallel:
            within = {}
        after = dict(within)
        body = self.nodes(loop.body, after)
        # No round may have been done.
        _keep(known, {s: v for s, v in within.items() if after.get(s) == v and known.get(s) == v})
        return [*before, replace(loop, body=body)]

    def _wanted(self, nodes: Iterable[Node]) -> dict[Slot, set[Value]]:
        """Return all values that some nodes want of each state."""
        found: dict[Slot, set[Value]] = {}
        for call in _calls(nodes):
            for slot, value in self.of_call(call).items():
                found.setdefault(slot, set()).add(value)
        return found


def _set(wanted: Known, known: Known) -> list[Setting]:
    """Return what sets states that do not have their values, and take note of it."""
    changed = {state: value for state, value in wanted.items() if known.get(state) != value}
    known |= changed
    return [Setting(state, value, slot) for (state, slot), value in changed.items()]


def _keep(known: Known, kept: Known) -> None:
    known.clear()
    known |= kept


def _names(value: Value) -> frozenset[str]:
    return value.names if isinstance(value, Index) else frozenset()


def _counters(nodes: Iterable[Node]) -> set[str]:
    """Return the counters of all loops in some nodes."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case Loop(counter, _, body):
                found |= {counter, *_counters(body)}
            case Scope(body=body):
                found |= _counters(body)
            case Guard(_, body, otherwise):
                found |= _counters((*body, *otherwise))
            case _:
                pass
    return found
