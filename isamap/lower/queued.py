"""When the last instruction of a lowered kernel is done on a machine whose units are queues.

Instructions are followed through their queues as docs/meaning.md says, in time only: what they
compute is of no interest.  Of loops with many iterations the first ones and the last are followed;
those between take as long as the ones before them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index
from isamap.lower.apart import every, uses
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    Node,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
    Window,
)
from isamap.lower.queue_times import Times

FOLLOWED = 500
"""Calls of a loop nest that are followed one by one; of longer ones, some iterations are."""

MANY, FEW = 12, 4
"""Turns of a loop that are followed until each takes as long as the one before: of innermost ones,
and of others.
"""

ALIKE = 1e-6
"""Cycles by which two turns may differ that take as long as each other."""

TWICE = 2
"""Times that a loop of the host alone is followed: from the second time on it takes as long."""

PERIOD = 8
"""Iterations after which fragments are in the same places again, at most as many are followed."""

Value = Callable[[Index, Mapping[str, int]], float]
"""What an index is for counters: those of loops around it."""


def queued_cycles(
    nodes: Sequence[Node],
    accelerator: Accelerator,
    entries: Mapping[str, Entry],
    value: Value,
    trips: Callable[[Loop], float],
    copied: Callable[[Copy], float],
) -> float:
    """Return the cycles until the last instruction of some nodes is done.

    ``trips`` are the iterations that are done of a loop, ``copied`` the cycles of a copy, for which
    the host takes no other work.  Conditions that depend on data are taken to hold.
    """
    used = uses(nodes, entries)
    watched = used.reads & used.writes  # of other arrays nothing waits for anything
    queues = _Queues(accelerator, entries, value, trips, copied, watched)
    for node in nodes:
        queues.node(node)
        if any(isinstance(inside, Loop) for inside in every((node,))):
            queues.next_nest()
    return queues.end


@dataclass(frozen=True, slots=True)
class _Known:
    """What is always the same of a call: its units, the cycles for which it occupies one of each,
    those that others share with it, and its operands that something may have to wait for.

    Operands are registers or windows of arrays; each is read, written or both, and needed so many
    cycles after the call begins.
    """

    taken: tuple[tuple[tuple[int, ...], float], ...]
    lent: Mapping[str, float]
    on_host: bool
    latency: float
    gates: tuple[str, ...]
    operands: tuple[tuple[Register | Window, bool, bool, float], ...]


Place = tuple[str, int, int]
"""A storage, a register's or an array's name, the first row and the first after it."""


class _Queues:
    """Follows nodes: which times what they do waits for, and which ones it changes."""

    def __init__(
        self,
        accelerator: Accelerator,
        entries: Mapping[str, Entry],
        value: Value,
        trips: Callable[[Loop], float],
        copied: Callable[[Copy], float],
        watched: frozenset[str],
    ) -> None:
        self.accelerator = accelerator
        self.entries = entries
        self.value = value
        self.trips = trips
        self.copied = copied
        self.watched = watched
        self.tokens = accelerator.queues == "tokens"
        self.times = Times({unit.name: unit.count for unit in accelerator.units})
        self.issued, self.host = self.times.new(), self.times.new()
        self.gates: dict[str, int] = {}
        self.done: dict[str, int] = {}
        self.places: dict[Place, tuple[int, int]] = {}
        self.alike: dict[Place, tuple[tuple[int, int], ...]] = {}
        self.files: dict[str, list[Place]] = {}
        self.arrays: dict[str, tuple[int, int]] = {}
        self.before: dict[str, tuple[float, float]] = {}
        self.turns: dict[str, int] = {}
        self.fragments: dict[tuple[int, int], Place] = {}
        self.counters: dict[str, int] = {}
        self.known: dict[int, _Known] = {}
        self.sizes: dict[int, float] = {}
        self.steady: dict[int, tuple[float, ...]] = {}  # how a turn of a loop moved times before
        self.by_host = False
        self.alone: dict[int, bool] = {}
        self.hosted: dict[int, tuple[float, ...]] = {}  # how long loops of the host alone took

    @property
    def end(self) -> float:
        """When all that was followed is done."""
        return self.times.end

    def node(self, node: Node) -> None:
        """Follow a node."""
        match node:
            case Call():
                self._call(node)
            case Loop():
                self._loop(node)
            case Scope(registers, body):
                for register in registers:
                    self.turns[register.name] = self.turns.get(register.name, -1) + 1
                self._all(body)
            case Guard(conditions, body, otherwise):
                held = all(self._at(condition) >= 0 for condition in conditions)
                self._all(body if held else otherwise)
            case Copy():
                self._copy(node)
            case Token():
                self._token(node)
            case Setting():
                self._setting(node)
            case Prefetch():
                pass

    def next_nest(self) -> None:
        """Take note that a nest of loops is over: of what it leaves, elements are not told apart.

        That saves asking which parts of an array are touched in other loops, and other tiles.
        """
        for array, (ready, needed) in self.arrays.items():
            self.before[array] = self.times.all[ready], self.times.all[needed]
        gone = [place for place in self.places if place[0] in self.arrays]
        for place in gone:
            del self.places[place]

    def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.node(node)

    # --- loops ----------------------------------------------------------------------------------
    def _loop(self, loop: Loop) -> None:
        """Follow a loop; one of the host alone, for which queues wait, only twice."""
        if not self._is_hosted(loop):
            self._turns(loop)
            return
        if not self.by_host:
            self.by_host = True
            self.times.reach(self.host, self.end)
        start, known = self.end, self.hosted.get(id(loop), ())
        if len(known) == TWICE:
            self.times.reach(self.host, start + known[-1])
            self.times.reach(0, start + known[-1])
            return
        self._turns(loop)
        self.hosted[id(loop)] = (*known, self.end - start)

    def _is_hosted(self, loop: Loop) -> bool:
        """Return whether a loop is nothing but calls of the host, the same ones each time, on a
        machine where the host waits for all queues before them, and they for it."""
        if id(loop) not in self.alone:
            inside = [*every((loop,))]
            own = [node for node in inside if isinstance(node, Loop | Scope | Call)]
            calls = [node for node in own if isinstance(node, Call)]
            self.alone[id(loop)] = (
                self.tokens
                and len(own) == len(inside)
                and all(self.accelerator.queue(self.entries[c.instruction]) is None for c in calls)
            )
        return self.alone[id(loop)]

    def _turns(self, loop: Loop) -> None:
        trips = int(self.trips(loop))
        period = min(PERIOD, lcm(*(r.places for r in _own_registers(loop.body))))
        rest = trips % period or period
        if self._calls(loop) <= FOLLOWED or trips <= 2 * period + rest:
            self._iterations(loop, range(trips))
            return
        inside = any(isinstance(node, Loop) for node in every(loop.body))
        most = min((FEW if inside else MANY), (trips - rest) // period - 1)
        done, before = 0, self.times.mark()
        moved: tuple[float, ...] = ()
        for _ in range(most):
            self._iterations(loop, range(done, done + period))
            done += period
            mark, last = before, moved
            before = self.times.mark()
            moved = self.times.moved(mark)
            # The first turn begins with what was ready long before.
            if last and (_alike(last, moved) or _alike(self.steady.get(id(loop), ()), moved)):
                self.steady[id(loop)] = moved
                break
        if done < trips - rest:
            self.times.repeat(mark, (trips - rest - done) // period)
        self._iterations(loop, range(trips - rest, trips))

    def _iterations(self, loop: Loop, numbers: range) -> None:
        for number in numbers:
            self.counters[loop.counter] = number
            self._all(loop.body)
        self.counters.pop(loop.counter, None)

    def _calls(self, node: Node) -> float:
        """Return how many calls there are in a node, with those that are done again."""
        if id(node) not in self.sizes:
            match node:
                case Loop(body=body):
                    count = self.trips(node) * sum(map(self._calls, body))
                case Scope(body=body):
                    count = sum(map(self._calls, body))
                case Guard(_, body, otherwise):
                    count = sum(map(self._calls, (*body, *otherwise)))
                case _:
                    count = 1.0
            self.sizes[id(node)] = count
        return self.sizes[id(node)]

    # --- what is done ---------------------------------------------------------------------------
    def _call(self, call: Call) -> None:
        known, all_ = self.known.get(id(call)) or self._read(call), self.times.all
        if self.tokens and self.by_host != known.on_host:
            self.by_host = known.on_host
            self.times.reach(self.host, self.end)
        start = self._issue()
        for units, _ in known.taken:
            start = max(start, min(all_[unit] for unit in units))
        for unit in known.gates:
            start = max(start, self._gate(unit))
        touched = [(self._place(own), r, w, late) for own, r, w, late in known.operands]
        for place, _, written, late in touched:
            for ready, needed in self._overlapping(place):
                start = max(start, all_[ready] - late, all_[needed] - late if written else 0.0)
            ready_before, needed_before = self.before.get(place[0], (0.0, 0.0))
            start = max(start, ready_before, needed_before if written else 0.0)
        start = self.times.lend(known.lent, start) if known.lent else start
        done, longest = start + known.latency, start
        for units, cycles in known.taken:
            self.times.take(units, start + cycles)
            longest = max(longest, start + cycles)
        for unit in known.gates:
            self.times.reach(self.times.named(self.done, unit), max(done, longest))
        for place, read, written, late in touched:
            ready, needed = self.places[place]
            if read:
                self.times.reach(needed, max(longest, start + late))
            if written:
                all_[ready] = done
            if place[0] in self.arrays:
                self.times.reach(self.arrays[place[0]][0], done if written else 0.0)
                self.times.reach(self.arrays[place[0]][1], longest if read else 0.0)
        self.times.reach(0, max(done, longest))

    def _issue(self) -> float:
        """Return when the next instruction is issued, and have the one after it be so later."""
        start = max(self.times.all[self.issued], self.times.all[self.host])
        self.times.all[self.issued] += 1 / max(1, self.accelerator.issue)
        return start

    def _gate(self, unit: str) -> float:
        """Return when the last token was posted that a unit waits for."""
        return self.times.all[self.gates[unit]] if unit in self.gates else 0.0

    def _copy(self, copy: Copy) -> None:
        start = self.end if self.tokens else 0.0
        for array in (copy.target, copy.source):
            if array in self.arrays:
                ready, needed = self.arrays[array]
                start = max(start, self.times.all[ready])
                start = max(start, self.times.all[needed] if array == copy.target else 0.0)
        self.times.reach(self.host, start)
        self.times.all[self.host] += self.copied(copy)
        self.times.reach(0, self.times.all[self.host])

    def _setting(self, setting: Setting) -> None:
        start = self._issue()
        for unit, cycles in self.accelerator.state(setting.state).units.items():
            units = self.times.unit(unit)
            start = max(start, min(self.times.all[own] for own in units), self._gate(unit))
            done = start + float(cycles * len(units))
            self.times.take(units, done)
            self.times.reach(self.times.named(self.done, unit), done)
            self.times.reach(0, done)

    def _token(self, token: Token) -> None:
        if token.waits:
            gate = self.times.named(self.gates, token.unit)
            self.times.reach(gate, self.times.posted(token.channel, token.behind))
        else:
            done = self.times.all[self.done[token.unit]] if token.unit in self.done else 0.0
            self.times.post(token.channel, done)

    # --- what it is done to -----------------------------------------------------------------------
    def _read(self, call: Call) -> _Known:
        entry = self.entries[call.instruction]
        queue = self.accelerator.queue(entry)
        taken: list[tuple[tuple[int, ...], float]] = []
        lent: dict[str, float] = {}
        gates: list[str] = []
        for unit, cycles in entry.busy.items():
            each = float(cycles * len(self.times.unit(unit)))
            if self.tokens and queue not in (None, unit):
                lent[unit] = each
            else:
                taken.append((self.times.unit(unit), each))
                gates.append(unit)
        operands: list[tuple[Register | Window, bool, bool, float]] = []
        for name, place in call.operands:
            role = entry.instruction.operand(name).role
            watched = isinstance(place, Window) and place.buffer in self.watched
            if isinstance(place, Register) or (isinstance(place, Window) and watched):
                late = 0.0 if role == "out" else float(entry.latency - entry.after(name))
                operands.append((place, role != "out", role in ("out", "inout"), late))
        own = _Known(
            tuple(taken),
            lent,
            queue is None,
            float(entry.latency),
            tuple(gates),
            tuple(operands),
        )
        self.known[id(call)] = own
        return own

    def _place(self, place: Register | Window) -> Place:
        """Return where a fragment is at this turn, or what begins at an element of an array."""
        if isinstance(place, Window):
            if place.buffer not in self.arrays:
                self.arrays[place.buffer] = self.times.new(), self.times.new()
            offset = int(self._at(place.offset))
            return self._entered((place.buffer, offset, offset + 1))
        turn = self.turns.get(place.name, 0) % place.places
        found = self.fragments.get((id(place), turn))
        if found is None:
            found = self._entered(self._rows(place, turn))
            self.fragments[id(place), turn] = found
        return found

    def _rows(self, register: Register, turn: int) -> Place:
        """Return the rows of a storage that a fragment has, or a place of its own."""
        if register.number is None:
            return register.name, turn, turn + 1
        storage = self.accelerator.storage(register.storage)
        file, _ = self.accelerator.register_file(storage)
        rows = self.accelerator.rows_for(storage, prod(register.shape) * register.dtype.bytes)
        first = register.number + turn * rows
        return "@" + file.name, first, first + rows

    def _entered(self, place: Place) -> Place:
        """Return a place of which it is known when it is ready and when it has been read."""
        if place not in self.places:
            self.places[place] = self.times.new(), self.times.new()
            self.files.setdefault(place[0], []).append(place)
            self.alike.clear()
        return place

    def _overlapping(self, place: Place) -> tuple[tuple[int, int], ...]:
        """Return the times of all fragments that have a row in common with one."""
        if not place[0].startswith("@"):
            return (self.places[place],)
        if place not in self.alike:
            _, first, end = place
            self.alike[place] = tuple(
                self.places[other]
                for other in self.files[place[0]]
                if other[1] < end and first < other[2]
            )
        return self.alike[place]

    def _at(self, index: Index) -> float:
        """Return what an index is now; 0 where data decide."""
        try:
            return self.value(index, self.counters)
        except KeyError:
            return 0.0


def _alike(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether two turns moved times alike; nothing is like none at all."""
    return bool(one) and all(abs(a - b) < ALIKE for a, b in zip(one, other, strict=False))


def _own_registers(nodes: Sequence[Node]) -> Iterator[Register]:
    """Yield the registers of scopes that are in no loop inside."""
    for node in nodes:
        match node:
            case Scope(registers, body):
                yield from registers
                yield from _own_registers(body)
            case Guard(_, body, otherwise):
                yield from _own_registers((*body, *otherwise))
