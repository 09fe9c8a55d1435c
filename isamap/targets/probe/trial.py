"""A trial: one instruction between those that fill its registers and those that look at them.

It is a lowered kernel without loops, whose arrays are what its instructions read and write in
memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from isamap.emit.battery import Function
from isamap.hw.accelerator import Accelerator, Entry
from isamap.interp.rounding import literal_value
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.ir.nodes import Buffer, Extent, Kernel, Literal, Permissions, Role
from isamap.lower.nodes import Array, Call, LoweredKernel, Operand, Register, Scope, Window
from isamap.lower.number import number_registers, without_number
from isamap.lower.place import place_fragments
from isamap.lower.states import with_states
from isamap.lower.tokens import with_tokens
from isamap.targets.probe.arrays import span_of
from isamap.targets.probe.extents import free, largest, taken, usual
from isamap.targets.probe.links import HELD, Kind, Links, kind_of, moves, writes_all

_MORE = {"float": ("-1.5", "inf"), "signed": ("-1", "-8")}
_OTHERS = ("5", "713")  # no rule changes there


class NoTrialError(Exception):
    """Nothing fills an operand's register, or takes its content away; the text says which."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand in memory of the call number ``call``; ``array`` is its array's name.

    ``told`` says which operand of the tested instruction it is, or what it is otherwise.
    """

    array: str
    call: int
    operand: Buffer
    told: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What is called, in order; ``tested`` is the call of the instruction in question.

    ``symbols`` has the extents of every other call; those of the tested one are chosen anew for
    every batch.  ``variant`` tells what was chosen besides: immediates, the template.
    """

    entry: Entry
    variant: str
    name: str
    calls: tuple[Call, ...]
    entries: tuple[Entry, ...]
    symbols: tuple[Mapping[str, int], ...]
    tested: int
    slots: tuple[Slot, ...]
    registers: tuple[Register, ...]
    alignments: tuple[int, ...]

    def function(self, accelerator: Accelerator) -> Function:
        """Return the trial as a function of a battery.  NoTrialError if registers run out."""
        names = free(self.entry.instruction)
        buffers, arrays = [], []
        for slot in self.slots:
            role: Role = "in" if slot.operand.role == "in" else "inout"
            buffers.append(Buffer(slot.array, role, slot.operand.dtype, (const(1),)))
            arrays.append(Array(slot.array, role, slot.operand.dtype, const(1)))
        lowered = LoweredKernel(
            self.name, names, tuple(arrays), (Scope(self.registers, self.calls),)
        )
        lowered = place_fragments(number_registers(lowered, accelerator), accelerator)
        if (lacking := without_number(lowered, accelerator)) is not None:
            raise NoTrialError(f"{lacking.storage} has too little room")
        lowered = with_tokens(with_states(lowered, accelerator), accelerator)
        extents = tuple(Extent(name) for name in names)
        kernel = Kernel(self.name, extents, Permissions(), tuple(buffers), (), ())
        sizes = [span_of(s.operand, self._most(s.call)) * s.operand.dtype.bytes for s in self.slots]
        # Those of the calls before and after it lie where every such call can get them.
        own = frozenset(at for at, slot in enumerate(self.slots) if slot.call == self.tested)
        return Function(lowered, kernel, self.alignments, own, max(sizes, default=0))

    def _most(self, call: int) -> Mapping[str, int]:
        """Return the extents of a call, the largest ones of the tested one."""
        entry = self.entries[call]
        own = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
        return {**own, **(largest(entry) if call == self.tested else self.symbols[call])}


def trials(entry: Entry, accelerator: Accelerator, links: Links) -> Iterator[Trial]:
    """Yield the trials of an instruction: of each template, with each of a few immediates.

    NoTrialError if an operand cannot be filled or looked at.
    """
    for number, immediates in enumerate(_immediates(entry, accelerator)):
        told = ", ".join(f"{name} = {value.text}" for name, value in immediates.items())
        yield _Maker(accelerator, links).trial(entry, immediates, False, told, f"_{number}")
    if entry.bypass is not None:
        yield _Maker(accelerator, links).trial(entry, {}, True, "past the caches", "_b")


def _immediates(entry: Entry, accelerator: Accelerator) -> list[dict[str, Literal]]:
    """Return values of the immediate operands: each value of each at least once."""
    options: dict[str, list[Literal]] = {}
    for operand in entry.instruction.places:
        if accelerator.storage(entry.storage(operand.name)).kind == "immediate":
            options[operand.name] = _literals(operand)
    turns = max((len(values) for values in options.values()), default=1)
    return [
        {
            name: values[(turn + at) % len(values)]
            for at, (name, values) in enumerate(options.items())
        }
        for turn in range(turns)
    ]


