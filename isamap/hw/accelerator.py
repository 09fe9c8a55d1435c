"""A hardware description as frozen data: what every later stage knows about a machine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from isamap.diagnostics import Span
from isamap.hw.parameters import Parameter
from isamap.ir.constraint import Constraint
from isamap.ir.dtype import DType
from isamap.ir.hashed import Asked
from isamap.ir.nodes import Buffer, Instruction
from isamap.ir.numeric import Numeric

Queues = Literal["interlocked", "tokens"]
"""How units that are queues wait for each other: hardware holds back what must wait, or they wait
for tokens only, which code has to contain.
"""

StorageKind = Literal["registers", "scratchpad", "cache", "memory", "immediate"]

LINE = 64
"""Bytes of a cache's line, where the description does not say."""

RUN_SECONDS = 60
"""How long a program may run on an emulator or a board, where the description does not say."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A place where operands live.

    ``registers``: ``count`` registers of ``bits`` bits each; every register is one C variable whose
    type is ``types[element type]``, or one of the numbers 0 to ``count`` - 1 if they are
    ``numbered``.  With ``within`` they are parts of another storage's registers, or made of several
    of them.  ``scratchpad``: ``size`` bytes, placed by the schedule.
    ``cache``: ``size`` bytes, only the cost model sees it.  ``memory``: what C pointers reach.
    ``immediate``: constants written into the instruction.  ``read`` and ``write`` are the bytes a
    cycle at which a cache or memory is read and written by what is nearer, and at which registers
    and scratchpads are filled and emptied; ``latency`` is in cycles.  Storages are ordered from the
    nearest to the farthest.  A set of a cache holds ``ways`` lines of ``line`` bytes, and hardware
    brings by itself what so many ``streams`` through memory will need; to ``regional`` hardware
    walks that meet are one.  ``prefetch`` is the C template that brings the line at ``{address}``,
    an unsigned integer, into a cache.  ``fence`` is the C text after which other threads see what
    was written to a memory past the caches.

    C text that code with registers of the storage needs: ``permit`` is an expression, looked at
    once in each call, that is 0 where they cannot be used; ``enter`` and ``leave`` are statements
    that each thread executes before it uses them and after; ``function`` are attributes
    of the functions that use them.  Blocks that
    are chosen by rule leave ``spare`` registers to the compiler.  Where they are ``renamed`` by the
    core, one may be loaded again while calls still use what it held.
    """

    name: str
    kind: StorageKind
    count: int | None = None
    bits: int | None = None
    within: str | None = None
    size: int | None = None
    banks: int = 1
    alignment: int = 1
    line: int | None = None
    ways: int | None = None
    streams: int | None = None
    regional: bool = False
    read: Fraction | None = None
    write: Fraction | None = None
    latency: Fraction = Fraction(0)
    types: Mapping[str, str] = field(default_factory=dict)
    prefetch: str | None = None
    fence: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    numbered: bool = False
    permit: str = ""
    enter: str = ""
    leave: str = ""
    function: tuple[str, ...] = ()
    spare: int = 0
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of execution unit; ``count`` of them work side by side (ports, queues)."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class State:
    """Something that instructions find set: a pitch, a scale, a mode.

    It holds ``count`` values at once, and instructions say which of them is theirs.  ``units`` has
    the cycles for which setting one occupies units, as for an :class:`Entry`.
    ``emit`` is the C template that gives it the value ``{value}``.
    """

    name: str
    units: Mapping[str, Fraction] = field(default_factory=dict)
    emit: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    count: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """An instruction with what it costs and how it is written.

    ``throughput`` is cycles per instruction when many are in flight, ``latency`` cycles from
    operands to result, ``latency_from`` those from operands from which they are fewer.  ``units``
    has the cycles for which it occupies units, by name: those of one
    unit, divided by how many there are of its kind.  ``emit`` is the C template: ``{operand}`` is a
    register's variable or number, a pointer to the first element of an operand in memory, or a
    literal; ``{extent}`` an integer expression; ``{T}`` the name of the type bound to a type
    parameter; doubled braces are braces.
    ``align`` gives the bytes to which an operand in memory must be aligned, ``begin`` those at
    whose multiples arrays there begin.  ``same`` are operands
    that must be one register, ``constraints`` what must hold of axes and extents at every use.
    ``bypass`` is the template of the same store past the caches, for what is not soon used again,
    or of the same load that leaves nothing in the first cache.
    ``numeric`` says which bits come out where the statements leave that open; a machine does one of
    several, and always the same one.  ``length`` is of how many machine instructions it consists,
    ``besides`` how many registers its C takes beside those of its operands, by register file.
    ``states`` are the states of the machine that it depends on, with the extent or the immediate
    operand of which each has the value, or the number that it must be.  ``permits`` are C
    expressions that are 0 where it cannot be executed, beside those of its operands' storages.
    ``changed`` is where a description that inherits it says that something of it is another thing.
    """

    instruction: Instruction
    throughput: Fraction
    latency: Fraction
    units: Mapping[str, Fraction] = field(default_factory=dict)
    emit: str | None = None
    align: Mapping[str, int] = field(default_factory=dict)
    energy: Fraction | None = None
    area: Fraction | None = None
    source: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    same: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    bypass: str | None = None
    numeric: tuple[Numeric, ...] = ()
    length: int = 1
    besides: Mapping[str, int] = field(default_factory=dict)
    begin: int = 1
    states: Mapping[str, str | int] = field(default_factory=dict)
    permits: tuple[str, ...] = ()
    changed: Span | None = field(default=None, compare=False, repr=False)
    latency_from: Mapping[str, Fraction] = field(default_factory=dict)

    def after(self, operand: str) -> Fraction:
        """Return the cycles from an operand to the result."""
        return self.latency_from.get(operand, self.latency)

    @property
    def home(self) -> str | None:
        """The file that says the last word about it, None if it is written in none."""
        place = self.changed or self.span
        return None if place is None else place.source.name

    @property
    def overwritten(self) -> str | None:
        """The input whose register the result must take, if the description says so."""
        outputs = {operand.name for operand in self.outputs}
        inputs = [name for name in self.same if name not in outputs]
        return inputs[0] if inputs and len(inputs) < len(self.same) else None

    @property
    def name(self) -> str:
        """The instruction's name, unique in the description."""
        return self.instruction.name

    @property
    def busy(self) -> Mapping[str, Fraction]:
        """The cycles for which it occupies units; what names none has one of its own."""
        return self.units or {self.name: self.throughput}

    def storage(self, operand: str) -> str:
        """Return the storage in which an operand lives."""
        place = self.instruction.operand(operand).storage
        assert place is not None
        return place

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The operands that it writes."""
        return tuple(o for o in self.instruction.operands if o.role in ("out", "inout"))


@dataclass(frozen=True, slots=True)
class Tokens:
    """How code posts tokens and waits for them, where units wait for nothing else.

    ``type`` is the C type of a token; one whose bytes are 0 is waited for in no time.  ``post`` is
    the template of an expression, the token of all that ``{unit}`` was given so far.  ``wait`` is
    that of a statement by which ``{unit}`` starts nothing more before ``{token}``'s work is done.
    ``idle`` is a statement that returns when all that units were given is done.
    """

    type: str
    post: str
    wait: str
    idle: str


@dataclass(frozen=True, slots=True)
class Toolchain:
    """How emitted C becomes something that runs.

    ``compiler`` is an argument list, the program first; ``flags`` are added to it; ``shared`` and
    ``program`` are the flags that make a shared library and an executable.  ``runner`` is the
    argument list before the program's path (an emulator), or empty.  ``measure`` is that of a
    command that runs a program and counts its cycles, or empty.  The description names the compiler
    at ``compiler_at``, the runner at ``runner_at``, the measuring command at ``measure_at``; None
    where it names none.  All commands are started in the description's ``folder`` ('' for a shipped
    one: wherever the caller is).  ``seconds`` are what one run by either of the last two may take.
    ``start`` is C text of a program without a C library, or empty: how it reads, writes, ends and
    begins.  ``headers`` are included, ``prelude`` is C text put after them; ``includes`` are
    folders that have headers.  ``team`` is C text that has functions executed by all cores in step,
    or empty.  Compilers are asked to repeat the body of an innermost loop until it has ``unroll``
    instructions; 0 asks for nothing.  They are asked to vectorize loops over single elements where
    their vectors have so many bytes, ``vector``.  ``tokens`` is how units that are queues are told
    to wait, where they wait for tokens.
    """

    compiler: tuple[str, ...]
    flags: tuple[str, ...] = ()
    shared: tuple[str, ...] = ("-shared", "-fPIC")
    program: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    measure: tuple[str, ...] = ()
    compiler_at: Span | None = field(default=None, compare=False, repr=False)
    runner_at: Span | None = field(default=None, compare=False, repr=False)
    measure_at: Span | None = field(default=None, compare=False, repr=False)
    folder: str = ""
    seconds: int = RUN_SECONDS
    start: str = ""
    headers: tuple[str, ...] = ()
    prelude: str = ""
    includes: tuple[str, ...] = ()
    team: str = ""
    unroll: int = 0
    vector: int = 0
    tokens: Tokens | None = None


def queue_of(entry: Entry, host: Sequence[str]) -> str | None:
    """Return the unit in whose queue an instruction waits: the first one that it occupies.

    None if that is one of the ``host``'s, or there is none.
    """
    first = next(iter(entry.units), None)
    return None if first in host else first


@dataclass(frozen=True, slots=True)
class Accelerator(Asked):
    """A described machine.

    ``clock`` is in Hz.  ``queues`` says how units wait for each other where they are queues that
    work side by side; where they wait for tokens ``host`` are the units of the program that gives
    them their work, and that waits for all of them before it does something itself.  ``features``
    are CPU features (names of /proc/cpuinfo) without which native code cannot run.  ``digest`` is a
    hash of the description's content; ``trusted`` says that its templates and toolchain may be
    executed (shipped, or named with ``--trust``).  ``parameters`` are the numbers that were chosen
    when it was loaded; they are filled in everywhere.  ``server`` is the machine that executes the
    instructions of this one, which has no C templates of its own: ``toolchain`` and ``features``
    are then the server's.  So many steps of a sum, ``unroll``, are in one body where that suits its
    compiler and core.  ``bases`` are the descriptions that it extends, the nearest first: the file
    of each, by its name.
    """

    name: str
    title: str
    storages: tuple[Storage, ...]
    units: tuple[Unit, ...]
    entries: tuple[Entry, ...]
    toolchain: Toolchain | None
    clock: Fraction
    cores: int = 1
    issue: int = 1
    unroll: int = 1
    features: tuple[str, ...] = ()
    digest: str = ""
    trusted: bool = False
    path: str = ""
    version: int = 1
    parameters: tuple[Parameter, ...] = ()
    states: tuple[State, ...] = ()
    queues: Queues | None = None
    server: "Accelerator | None" = None
    host: tuple[str, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> str:
        """What ``--hw`` takes for it: its name, or the file that it does not ship in."""
        return self.name if self.path in ("", f"hwdesc/{self.name}.yaml") else self.path

    @property
    def is_reordered(self) -> bool:
        """Whether a compiler of C orders its instructions: none that queues are given."""
        return self.toolchain is not None and self.queues is None

    def queue(self, entry: Entry) -> str | None:
        """Return the unit in whose queue an instruction waits, None if the host executes it."""
        return queue_of(entry, self.host)

    def state(self, name: str) -> State:
        """Return a state by name."""
        return next(state for state in self.states if state.name == name)

    @property
    def past_stores(self) -> tuple[Entry, ...]:
        """The instructions that can store past the caches."""
        return tuple(e for e in self.entries if e.bypass is not None and self._stores(e))

    @property
    def past_loads(self) -> tuple[Entry, ...]:
        """The instructions that can load past the first cache."""
        return tuple(e for e in self.entries if e.bypass is not None and not self._stores(e))

    def _stores(self, entry: Entry) -> bool:
        """Return whether an instruction writes to memory."""
        return any(self.storage(o.storage or "").kind == "memory" for o in entry.outputs)

    @property
    def scratchpads(self) -> tuple[Storage, ...]:
        """The memories that a schedule fills and empties."""
        return tuple(s for s in self.storages if s.kind == "scratchpad")

    @property
    def by_name(self) -> Mapping[str, Entry]:
        """The instructions by their names."""
        return self.answer("entries", lambda: {entry.name: entry for entry in self.entries})

    def storage(self, name: str) -> Storage:
        """Return the storage called ``name``."""
        return self.answer("storages", lambda: {s.name: s for s in self.storages})[name]

    def register_file(self, storage: Storage) -> tuple[Storage, int]:
        """Return the storage whose registers those of ``storage`` are, and how many each takes."""
        if storage.within is None:
            return storage, 1
        file = self.storage(storage.within)
        return file, max(1, -(-(storage.bits or 1) // (file.bits or 1)))

    def besides(self, entries: Iterable[Entry]) -> dict[str, int]:
        """Return how many registers of each file the C of instructions takes beside operands.

        One instruction computes at a time, so they are those of the one that takes most.
        """
        taken: dict[str, int] = {}
        for entry in entries:
            for name, number in entry.besides.items():
                file, each = self.register_file(self.storage(name))
                taken[file.name] = max(taken.get(file.name, 0), number * each)
        return taken

    def rows(self, storage: Storage) -> int | None:
        """Return how many numbers fragments in ``storage`` may have, None if they have none.

        Those of numbered registers are registers, those of a scratchpad rows of its alignment.
        """
        if storage.kind == "scratchpad":
            return (storage.size or 0) // storage.alignment
        file, _ = self.register_file(storage)
        return file.count or 0 if storage.kind == "registers" and storage.numbered else None

    def rows_for(self, storage: Storage, size: int) -> int:
        """Return how many numbers in a row a fragment of ``size`` bytes takes in ``storage``."""
        if storage.kind == "scratchpad":
            return -(-size // storage.alignment)
        return self.register_file(storage)[1]

    def may_begin(self, storage: Storage, number: int, rows: int) -> bool:
        """Return whether a fragment that takes so many ``rows`` may begin at ``number``.

        In numbered registers it begins at a multiple of them, in a scratchpad it does not lie
        across the end of a bank that it fits into.
        """
        if number < 0 or number + rows > (self.rows(storage) or 0):
            return False
        if storage.kind != "scratchpad":
            return number % rows == 0
        bank = self.bank_rows(storage)
        return rows > bank or number // bank == (number + rows - 1) // bank

    def bank_rows(self, storage: Storage) -> int:
        """Return how many rows of a scratchpad are one of its banks."""
        return max(1, (self.rows(storage) or 0) // storage.banks)

    @property
    def prefetched(self) -> Storage | None:
        """The nearest cache into which lines can be asked for ahead of their use."""
        return next((s for s in self.storages if s.prefetch is not None), None)

    @property
    def regional(self) -> bool:
        """Whether hardware fetches ahead within regions, so that walks that meet are one to it."""
        return any(s.regional for s in self.storages)

    @property
    def fence(self) -> str | None:
        """The C text after which other threads see what was written past the caches."""
        return next((s.fence for s in self.storages if s.fence is not None), None)

    @property
    def largest_cache(self) -> int | None:
        """The bytes of the largest cache, None if there is none."""
        return max((s.size or 0 for s in self.storages if s.kind == "cache"), default=None)

    @property
    def second_cache(self) -> int | None:
        """The bytes of the second smallest cache, of the only one, or None if there is none."""
        sizes = sorted(s.size or 0 for s in self.storages if s.kind == "cache")
        return sizes[min(1, len(sizes) - 1)] if sizes else None

    def entry(self, name: str) -> Entry:
        """Return the entry of the instruction called ``name``."""
        return self.by_name[name]

    @property
    def own_entries(self) -> tuple[Entry, ...]:
        """The instructions that the description's own file holds or changes."""
        return tuple(e for e in self.entries if e.home in (None, self.path))

    def register_type(self, storage: str, dtype: DType) -> str:
        """Return the C type of a register of ``storage`` that holds ``dtype``."""
        return self.storage(storage).types[dtype.name]
