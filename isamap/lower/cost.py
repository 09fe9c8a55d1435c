"""What a lowered kernel costs on its machine, by counting: instructions, chains, bytes.

The model walks the loop nest once.  An innermost body takes the longest of its units' work, its
issue slots, and the chain of dependent updates of one register.  Each array's traffic into a cache
level is the footprint of the deepest loops that fit two thirds of it, times the iterations outside.
Element copies come on top (``copying.py``).  Where units are queues, instructions are followed
through them instead (``queued.py``).  Where threads share loops it is the longest part of them that
counts, and what they hand over to each other comes through the last cache (``handed.py``).  Extents
that are known at run time only are taken from ``symbols``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod

from isamap.hw.accelerator import LINE, Accelerator, Entry
from isamap.ir.index import Index, row_major
from isamap.ir.often import Loops, Often
from isamap.lower.columns import first_cache, leaving
from isamap.lower.copying import aside_cycles, copy_cycles, pace_of, staged_cycles
from isamap.lower.delivery import Deliveries, beside, delivered, sums, while_coming
from isamap.lower.handed import handed
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
    Window,
)
from isamap.lower.queued import queued_cycles
from isamap.lower.reuse import OUTSIDE, Reuse
from isamap.lower.traffic import Coming, Site, Traffic, touched_elements
from isamap.lower.vectorized import lanes_of
from isamap.schedule.walk import cycles_a_byte

ASSUMED_SYMBOL = 256
"""Extent taken for a symbol without a value."""

ALIKE = 1.02
"""Estimates this close are taken for equal, and what caches deliver decides."""

NEARLY = 1.02
"""Other loops that gain less than this are not taken."""

CLOSE, LIGHTER = 1.1, 1.2
"""Estimates this close are taken for equal, too, where one has so much less to do meanwhile."""

MEETING = 300.0
"""Cycles after which threads go on that have shared a loop (``benchmarks/threads.py``)."""

WAITING = 1.2
"""How much longer than it must a kernel waits for caches before other loops are looked for."""

BESIDES = 1.75
"""How much more than its time units and caches are busy before other loops are looked for."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cycles of a core, what bounds them, and the parts: units, 'issue', 'chain', storages,
    'copies', and 'threads' (that it waits for what those of others have written).

    The core is the one that has most to do, of those of all threads.  ``busy`` are the cycles that
    are left if caches and memory deliver at once, ``cached`` those that caches take to deliver.  In
    ``least`` cycles the same calls are done if everything moves once only; no order of their loops
    takes fewer.
    """

    cycles: float
    busy: float
    cached: float
    least: float
    bound_by: str
    parts: Mapping[str, float]
    instructions: Mapping[str, float]

    def is_below(self, other: "Estimate") -> bool:
        """Return whether this is lower; of two about equal ones, what is left without memory."""
        if max(self.cycles, other.cycles) > ALIKE * min(self.cycles, other.cycles):
            return self.cycles < other.cycles
        return self.busy + self.cached < other.busy + other.cached

    def beats(self, other: "Estimate") -> bool:
        """Return whether this is lower, or about as low with much less to do meanwhile: what waits
        for memory is in each other's way, and memory may be nearer than it is taken for.
        """
        mine, its = self.busy + self.cached, other.busy + other.cached
        if max(self.cycles, other.cycles) > CLOSE * min(self.cycles, other.cycles):
            return self.cycles < other.cycles
        return mine * LIGHTER < its or (self.cycles * NEARLY < other.cycles and mine < CLOSE * its)

    @property
    def may_fall(self) -> bool:
        """Whether other loops might be faster: caches deliver more than once, or, where units wait
        for them, much at a time.
        """
        if self.least * WAITING < self.cycles:
            return True
        waits = self.busy * WAITING < self.cycles
        return waits and self.busy + self.cached > BESIDES * self.cycles

    def waits_for(self, accelerator: Accelerator) -> bool:
        """Return whether the memory behind all caches would take longer than what units do, if no
        line was fetched only to be overwritten: a third of what is read, and written once.
        """
        return 2 / 3 * self.parts.get(_last_level(accelerator), 0.0) > self.busy

    def times(self, factor: float) -> "Estimate":
        """Return the estimate of what takes so many times as long, whatever it is spent on."""
        return replace(
            self,
            cycles=self.cycles * factor,
            busy=self.busy * factor,
            cached=self.cached * factor,
            least=self.least * factor,
        )


@dataclass(slots=True)
class _Work:
    """Cycles of a piece of code by what they are spent on."""

    cycles: float = 0.0
    units: dict[str, float] = field(default_factory=dict)
    issue: float = 0.0
    chain: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    copies: float = 0.0
    aside: float = 0.0
    """Cycles of copies amid computations, which ``cycles`` have, too."""

    def add(self, other: "_Work", times: float) -> None:
        self.cycles += other.cycles * times
        self.issue += other.issue * times
        self.chain += other.chain * times
        self.copies += other.copies * times
        self.aside += other.aside * times
        for name, amount in other.units.items():
            self.units[name] = self.units.get(name, 0.0) + amount * times
        for name, amount in other.counts.items():
            self.counts[name] = self.counts.get(name, 0.0) + amount * times


def estimate(
    lowered: LoweredKernel,
    accelerator: Accelerator,
    symbols: Mapping[str, int] | None = None,
    threads: int = 1,
    copies: bool = True,
) -> Estimate:
    """Return the estimated cycles of a call of a lowered kernel by so many threads, each on a core.

    What is prepared ahead is not counted: :func:`estimate_ahead` does that.  Without ``copies``
    those of elements take no time, as in a simulation.
    """
    values = {name: ASSUMED_SYMBOL for name in lowered.symbols} | dict(symbols or {})
    return estimate_nodes(lowered.body, lowered, accelerator, values, threads, copies)


def estimate_ahead(
    lowered: LoweredKernel, accelerator: Accelerator, symbols: Mapping[str, int] | None = None
) -> Estimate:
    """Return the estimated cycles of preparing the constants of a lowered kernel once."""
    values = {name: ASSUMED_SYMBOL for name in lowered.symbols} | dict(symbols or {})
    return estimate_nodes(lowered.prepare, lowered, accelerator, values)


def estimate_nodes(
    nodes: Sequence[Node],
    lowered: LoweredKernel,
    accelerator: Accelerator,
    values: Mapping[str, int],
    threads: int = 1,
    copies: bool = True,
) -> Estimate:
    """Return the estimate of some nodes of a lowered kernel."""
    walk = _Walk(lowered, accelerator, values, threads, copies)
    work = walk.nodes(nodes, ())
    parts = {**work.units, "issue": work.issue, "chain": work.chain}
    parts["copies"] = work.copies + work.aside
    each = walk.traffic()
    memory = sums(each)
    parts.update(memory)
    waits = walk.handed()
    if waits:
        parts["threads"] = waits
    least = beside(work.cycles, max(walk.once().values(), default=0.0)) + work.copies
    busy = work.cycles + work.copies
    if accelerator.queues is not None:
        # Instructions that move data are followed as all others are.
        busy = walk.queued(nodes)
        cycles = max([busy, *memory.values()]) + waits
        least = max([0.0, *work.units.values(), *walk.once().values()]) + work.copies
    else:
        # Nests follow each other: one computes while its own data come.
        walk.nests[OUTSIDE] = walk.nests.get(OUTSIDE, 0.0) + work.copies
        cycles = waits
        for nest in dict.fromkeys((*walk.nests, *each)):
            cycles += while_coming(walk.nests.get(nest, 0.0), each.get(nest, {}))
    bound = max(parts, key=lambda name: parts[name]) if parts else "nothing"
    cached = sum(memory.values()) - memory.get(_last_level(accelerator), 0.0)
    return Estimate(cycles, busy, cached, least, bound, parts, work.counts)


def _last_level(accelerator: Accelerator) -> str:
    return next((s.name for s in accelerator.storages if s.kind == "memory"), "")


class _Walk:
    def __init__(
        self,
        lowered: LoweredKernel,
        accelerator: Accelerator,
        values: Mapping[str, int],
        threads: int,
        copies: bool,
    ) -> None:
        self.accelerator = accelerator
        self.copies = copies
        self.values = values
        self.threads = threads
        self.team: dict[str, float] = {}  # iterations of the loops that threads share
        self.private = {a.name for a in lowered.arrays if a.private}
        self.common = {a.name for a in lowered.arrays if a.role == "local" and not a.private}
        self.copied: list[Site] = []  # what copies touch of what all threads have in common
        self.entries = accelerator.by_name
        self.cached = any(s.kind == "cache" for s in accelerator.storages)
        self.first = first_cache(accelerator)
        self.bytes = {a.name: a.dtype.bytes for a in lowered.arrays}
        self.pace = pace_of(accelerator)
        self.sizes = {a.name: self.value(a.size) for a in lowered.arrays}
        self.roles: dict[str, Mapping[str, str]] = {}
        self.own = {a.name for a in lowered.arrays if a.role == "local"}
        self.sites: dict[tuple[object, ...], Site] = {}
        self.often = Often()
        self.read: dict[str, float] = {}  # elements that copies read of each array
        self.made: dict[str, float] = {}  # elements that are written of each of its own arrays
        self.sources: dict[str, Site] = {}  # how the last one of them walks through it
        self.nests: dict[str, float] = {}  # what is computed in each outermost loop
        self.passes: dict[str, float] = {}  # what is computed in an iteration of each loop
        self.asked: dict[str, set[str]] = {}  # counters by which lines of an array are asked for

    def value(self, index: Index) -> float:
        """Return a count, with counters (of triangular loops) taken for 0."""
        names = {name: self.values.get(name, 0) for name in index.names}
        return float(index.evaluate(names, lambda *_: 0))

    def _shared(self, loops: Loops) -> bool:
        """Return whether threads share one of some loops."""
        return any(counter in self.team for counter, _ in loops)

    def _own(self, counter: str, trips: float) -> float:
        """Return the iterations of a loop that the thread does which does most."""
        return float(ceil(trips / self.threads)) if counter in self.team else trips

    def nodes(
        self, nodes: Sequence[Node], loops: tuple[tuple[str, float], ...], slots: float = 2.0
    ) -> _Work:
        """Return the work of a pass over nodes, which takes so many issue slots beside them."""
        work = _Work()
        calls: list[tuple[Call, float]] = []
        going_on: list[tuple[Call, float]] = []
        flat = self._flatten(nodes, loops)
        old = self._handed_on(flat) if loops else frozenset()
        for number, (node, share) in enumerate(flat):
            match node:
                case Call():
                    (going_on if number in old else calls).append((node, share))
                    self._windows(node, loops)
                case Loop(counter, count, body, parallel):
                    trips = max(0.0, self.value(count))
                    if parallel and self.threads > 1 and not self._shared(loops):
                        self.team[counter] = trips
                        work.cycles += MEETING * share
                    # The compiler counts and branches once for many iterations.
                    many = lanes_of(node, self.entries, self.accelerator) > 1
                    inside = self.nodes(body, (*loops, (counter, trips)), 0.0 if many else 2.0)
                    own = self._own(counter, trips) * share
                    work.add(inside, own)
                    self.passes[counter] = inside.cycles
                    if not loops:
                        self.nests[counter] = inside.cycles * own
                case Copy(aside=aside):
                    cycles = self._copy(node) * share
                    work.cycles += cycles if aside else 0.0
                    work.aside += cycles if aside else 0.0
                    work.copies += 0.0 if aside else cycles
                    if not aside:
                        self._read(node, loops)
                        self._make(node.target, self._elements(node, loops))
                        work.copies += self._scattered(node, loops) * share
                case Prefetch(_, buffer, offset):
                    slots += share
                    self.asked.setdefault(buffer, set()).update(offset.names)
                case Guard() | Setting():
                    slots += share
        work.add(self._straight(calls, slots), 1.0)
        if going_on:
            beside = self._straight(going_on, 0.0)
            alone = max(work.cycles, beside.cycles)
            work.add(replace(beside, cycles=0.0, chain=0.0), 1.0)
            work.cycles = max([alone, *work.units.values()])
        if not loops:
            self.nests[OUTSIDE] = work.cycles - sum(self.nests.values())
        return work

    def _copy(self, copy: Copy) -> float:
        """Return the cycles of a copy."""
        if not self.copies:
            return 0.0
        if copy.aside:
            return aside_cycles(copy, self.value)
        taken = copy_cycles(copy, self.value, self.bytes, self.pace)
        if self.cached and copy.source in self.private:
            taken += staged_cycles(copy, self.value, self.bytes[copy.target])
        return taken

    def _handed_on(self, nodes: Sequence[tuple[Node, float]]) -> frozenset[int]:
        """Return the numbers of calls that take what the iteration before has left in registers:
        they go on beside all that this one does."""

        left: set[str] = set()
        calls: list[tuple[int, dict[str, set[str]]]] = []
        for number, (node, _) in enumerate(nodes):
            if isinstance(node, Call):
                places: dict[str, set[str]] = {"in": set(), "out": set(), "inout": set()}
                roles = self._roles(node.instruction)
                for name, place in node.operands:
                    if isinstance(place, Register):
                        places[roles[name]].add(place.name)
                left |= places["out"]
                calls.append((number, places))
        old: set[str] = set()
        found: set[int] = set()
        for number, places in calls:
            if not (places["in"].isdisjoint(left) and places["in"].isdisjoint(old)):
                found.add(number)
                old |= places["out"] | places["inout"]
            else:
                left -= places["out"] | places["inout"]
        return frozenset(found)

    def _roles(self, instruction: str) -> Mapping[str, str]:
        """Return the role of each operand of an instruction."""
        if instruction not in self.roles:
            operands = self.entries[instruction].instruction.operands
            self.roles[instruction] = {operand.name: operand.role for operand in operands}
        return self.roles[instruction]

    def _flatten(
        self, nodes: Sequence[Node], loops: Loops, share: float = 1.0
    ) -> list[tuple[Node, float]]:
        """Return nodes with those inside scopes and guards, and the share of passes that do them.

        A branch that is foreseen keeps nothing from running beside what is around it.
        """
        found: list[tuple[Node, float]] = []
        for node in nodes:
            match node:
                case Scope(body=body):
                    found += self._flatten(body, loops, share)
                case Guard(conditions, body, otherwise):
                    unknown = 1 / 2 if otherwise else 1.0
                    held = self.often.share(conditions, loops, unknown)
                    found.append((node, share))
                    found += self._flatten(body, loops, share * held)
                    found += self._flatten(otherwise, loops, share * (1 - held))
                case _:
                    found.append((node, share))
        return found

    def _straight(self, calls: Sequence[tuple[Call, float]], slots: float) -> _Work:
        """Return the work of one pass over straight-line calls, each with its share of the passes.

        ``slots`` are issued for what is no call.
        """
        work = _Work()
        chains: dict[str, float] = {}
        for call, share in calls:
            entry = self.entries[call.instruction]
            work.counts[entry.name] = work.counts.get(entry.name, 0.0) + share
            for unit, cycles in entry.busy.items():
                work.units[unit] = work.units.get(unit, 0.0) + float(cycles) * share
            for register, wait in self._updated(entry, call).items():
                chains[register] = chains.get(register, 0.0) + wait * share
        work.chain = max(chains.values(), default=0.0)
        work.issue = (sum(share for _, share in calls) + slots) / max(1, self.accelerator.issue)
        work.cycles = max([work.issue, work.chain, *work.units.values()])
        return work

    def _updated(self, entry: Entry, call: Call) -> dict[str, float]:
        """Return the registers that a call updates, with the cycles from the old to the new."""
        roles = {o.name: o.role for o in entry.instruction.operands}
        read: dict[str, float] = {}
        written: set[str] = set()
        for name, place in call.operands:
            if isinstance(place, Register):
                if roles[name] != "out":
                    read[place.name] = max(read.get(place.name, 0.0), float(entry.after(name)))
                if roles[name] in ("out", "inout"):
                    written.add(place.name)
        return {name: cycles for name, cycles in read.items() if name in written}

    def _windows(self, call: Call, loops: tuple[tuple[str, float], ...]) -> None:
        entry = self.entries[call.instruction]
        for name, place in call.operands:
            if not isinstance(place, Window):
                continue
            operand = entry.instruction.operand(name)
            counts = [self._known(extent, call) for extent in operand.shape]
            pitches = [self._known(p, call) for p in operand.strides or row_major(operand.shape)]
            span = 1 + sum((n - 1) * abs(p) for n, p in zip(counts, pitches, strict=True))
            # What lies between elements less than a line apart comes with them.
            near = max(1, LINE // self.bytes[place.buffer]) if self.cached else 1
            elements = stretch = 1
            for pitch, n in sorted((abs(p), n) for n, p in zip(counts, pitches, strict=True)):
                if pitch <= stretch or stretch < pitch < near:
                    stretch += pitch * (n - 1)
                    elements = stretch
                else:
                    elements *= n
            names = {c for c, _ in loops}
            strides = self._strides(place.offset, loops)
            rest = int(self.value(place.offset.substitute(dict.fromkeys(names, 0))))
            written = operand.role != "in"
            if written:
                self._make(place.buffer, elements * prod(self._own(*loop) for loop in loops))
            past = call.bypass and not written
            key = (place.buffer, strides, elements, span, stretch, written, past)
            new = Site(place.buffer, strides, set(), elements, span, stretch, written, past)
            self.sites.setdefault(key, new).offsets.add(rest)

    def _strides(self, offset: Index, loops: Loops) -> tuple[tuple[str, float, int], ...]:
        """Return a thread's iterations of some loops and what each moves an offset by."""
        return tuple((c, self._own(c, n), int(self.value(offset.coefficient(c)))) for c, n in loops)

    def _known(self, extent: Index, call: Call) -> int:
        """Return an extent or a pitch of an instruction in a call."""
        values = {name: int(self.value(index)) or 1 for name, index in call.symbols}
        known = {name: values.get(name, 1) for name in extent.names}
        return int(extent.evaluate(known))

    def _read(self, copy: Copy, loops: Loops) -> None:
        """Take note of what a copy reads, in loops around it, and hands over to other threads."""
        if self.threads > 1:
            every = (*loops, *((c, max(0.0, self.value(n))) for c, n in copy.counters))
            for array, offset in (
                (copy.target, copy.target_offset),
                (
                    copy.source,
                    copy.source_offset,
                ),
            ):
                if array in self.common:
                    strides = self._strides(offset, every)
                    written = array == copy.target
                    self.copied.append(Site(array, strides, {0}, 1, 1, 1, written))
        if copy.source is not None:
            read = self._elements(copy, loops)
            self.read[copy.source] = self.read.get(copy.source, 0.0) + read
            inner = tuple((c, max(0.0, self.value(n))) for c, n in copy.counters)
            strides = self._strides(copy.source_offset, (*loops, *inner))
            self.sources[copy.source] = Site(copy.source, strides, {0}, 1, 1, 1)

    def _elements(self, copy: Copy, loops: Loops) -> float:
        """Return how many elements a copy moves in all iterations of loops around it."""
        trips = prod(self._own(*loop) for loop in loops)
        return prod(max(0.0, self.value(count)) for _, count in copy.counters) * trips

    def _make(self, array: str, elements: float) -> None:
        """Take note of elements of an array that are written, if it is one of its own."""
        if array in self.own:
            self.made[array] = self.made.get(array, 0.0) + elements

    def _scattered(self, copy: Copy, loops: Loops) -> float:
        """Return the cycles that a copy waits for lines of the results that it stores, of which one
        makes another leave the first cache.

        No instruction stores such results to where they belong.
        """
        if copy.target in self.own or not self.copies:
            return 0.0
        counters = tuple((c, max(0.0, self.value(n))) for c, n in copy.counters)
        every = (*loops, *counters)
        rest = copy.target_offset.substitute(dict.fromkeys((c for c, _ in every), 0))
        strides = self._strides(copy.target_offset, every)
        new = Site(copy.target, strides, set(), 1, 1, 1, written=True)
        site = self.sites.setdefault((copy.target, strides), new)
        site.offsets.add(int(self.value(rest)))
        if self.first is None:
            return 0.0
        lines = prod(n for _, n in counters)
        _, last, step = strides[-1] if strides else ("", 1.0, 0)
        if abs(step) == 1:
            lines /= min(max(1.0, last), LINE / self.bytes[copy.target])
        return lines * leaving(site, self.bytes[copy.target], self.first)

    def traffic(self) -> Deliveries:
        """Return the cycles that each cache or memory needs to deliver what is asked of it, for
        each outermost loop and by the part of its time in which it is asked."""

        def through(inner: float | None) -> dict[str, Coming]:
            asked = self.reuse.through(inner)
            if inner is not None:
                asked[OUTSIDE] = asked.get(OUTSIDE, Coming()) + Coming({1.0: self._copied()})
            return asked

        whole, all_threads = self._touched(), self._touched(self.team)
        return delivered(self.accelerator, whole, all_threads, through)

    def queued(self, nodes: Sequence[Node]) -> float:
        """Return the cycles until the last instruction is done where units are queues."""

        def value(index: Index, counters: Mapping[str, int]) -> float:
            return float(index.evaluate({**self.values, **counters}))

        def trips(loop: Loop) -> float:
            return self._own(loop.counter, max(0.0, self.value(loop.count)))

        return queued_cycles(nodes, self.accelerator, self.entries, value, trips, self._copy)

    def handed(self) -> float:
        """Return the cycles for which a thread waits for what others have in their caches: the last
        one delivers it."""
        caches = [s for s in self.accelerator.storages if s.kind == "cache" and s.size]
        if not self.team or len(caches) < 2 or caches[-1].read is None:
            return 0.0
        own = float(caches[-2].size or 0)
        got = handed(self.reuse, self.copied, self.team, self.threads, own)
        part = got.unforeseen / got.bytes if got.bytes else 0.0
        return got.bytes * cycles_a_byte(caches[-1], part)

    @cached_property
    def reuse(self) -> Reuse:
        """What instructions touch in all nodes that were walked through."""
        return Reuse(
            self.sites.values(),
            self.bytes,
            self._parts(),
            self.own,
            self.passes,
            self.asked,
            self.accelerator.regional,
            self.common,
            self.first,
            self.made,
        )

    def _parts(self) -> Mapping[str, float]:
        """Return the elements of each array that a thread may touch."""
        arrays: dict[str, list[Site]] = {}
        for site in (*self.sites.values(), *self.copied) if self.team else ():
            arrays.setdefault(site.array, []).append(site)
        return self.sizes | {
            array: min(self.sizes[array], touched_elements(own, 0))
            for array, own in arrays.items()
            if array in self.common
        }

    def once(self) -> dict[str, float]:
        """Return these cycles if everything comes into each cache once and stays there."""
        touched = self._touched()
        whole = {OUTSIDE: Coming({1.0: Traffic(touched)})}
        each = delivered(
            self.accelerator,
            touched,
            self._touched(self.team),
            lambda inner: {} if inner is None else whole,
        )
        return sums(each)

    def _touched(self, team: Mapping[str, float] | None = None) -> float:
        """Return the bytes of all elements that a thread touches, or all threads of a ``team``."""
        arrays: dict[str, list[Site]] = {}
        for site in self.sites.values():
            loops = tuple((c, (team or {}).get(c, n), stride) for c, n, stride in site.loops)
            arrays.setdefault(site.array, []).append(replace(site, loops=loops) if team else site)
        seen = {array: touched_elements(own, 0) for array, own in arrays.items()}
        for array, read in self.read.items():
            seen[array] = max(seen.get(array, 0.0), min(read, self.sizes[array]))
        return sum(elements * self.bytes[array] for array, elements in seen.items())

    def _copied(self) -> Traffic:
        """Return the traffic of all elements that copies read: again, they come from near."""
        total = Traffic()
        for array, count in self.read.items():
            total += self.reuse.walked(self.sources[array], min(count, self.sizes[array]))
        return total