def _literals(operand: Buffer) -> list[Literal]:
    """Return the numbers at which rules change, and some others."""
    dtype = operand.dtype
    texts = ["0", "1", *_MORE.get(dtype.kind, ())]
    texts += _OTHERS[: 1 if dtype.bits < 16 else None]
    if dtype.kind == "bool":
        texts = ["false", "true"]
    elif not dtype.is_float:
        texts += [str(dtype.lowest), str(dtype.highest)]
    if dtype.name == "f8e4m3":
        texts.remove("inf")
    if operand.values is not None:
        low, high = (int(float(value.text)) for value in operand.values)
        some = (low, high, (low + high) // 2, low + (high - low) // 3, high - (high - low) // 5)
        texts = [str(value) for value in dict.fromkeys(some)]
    return [Literal(text, dtype) for text in texts]


class _Maker:
    """Collects the calls of one trial."""

    def __init__(self, accelerator: Accelerator, links: Links) -> None:
        self.accelerator = accelerator
        self.links = links
        self.calls: list[Call] = []
        self.entries: list[Entry] = []
        self.symbols: list[Mapping[str, int]] = []
        self.slots: list[Slot] = []
        self.registers: list[Register] = []
        self.alignments: list[int] = []
        self.purpose: list[str] = []  # what the call that is being added is for, outermost first

    def trial(
        self,
        entry: Entry,
        immediates: Mapping[str, Literal],
        bypass: bool,
        variant: str,
        suffix: str,
    ) -> Trial:
        """Return the trial of an instruction."""
        symbols = usual(entry)
        if symbols is None:
            raise NoTrialError("its lengths or constraints leave no use of it that is known")
        places = self._call(entry, symbols, {}, immediates, bypass)
        tested = len(self.calls) - 1
        for operand in entry.outputs:
            place = places[operand.name]
            if isinstance(place, Register):
                moved = slice(len(self.slots)) if moves(entry) else None
                self._look(place, self._kind(entry, operand.name, symbols), operand.name, moved)
        written = [places[operand.name] for operand in entry.outputs]
        for operand in entry.instruction.places:
            place = places[operand.name]
            if isinstance(place, Register) and place not in written:
                # What is only read has to be what it was; where nothing looks at it, nobody knows.
                kind = self._kind(entry, operand.name, symbols)
                if self._is_seen(kind):
                    self._look(place, kind, f"after it {operand.name}", None)
        call = self.calls[tested]
        self.calls[tested] = replace(call, symbols=taken(entry.instruction))
        return Trial(
            entry,
            variant,
            f"trial_{entry.name}{suffix}",
            tuple(self.calls),
            tuple(self.entries),
            tuple(self.symbols),
            tested,
            tuple(self.slots),
            tuple(self.registers),
            tuple(self.alignments),
        )

    def _kind(self, entry: Entry, operand: str, symbols: Mapping[str, int]) -> Kind:
        values = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
        return kind_of(entry.instruction.operand(operand), values | dict(symbols))

    def _call(
        self,
        entry: Entry,
        symbols: Mapping[str, int],
        given: Mapping[str, Register],
        immediates: Mapping[str, Literal],
        bypass: bool = False,
    ) -> dict[str, Operand]:
        """Add a call, and before it those that fill its registers; return its places."""
        places: dict[str, Operand] = dict(given)
        memory: list[Buffer] = []
        outputs = {o.name for o in entry.outputs}
        tied = [name for name in entry.same if name not in outputs]
        for operand in entry.instruction.places:
            name = operand.name
            if name in places:
                continue
            kind = self.accelerator.storage(entry.storage(name)).kind
            if kind == "immediate":
                places[name] = immediates.get(name) or _literals(operand)[0]
            elif kind == "memory":
                memory.append(operand)
            elif kind not in HELD:
                raise NoTrialError(f"{name} is in a {kind}")
            elif name in tied and (known := [places[t] for t in tied if t in places]):
                places[name] = known[0]
            elif operand.role != "out" or name in entry.same:
                if name in outputs and tied:
                    continue
                places[name] = self._made(self._kind(entry, name, symbols), operand, entry)
        for operand in entry.outputs:
            if operand.name not in places and operand not in memory:
                kind_ = self._kind(entry, operand.name, symbols)
                first = places.get(tied[0]) if operand.name in entry.same and tied else None
                places[operand.name] = first or self._held(entry, operand, kind_)
        for operand in memory:
            array = f"m{len(self.slots)}"
            told = self._told(entry, operand)
            self.slots.append(Slot(array, len(self.calls), operand, told))
            storage = self.accelerator.storage(entry.storage(operand.name))
            align = max(entry.align.get(operand.name, 1), storage.alignment, operand.dtype.bytes)
            self.alignments.append(align)
            places[operand.name] = Window(array, const(0))
        ordered = tuple((o.name, places[o.name]) for o in entry.instruction.places)
        numbers = tuple((name, const(value)) for name, value in symbols.items())
        self.calls.append(Call(entry.name, ordered, numbers, bypass))
        self.entries.append(entry)
        self.symbols.append(symbols)
        return places

    def _held(self, entry: Entry, operand: Buffer, kind: Kind) -> Register:
        """Return a register for a result; it holds something if not all of it is written."""
        written = writes_all(entry, operand.name)
        return self._register(kind) if written else self._made(kind, operand, entry)

    def _made(self, kind: Kind, operand: Buffer, entry: Entry) -> Register:
        """Return a register of a kind that calls have filled, with values that the operand has."""
        link = self.links.makers.get(kind)
        if link is None:
            storage, dtype, count = kind
            raise NoTrialError(f"nothing fills {storage} with {count} {dtype} for {operand.name}")
        if not link.varies and not self.purpose:
            what = f"nothing but constants comes to {kind[0]} for {operand.name}"
            raise NoTrialError(f"{what}, by {link.entry.name}")
        register = self._register(kind)
        name = f"{operand.name} of {entry.name}" if self.purpose else operand.name
        self.purpose.append(name)
        first = len(self.slots)
        if link.first is not None:
            self._call(link.first.entry, link.first.symbols, {link.first.operand: register}, {})
        self._call(link.entry, link.symbols, {link.operand: register}, {})
        self.purpose.pop()
        if operand.values is not None:
            if not moves(link.entry):
                raise NoTrialError(f"{link.entry.name}, which fills {operand.name}, is no movement")
            self._bound(slice(first, None), operand.values)
        return register

    def _bound(self, chosen: slice, values: tuple[Literal, Literal]) -> None:
        """Have what is in memory for some slots in these values, too."""
        for at in range(*chosen.indices(len(self.slots))):
            slot = self.slots[at]
            low, high = slot.operand.values or values
            low = max(low, values[0], key=literal_value)
            high = min(high, values[1], key=literal_value)
            if literal_value(low) > literal_value(high):
                raise NoTrialError(f"{slot.told} would need values that lie in two ranges apart")
            self.slots[at] = replace(slot, operand=replace(slot.operand, values=(low, high)))

    def _look(self, register: Register, kind: Kind, name: str, moved: slice | None) -> None:
        """Add the calls that take a register's content to memory.

        The content is what memory holds for the slots ``moved``; None if it is computed.
        """
        link = self.links.readers.get(kind)
        if link is None:
            storage, dtype, count = kind
            raise NoTrialError(f"nothing takes {count} {dtype} from {storage} to memory")
        values = link.entry.instruction.operand(link.operand).values
        if values is not None:
            if moved is None:
                seen = f"only by {link.operand} of {link.entry.name}, which is for values"
                low, high = values
                raise NoTrialError(f"{name} is seen {seen} {low.text} .. {high.text}")
            self._bound(moved, values)
        after = moved if moves(link.entry) else None
        self.purpose.append(name)
        places = self._call(link.entry, link.symbols, {link.operand: register}, {})
        for operand in link.entry.outputs:
            place = places[operand.name]
            if isinstance(place, Register):
                kind_ = self._kind(link.entry, operand.name, link.symbols)
                self._look(place, kind_, f"{operand.name} of {link.entry.name}", after)
        self.purpose.pop()

    def _is_seen(self, kind: Kind) -> bool:
        """Return whether a call takes such registers' content to memory, and no other does."""
        link = self.links.readers.get(kind)
        if link is None:
            return False
        if link.entry.instruction.operand(link.operand).values is not None:
            return False
        outputs = link.entry.outputs
        return all(self._in_memory(link.entry, operand) for operand in outputs)

    def _in_memory(self, entry: Entry, operand: Buffer) -> bool:
        return self.accelerator.storage(entry.storage(operand.name)).kind == "memory"

    def _told(self, entry: Entry, operand: Buffer) -> str:
        """Return what an operand in memory is, in words."""
        if not self.purpose:
            return operand.name
        if len(self.purpose) == 1 and moves(entry):
            return self.purpose[0]
        # Whatever is between may be wrong as well.
        return f"{self.purpose[0]} by {' and '.join([*self.purpose[1:], entry.name])}"

    def _register(self, kind: Kind) -> Register:
        storage, dtype, count = kind
        found = Register(f"v{len(self.registers)}", storage, DTYPES[dtype], (count,))
        self.registers.append(found)
        return found
