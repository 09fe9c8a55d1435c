"""When instructions start and end on a machine whose units are queues (docs/meaning.md).

An instruction is issued in the order of the program, enters the queues of its units, and starts
when it is the first there, its operands are there, and nothing that it overwrites is still needed.
Scratchpads are followed row by row, memory element by element, other registers one by one.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import TypeAlias

import numpy as np

from isamap.hw.accelerator import Accelerator, Entry
from isamap.interp.call import Plan
from isamap.interp.rounding import Values
from isamap.lower.nodes import Call, Copy, Register, Setting, Token
from isamap.sim.races import HOST, History, Order
from isamap.sim.shared import Lanes

Begins = Mapping[str, tuple[str, int]]
"""Where operands in memory begin: the array and the element."""


class Place:
    """When each row or element has its last content, and until when it is read."""

    def __init__(self, size: int) -> None:
        self.ready: Values = np.zeros(size, np.int64)
        self.needed: Values = np.zeros(size, np.int64)
        self.history = History(size)

    def reach(self, size: int) -> None:
        """Have room for at least ``size`` rows."""
        if (missing := size - len(self.ready)) > 0:
            missing = max(missing, len(self.ready))
            self.ready = np.pad(self.ready, (0, missing))
            self.needed = np.pad(self.needed, (0, missing))
            self.history.reach(len(self.ready))


Touched: TypeAlias = tuple[Place, Values, int]
"""A place, which of its rows or elements, and how long after an instruction begins it needs them.
"""


class Timeline:
    """Follows executed instructions through the queues of their units.

    Times are whole numbers of ``1 / scale`` cycles.
    """

    def __init__(self, accelerator: Accelerator, sizes: Mapping[str, int]) -> None:
        """``sizes`` are the elements of the arrays in memory."""
        self.accelerator = accelerator
        self.sizes = sizes
        self.counts = {unit.name: unit.count for unit in accelerator.units}
        parts = [
            cycles.denominator
            for entry in accelerator.entries
            for cycles in (entry.latency, *entry.latency_from.values())
        ]
        parts += [
            (cycles * self.counts.get(unit, 1)).denominator
            for entry in accelerator.entries
            for unit, cycles in entry.busy.items()
        ]
        parts += [
            (cycles * self.counts.get(unit, 1)).denominator
            for state in accelerator.states
            for unit, cycles in state.units.items()
        ]
        self.scale = lcm(*parts, max(1, accelerator.issue))
        self.free: dict[str, list[int]] = {}
        self.held: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self.known: dict[str, dict[int, int]] = {}
        self.rows: dict[tuple[str, int, int], Values] = {}
        self.turns: dict[str, int] = {}
        self.order = Order() if accelerator.queues == "tokens" else None
        self.shared: dict[str, Lanes] = {}
        self.by_host = False
        self.last: dict[str, int] = {}
        self.gates: dict[str, int] = {}
        self.posts: dict[str, list[int]] = {}
        self.issued = 0
        self.host = 0
        self.end = 0

    @property
    def cycles(self) -> Fraction:
        """The cycles until the last instruction is done."""
        return Fraction(self.end, self.scale)

    @property
    def waits(self) -> dict[str, Fraction]:
        """The cycles for which each unit, free itself, waited for what an instruction needed."""
        return {unit: Fraction(time, self.scale) for unit, time in self.held.items()}

    def enter(self, registers: Sequence[Register]) -> None:
        """Take note of a scope that begins: its fragments take the next of their places."""
        for register in registers:
            self.turns[register.name] = self.turns.get(register.name, -1) + 1

    def call(self, call: Call, entry: Entry, plan: Plan, begins: Begins) -> None:
        """Take note of an instruction that is executed."""
        queue = self.accelerator.queue(entry)
        if self.order is not None and self.by_host != (queue is None):
            self._change_sides(self.order)
        issue = self.issued * self.scale // max(1, self.accelerator.issue)
        self.issued += 1
        took: dict[str, int] = {}
        lanes: dict[str, int] = {}  # of units that several queues share
        free = issue
        for unit, cycles in entry.busy.items():
            count = self.counts.get(unit, 1)
            if self.order is not None and queue not in (None, unit):
                lanes[unit] = int(cycles * count * self.scale)
                continue
            took[unit] = int(cycles * count * self.scale)
            free = max(free, min(self.free.setdefault(unit, [0] * count)))
        reads, writes = self._touched(call, entry, plan, begins)
        start = max(free, self.host, *(self.gates.get(unit, 0) for unit in took))
        if self.order is not None:
            self._check(self.order, call, queue or HOST, reads, writes)
        for place, where, late in reads:
            start = max(start, int(place.ready[where].max(initial=0)) - late)
        for place, where, late in writes:
            start = max(start, int(place.ready[where].max(initial=0)) - late)
            start = max(start, int(place.needed[where].max(initial=0)) - late)
        start = self._when_free(lanes, start)
        done = start + int(entry.latency * self.scale)
        longest = start
        for unit, cycles_ in took.items():
            own = self.free[unit]
            own[own.index(min(own))] = start + cycles_
            longest = max(longest, start + cycles_)
            self.held[unit] = self.held.get(unit, 0) + start - free
            self.last[unit] = max(self.last.get(unit, 0), done, start + cycles_)
        for place, where, late in reads:
            read = max(longest, start + late)
            place.needed[where] = np.maximum(place.needed[where], read)
        for place, where, _ in writes:
            place.ready[where] = done
        self.end = max(self.end, done, longest)

    def _when_free(self, wanted: Mapping[str, int], start: int) -> int:
        """Return when shared units are free for so long, and have them taken then."""
        own = [
            (self.shared.setdefault(unit, Lanes(self.counts.get(unit, 1))), length)
            for unit, length in wanted.items()
        ]
        while (later := max((n.next(start, length) for n, length in own), default=start)) > start:
            start = later
        for lanes, length in own:
            lanes.take(start, length)
        return start

    def _change_sides(self, order: Order) -> None:
        """Have all that is done so far be known: the host goes on, or gives work to queues."""
        self.by_host = not self.by_host
        order.meet()
        self.host = max(self.host, self.end)

    def setting(self, setting: Setting) -> None:
        """Take note of a state that gets a value: its unit's next instructions have it."""
        start = max(self.host, self.issued * self.scale // max(1, self.accelerator.issue))
        self.issued += 1
        for unit, cycles in self.accelerator.state(setting.state).units.items():
            own = self.free.setdefault(unit, [0] * self.counts.get(unit, 1))
            start = max(start, min(own), self.gates.get(unit, 0))
            done = start + int(cycles * self.counts.get(unit, 1) * self.scale)
            own[own.index(min(own))] = done
            self.last[unit] = max(self.last.get(unit, 0), done)
            self.end = max(self.end, done)

    def token(self, token: Token) -> None:
        """Take note of a token, which is posted when all that its unit was given is done."""
        posts = self.posts.setdefault(token.channel, [])
        if not token.waits:
            posts.append(self.last.get(token.unit, 0))
        elif len(posts) > token.behind:
            time = posts[len(posts) - 1 - token.behind]
            self.gates[token.unit] = max(self.gates.get(token.unit, 0), time)
        if self.order is not None and token.waits:
            self.order.wait(token.unit, token.channel, token.behind)
        elif self.order is not None:
            self.order.post(token.unit, token.channel)

    def _check(
        self,
        order: Order,
        call: Call,
        unit: str,
        reads: Sequence[Touched],
        writes: Sequence[Touched],
    ) -> None:
        """LoweredFault where an instruction touches what another unit may not be done with."""
        both = [(reads, False), (writes, True)]
        for found, write in both:
            for place, where, _ in found:
                order.check(unit, place.history, where, write, call.instruction)
        number = order.start(unit)
        for found, write in both:
            for place, where, _ in found:
                order.note(unit, number, place.history, where, write)

    def copied(self, copy: Copy) -> None:
        """Take note of a copy, which the host does: when its arrays are free, in no time."""
        arrays = [name for name in (copy.target, copy.source) if name is not None]
        for name in arrays:
            place = self._array(name)
            self.host = max(self.host, int(place.ready.max(initial=0)))
        if self.order is not None:
            self.order.meet()
            self.host = max(self.host, self.end)
        target = self._array(copy.target)
        self.host = max(self.host, int(target.needed.max(initial=0)))

    def _touched(
        self, call: Call, entry: Entry, plan: Plan, begins: Begins
    ) -> tuple[list[Touched], list[Touched]]:
        reads: list[Touched] = []
        writes: list[Touched] = []
        for name, operand in call.operands:
            role = entry.instruction.operand(name).role
            late = 0 if role == "out" else int((entry.latency - entry.after(name)) * self.scale)
            if name in begins:
                array, begin = begins[name]
                place, footprint = self._array(array), plan.footprints[name]
                reads.append((place, footprint.reads + begin, late))
                writes.append((place, footprint.writes + begin, late))
            elif isinstance(operand, Register):
                own = (*self._rows(operand), late)
                if role != "out":
                    reads.append(own)
                if role in ("out", "inout"):
                    writes.append(own)
        return reads, writes

    def _array(self, name: str) -> Place:
        if name not in self.places:
            self.places[name] = Place(self.sizes[name])
        return self.places[name]

    def _rows(self, register: Register) -> tuple[Place, Values]:
        """Return where a fragment is at this turn: rows of a storage, or a place of its own."""
        storage = self.accelerator.storage(register.storage)
        turn = self.turns.get(register.name, 0) % register.places
        if register.number is None:
            key = f"{register.name} {turn} @"
            return self.places.setdefault(key, Place(1)), np.zeros(1, np.int64)
        file, _ = self.accelerator.register_file(storage)
        size = prod(register.shape) * register.dtype.bytes
        rows = self.accelerator.rows_for(storage, size)
        return self._numbered(file.name, register.number + turn * rows, rows)

    def _numbered(self, file: str, first: int, rows: int) -> tuple[Place, Values]:
        """Return the place of a storage, and which of its rows these are.

        Rows count in the order in which they are first touched, however large the storage is.
        """
        key = file, first, rows
        if key not in self.rows:
            known = self.known.setdefault(file, {})
            found = [known.setdefault(row, len(known)) for row in range(first, first + rows)]
            self.rows[key] = np.array(found, np.int64)
            self.places.setdefault(f"@ {file}", Place(0)).reach(len(known))
        return self.places[f"@ {file}"], self.rows[key]
