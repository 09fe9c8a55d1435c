"""Another order of the calls of a block where units are queues, so that units wait less.

A queue begins its instructions in the order in which they come.  Where each tile of a block is
finished before the next one is begun, all units wait for the latencies of one tile; so calls that
do not depend on each other are put where the unit that they occupy would wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import groupby
from math import inf

from isamap.hw.accelerator import Accelerator, Entry
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Register, Scope, Window

MOST = 4096
"""Calls of one list that are put in another order, at most."""


def calls_abreast(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return a lowered kernel whose calls wait less for each other, if units are queues.

    Each list of calls keeps its order if the other one gains nothing.
    """
    if accelerator.queues is None:
        return lowered
    order = _Order(accelerator, accelerator.by_name)
    return replace(lowered, prepare=order.nodes(lowered.prepare), body=order.nodes(lowered.body))


@dataclass(slots=True)
class _Timed:
    """A call: the cycles for which it occupies units, how many calls come ``before`` it that have
    not begun, and when what it needs is ready.
    """

    units: Mapping[str, float]
    latency: float
    before: int
    ready: float = 0.0
    after: list[tuple[int, float | None]] = field(default_factory=list)
    """Numbers of later calls, and how long after they begin they need its result.

    None if they do not need it, but follow.
    """


@dataclass(frozen=True, slots=True)
class _Order:
    accelerator: Accelerator
    entries: Mapping[str, Entry]

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Return nodes with the calls of each scope in another order."""
        return tuple(self._node(node) for node in nodes)

    def _node(self, node: Node) -> Node:
        match node:
            case Scope(body=body):
                return replace(node, body=self._ordered(self.nodes(body)))
            case Loop(body=body):
                return replace(node, body=self.nodes(body))
            case Guard(body=body, otherwise=otherwise):
                return replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise))
            case _:
                return node

    def _ordered(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        found: list[Node] = []
        for is_queued, group in groupby(nodes, self._is_queued):
            own = list(group)
            found += self._run([n for n in own if isinstance(n, Call)]) if is_queued else own
        return tuple(found)

    def _is_queued(self, node: Node) -> bool:
        if not isinstance(node, Call):
            return False
        return self.accelerator.queue(self.entries[node.instruction]) is not None

    def _run(self, calls: Sequence[Call]) -> Sequence[Call]:
        """Return calls in the order in which they can begin, if the last one ends earlier then."""
        if not 2 < len(calls) <= MOST:
            return calls
        plain = _end(self._timed(calls), range(len(calls)))
        order, end = _earliest(self._timed(calls))
        return [calls[number] for number in order] if end < plain else calls

    def _timed(self, calls: Sequence[Call]) -> list[_Timed]:
        """Return calls with what each waits for.

        Of an array in memory that is written nothing is told apart.
        """
        found: list[_Timed] = []
        written: dict[str, int] = {}
        read: dict[str, list[int]] = {}
        for number, call in enumerate(calls):
            entry = self.entries[call.instruction]
            busy = {unit: float(cycles) for unit, cycles in entry.busy.items()}
            roles = self._roles(call, entry)
            before: dict[int, float | None] = {}
            for key, (role, late) in roles.items():
                if key in written:
                    other = written[key]
                    if role != "out":
                        sooner = before.get(other)
                        before[other] = late if sooner is None else min(late, sooner)
                    else:
                        before.setdefault(other, None)
                if role != "in":
                    before |= {other: before.get(other) for other in read.get(key, ())}
            for key, (role, _) in roles.items():
                if role == "in":
                    read.setdefault(key, []).append(number)
                else:
                    written[key], read[key] = number, []
            found.append(_Timed(busy, float(entry.latency), len(before)))
            for other, needed in before.items():
                found[other].after.append((number, needed))
        return found

    def _roles(self, call: Call, entry: Entry) -> dict[str, tuple[str, float]]:
        """Return what a call does to each register and array: in, out, or inout.

        With how long after it begins it needs what is there.
        """
        found: dict[str, tuple[str, float]] = {}
        for name, place in call.operands:
            if isinstance(place, Register | Window):
                key = place.name if isinstance(place, Register) else f"[{place.buffer}]"
                role = entry.instruction.operand(name).role
                late = float(entry.latency - entry.after(name)) if role != "out" else inf
                before, sooner = found.get(key, (role, inf))
                found[key] = (role if before == role else "inout", min(late, sooner))
        return found


def _end(timed: Sequence[_Timed], order: Sequence[int]) -> float:
    """Return when the last of some calls is done that begin in an order."""
    free: dict[str, float] = {}
    end = 0.0
    for number in order:
        own = timed[number]
        start = max([own.ready, *(free.get(unit, 0.0) for unit in own.units)])
        end = max(end, _begun(timed, own, start, free))
    return end


def _begun(timed: Sequence[_Timed], own: _Timed, start: float, free: dict[str, float]) -> float:
    """Take note that a call begins, and return when it is done."""
    done = start + own.latency
    for unit, cycles in own.units.items():
        free[unit] = start + cycles
        done = max(done, start + cycles)
    for number, late in own.after:
        needed = start if late is None else max(start, done - late)
        timed[number].ready = max(timed[number].ready, needed)
        timed[number].before -= 1
    return done


def _earliest(timed: Sequence[_Timed]) -> tuple[list[int], float]:
    """Return the order in which always that call is next which can begin first, and its end."""
    free: dict[str, float] = {}
    waiting: dict[tuple[str, ...], list[tuple[float, int]]] = {}
    there: dict[tuple[str, ...], list[int]] = {}

    def enter(number: int) -> None:
        own = timed[number]
        heappush(waiting.setdefault(tuple(own.units), []), (own.ready, number))

    def first(units: tuple[str, ...]) -> tuple[float, int] | None:
        """Return when the next call on some units begins, and which one that is."""
        now = max((free.get(unit, 0.0) for unit in units), default=0.0)
        coming, ready = waiting[units], there.setdefault(units, [])
        while coming and coming[0][0] <= now:
            heappush(ready, heappop(coming)[1])
        if ready:
            return now, ready[0]
        return coming[0] if coming else None

    for number, own in enumerate(timed):
        if not own.before:
            enter(number)
    order: list[int] = []
    end = 0.0
    while len(order) < len(timed):
        start, number = min(found for units in waiting if (found := first(units)) is not None)
        own = timed[number]
        units = tuple(own.units)
        if there[units] and there[units][0] == number:
            heappop(there[units])
        else:
            heappop(waiting[units])
        order.append(number)
        left = [n for n, _ in own.after if timed[n].before == 1]
        end = max(end, _begun(timed, own, start, free))
        for after in left:
            enter(after)
    return order, end
