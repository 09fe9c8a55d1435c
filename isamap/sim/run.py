"""A simulator of a described machine, derived from the description alone.

What is computed comes from the instructions' statements.  Time is a bound from below that no
schedule of the same instructions on the machine can beat: every unit is busy for the throughput of
each instruction, the machine issues a limited number of instructions a cycle, a result is ready one
latency after its operands, and storages move a limited number of bytes a cycle.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm, prod

from isamap.hw.accelerator import Accelerator, Entry
from isamap.interp.arguments import bind_symbols
from isamap.interp.arithmetic import Arithmetic
from isamap.interp.call import Plan
from isamap.interp.rounding import Values
from isamap.ir.nodes import Kernel
from isamap.lower.capacity import excess, peak_use
from isamap.lower.nodes import Call, Copy, LoweredKernel, Register, Setting, Token, Window
from isamap.sim.lowered import run_lowered
from isamap.sim.queues import Begins, Timeline


class SimulationFault(Exception):
    """A lowered kernel does not fit the machine it is for."""


@dataclass(frozen=True, slots=True)
class SimResult:
    """What a simulation yields.

    ``instructions`` counts executions by instruction; ``busy`` is cycles by unit (of one of its
    instances, work being spread evenly) and by storage port (``"spm read"``); ``latency`` is the
    longest chain of dependent instructions; ``peak`` is the greatest use of each storage.
    On a machine of queues ``cycles`` are those until the last instruction is done there, and
    ``waits`` those for which each unit, free itself, waited for what an instruction needed.
    ``conflicts`` counts executions of calls with two operands in one bank of a scratchpad,
    ``settings`` how often each state of the machine got a value.
    """

    outputs: Mapping[str, Values]
    cycles: Fraction
    instructions: Mapping[str, int]
    busy: Mapping[str, Fraction]
    latency: Fraction
    issue: Fraction
    peak: Mapping[str, int]
    conflicts: int = 0
    waits: Mapping[str, Fraction] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)


def simulate(
    lowered: LoweredKernel,
    accelerator: Accelerator,
    arrays: Mapping[str, Values],
    symbols: Mapping[str, int] | None = None,
    *,
    kernel: Kernel | None = None,
    arithmetic: Arithmetic | None = None,
) -> SimResult:
    """Execute a lowered kernel and account for its instructions.

    Outputs are as :func:`isamap.sim.lowered.run_lowered` gives them, one core is simulated.
    SimulationFault if a storage overflows, LoweredFault if the lowered kernel is wrong.
    """
    peak = peak_use(lowered, accelerator)
    if (over := excess(lowered, accelerator)) is not None:
        raise SimulationFault(over)
    timeline = None
    if accelerator.queues is not None:
        values = symbols or {}
        if kernel is not None:
            values = bind_symbols(kernel, values, arrays)
        sizes = {a.name: int(a.size.evaluate(dict(values))) for a in lowered.arrays}
        timeline = Timeline(accelerator, sizes)
    account = _Account(accelerator, timeline)
    outputs = run_lowered(
        lowered, accelerator, arrays, symbols, kernel=kernel, arithmetic=arithmetic, tracer=account
    )
    busy = account.busy()
    started = sum(account.counts.values()) + sum(account.settings.values())
    issue = Fraction(started, max(1, accelerator.issue))
    latency = Fraction(max(account.ready.values(), default=0), account.scale)
    # The first result cannot leave before its instruction's latency is over.
    startup = max((e.latency for e in account.used.values()), default=Fraction(0))
    cycles = max([issue, latency, *busy.values()]) if busy else max(issue, latency)
    return SimResult(
        outputs,
        cycles + startup if timeline is None else timeline.cycles,
        dict(account.counts),
        busy,
        latency,
        issue,
        peak,
        account.conflicts,
        {} if timeline is None else timeline.waits,
        dict(account.settings),
    )


@dataclass(frozen=True, slots=True)
class _Site:
    """A call node, kept alive as it is known by its identity, and what it depends on."""

    call: Call
    sources: tuple[tuple[str, int], ...]
    """Registers that it reads, and the time from each of them to the result."""
    targets: tuple[str, ...]
    latency: int
    conflict: bool


class _Account:
    """Counts instructions as they are executed."""

    def __init__(self, accelerator: Accelerator, timeline: Timeline | None) -> None:
        self.accelerator = accelerator
        self.timeline = timeline
        self.counts: Counter[str] = Counter()
        self.used: dict[str, Entry] = {}
        self.bytes: Counter[str] = Counter()
        # When each register's value is ready, in fractions of a cycle that make latencies whole.
        self.scale = lcm(
            *(
                c.denominator
                for e in accelerator.entries
                for c in (e.latency, *e.latency_from.values())
            )
        )
        self.ready: dict[str, int] = {}
        self.sites: dict[int, _Site] = {}
        self.moved: dict[tuple[str, int], tuple[tuple[str, int], ...]] = {}
        self.storages = {s.name: s for s in accelerator.storages}
        self.cached = any(s.kind == "cache" for s in accelerator.storages)
        self.conflicts = 0
        self.settings: Counter[str] = Counter()

    def copied(self, copy: Copy) -> None:
        """Take note of a copy."""
        if self.timeline is not None:
            self.timeline.copied(copy)

    def token(self, token: Token) -> None:
        """Take note of a token."""
        if self.timeline is not None:
            self.timeline.token(token)

    def setting(self, setting: Setting) -> None:
        """Take note of a state that gets a value."""
        self.settings[setting.state] += 1
        if self.timeline is not None:
            self.timeline.setting(setting)

    def enter(self, registers: Sequence[Register]) -> None:
        """Take note of a scope that begins."""
        if self.timeline is not None:
            self.timeline.enter(registers)

    def __call__(self, call: Call, entry: Entry, plan: Plan, begins: Begins) -> None:
        """Take note of one executed instruction."""
        if self.timeline is not None:
            self.timeline.call(call, entry, plan, begins)
        name = entry.name
        self.counts[name] += 1
        self.used[name] = entry
        site = self.sites.get(id(call))
        if site is None:
            sources, targets = _registers(call, entry)
            site = self.sites[id(call)] = _Site(
                call,
                tuple((name, int(cycles * self.scale)) for name, cycles in sources),
                targets,
                int(entry.latency * self.scale),
                _in_one_bank(call, self.accelerator),
            )
        self.conflicts += site.conflict
        end = site.latency
        for source, latency in site.sources:
            end = max(end, self.ready.get(source, 0) + latency)
        for target in site.targets:
            self.ready[target] = end
        for port, amount in self._traffic(call, entry, plan):
            self.bytes[port] += amount

    def busy(self) -> dict[str, Fraction]:
        """Return the cycles for which each unit and each port is occupied."""
        found: dict[str, Fraction] = {}
        for name, count in self.counts.items():
            entry = self.used[name]
            # Without units nothing is shared: the instruction keeps to itself.
            for unit, cycles in entry.busy.items():
                found[unit] = found.get(unit, _ZERO) + count * cycles
        for name, count in self.settings.items():
            for unit, cycles in self.accelerator.state(name).units.items():
                found[unit] = found.get(unit, _ZERO) + count * cycles
        for port, amount in self.bytes.items():
            storage, direction = port.rsplit(" ", 1)
            place = self.storages[storage]
            rate = place.read if direction == "read" else place.write
            assert rate is not None
            found[port] = amount / rate
        return found

    def _traffic(self, call: Call, entry: Entry, plan: Plan) -> tuple[tuple[str, int], ...]:
        """Return the bytes that a movement takes through the ports of its near storage."""
        key = (entry.name, id(plan))
        found = self.moved.get(key)
        if found is None:
            found = self.moved[key] = tuple(_ports(call, entry, plan, self))
        return found


_ZERO = Fraction(0)


def _ports(call: Call, entry: Entry, plan: Plan, account: _Account) -> list[tuple[str, int]]:
    places = [place for _, place in call.operands]
    if not any(isinstance(place, Window) for place in places):
        return []
    found: list[tuple[str, int]] = []
    for name, place in call.operands:
        operand, footprint = entry.instruction.operand(name), plan.footprints[name]
        reads, writes = (len(e) * operand.dtype.bytes for e in (footprint.reads, footprint.writes))
        if isinstance(place, Register):  # what a movement reads in memory is written here
            storage = account.storages[place.storage]
            reads, writes = writes, reads if operand.role == "in" else 0
        elif account.cached or operand.storage is None:
            continue
        else:
            storage = account.storages[operand.storage]
        if reads and storage.read is not None:
            found.append((f"{storage.name} read", reads))
        if writes and storage.write is not None:
            found.append((f"{storage.name} write", writes))
    return found


def _in_one_bank(call: Call, accelerator: Accelerator) -> bool:
    """Return whether two operands of a call have rows in one bank, where a scratchpad has some."""
    found: list[tuple[str, int]] = []
    for register in dict.fromkeys(p for _, p in call.operands if isinstance(p, Register)):
        storage = accelerator.storage(register.storage)
        if storage.kind == "scratchpad" and storage.banks > 1 and register.number is not None:
            size, rows = prod(register.shape) * register.dtype.bytes, accelerator.bank_rows(storage)
            last = register.number + accelerator.rows_for(storage, size) * register.places - 1
            own = range(register.number // rows, last // rows + 1)
            found += ((storage.name, bank) for bank in own)
    return len(set(found)) < len(found)


def _registers(
    call: Call, entry: Entry
) -> tuple[tuple[tuple[str, Fraction], ...], tuple[str, ...]]:
    """Return the registers that a call reads, with the cycles to its result, and writes."""
    sources, targets = [], []
    for name, place in call.operands:
        if isinstance(place, Register):
            role = entry.instruction.operand(name).role
            if role != "out":
                sources.append((place.name, entry.after(name)))
            if role in ("out", "inout"):
                targets.append(place.name)
    return tuple(sources), tuple(targets)
