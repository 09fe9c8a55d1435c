"""Entries of a description: everything that must hold between the fields of instructions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from isamap.diagnostics import Diagnostic, Span, fail
from isamap.hw.accelerator import Entry, State, Storage
from isamap.hw.check_storage import article
from isamap.hw.check_template import check_template
from isamap.hw.document import Document, Place
from isamap.hw.numeric import check_numeric
from isamap.hw.schema import ChangeModel, InstructionModel, times
from isamap.ir.constraint import Constraint
from isamap.ir.literal import value
from isamap.ir.nodes import Buffer, Instruction
from isamap.text.constraints import ConstraintError, parse_constraint


@dataclass(frozen=True, slots=True)
class Machine:
    """What entries are checked against: the storages and units of the whole description.

    ``merged`` has the units that are another one, and which.
    """

    storages: Mapping[str, Storage]
    units: Mapping[str, int]
    compiles: bool
    merged: Mapping[str, str]


def check_units(
    document: Document, place: Place, units: Mapping[str, Fraction | None], machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the units of the instruction at a place."""
    for position, (unit, cycles) in enumerate(units.items()):
        if unit not in machine.units:
            span = document.span(*place, "units", position)
            if cycles is not None:
                span = document.key_span(*place, "units", unit)
            known = ", ".join(machine.units) or "none"
            yield fail("E113", f"unknown unit '{unit}'", span, f"the units are: {known}")


def check_pace(
    document: Document, place: Place, model: InstructionModel | ChangeModel
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the cycles for which the instruction at a place occupies units."""
    timed = bool(times(model.units))
    if timed and model.throughput is not None:
        message = "'units' has the cycles of each: 'throughput' says what they are for all"
        span = document.span(*place, "throughput")
        yield fail("E107", message, span, "give one of them")
    elif isinstance(model, InstructionModel) and not timed and model.throughput is None:
        yield fail("E105", "'throughput' is missing", document.span(*place))


def check_besides(
    document: Document, place: Place, besides: Mapping[str, int], machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the registers that the C of the instruction at a place takes."""
    kinds = machine.storages.values()
    files = {s.name: s for s in kinds if s.kind == "registers" and not s.numbered}
    known = f"those that have are: {', '.join(files) or 'none'}"
    for name, number in besides.items():
        span = document.key_span(*place, "besides", name)
        if name not in files:
            yield fail("E138", f"'{name}' has no registers that a compiler takes", span, known)
        elif number >= (files[name].count or number + 1):
            message = f"{number} registers besides operands, of {files[name].count}, leave none"
            yield fail("E138", message, span)


def check_entry(
    document: Document, index: int, entry: Entry, machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with an instruction in the light of the machine's storages."""
    place = document.span("instructions", index, "semantics")
    instruction = entry.instruction
    if not entry.outputs:
        yield fail("E118", f"'{entry.name}' writes no operand", instruction.span or place)
    for operand in instruction.places:
        yield from _check_operand(entry, operand, machine, operand.span or place)
    own: Place = ("instructions", index)
    yield from check_align(document, own, entry, machine)
    yield from check_latency(document, own, entry, entry.latency_from)
    yield from _check_same(document, index, entry)
    yield from check_besides(document, own, entry.besides, machine)
    yield from check_numeric(document, own, entry)
    for field, template in (("emit", entry.emit), ("bypass", entry.bypass)):
        if template is not None:
            yield from check_template(document, (*own, field), entry, template, machine.storages)
    if entry.bypass is not None:
        yield from _check_bypass(document, index, entry, machine)


def _check_operand(
    entry: Entry, operand: Buffer, machine: Machine, span: Span
) -> Iterator[Diagnostic]:
    # The language has refused operands that no known storage holds.
    storage = machine.storages[operand.storage or ""]
    match storage.kind:
        case "cache":
            message = f"operand '{operand.name}' is in a cache: name what lies behind it"
            yield fail("E119", message, span, "loads and stores name a storage of kind memory")
        case "immediate":
            if operand.role != "in":
                message = f"operand '{operand.name}' is immediate, and cannot be written"
                yield fail("E119", message, span, "results go to registers or to memory")
            elif operand.shape:
                message = f"operand '{operand.name}' is immediate, and no scalar"
                yield fail("E119", message, span, f"write {operand.dtype}[]")
        case "registers":
            yield from _check_register(entry, operand, storage, machine, span)
        case "scratchpad":
            yield from _check_tile(entry, operand, storage, span)
        case "memory":
            pass
    if operand.values is not None:
        yield from _check_values(operand, span)
    if operand.strides is not None and storage.kind != "memory":
        message = f"operand '{operand.name}' has strides, but is not in memory"
        yield fail("E119", message, span)


def _check_values(operand: Buffer, span: Span) -> Iterator[Diagnostic]:
    """Yield what keeps an instruction from being defined for some values of an operand only."""
    assert operand.values is not None
    if operand.role != "in" or not operand.dtype.is_integer:
        message = f"'values' of '{operand.name}': an instruction has them of integer inputs only"
        yield fail("E131", message, span)
    elif not value(operand.values[0]) <= 0 <= value(operand.values[1]):
        message = f"'values' of '{operand.name}' lack 0, which unused elements are filled with"
        yield fail("E131", message, span)


def _check_register(
    entry: Entry, operand: Buffer, storage: Storage, machine: Machine, span: Span
) -> Iterator[Diagnostic]:
    elements = _elements(entry, operand)
    if elements is None:
        message = f"the shape of '{operand.name}' is not numbers, but it is a register"
        yield fail("E112", message, span, "a part of a register: 'pad' on the side in memory")
    elif storage.bits is not None and elements * operand.dtype.bits > storage.bits:
        shape = "x".join(str(n) for n in operand.shape) or "1"
        message = (
            f"operand '{operand.name}' has {shape} elements of {operand.dtype.bits} bits, "
            f"a register of '{storage.name}' has {storage.bits} bits"
        )
        yield fail("E112", message, span)
    named = storage.numbered or operand.dtype.name in storage.types
    if entry.emit is not None and machine.compiles and not named:
        message = f"storage '{storage.name}' gives no C type for {operand.dtype}"
        hint = f"add '{operand.dtype}: ...' to its 'types'"
        yield fail("E115", message, span, hint)


def _check_tile(
    entry: Entry, operand: Buffer, storage: Storage, span: Span
) -> Iterator[Diagnostic]:
    elements = _elements(entry, operand)
    if elements is None:
        message = f"the shape of '{operand.name}' is not numbers, but it is in a scratchpad"
        yield fail("E112", message, span, "a part of a tile: 'pad' on the side in memory")
    elif storage.size is not None and elements * operand.dtype.bytes > storage.size:
        message = f"operand '{operand.name}' is larger than '{storage.name}'"
        yield fail("E112", message, span)


def check_align(
    document: Document, place: Place, entry: Entry, machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the alignments that ``align`` at a place gives an instruction."""
    operands = {operand.name: operand for operand in entry.instruction.places}
    for name in entry.align:
        span = document.key_span(*place, "align", name)
        if name not in operands:
            yield fail("E117", f"'{entry.name}' has no operand '{name}' to align", span)
            continue
        storage = machine.storages[operands[name].storage or ""]
        if storage.kind not in ("memory", "scratchpad"):
            message = f"operand '{name}' is in {article(storage.kind)}: it has no alignment"
            yield fail("E117", message, span)


def check_latency(
    document: Document, place: Place, entry: Entry, cycles: Mapping[str, Fraction]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the ``latency_from`` that stands at a place."""
    read = [o.name for o in entry.instruction.places if o.role in ("in", "inout")]
    for name, fewer in cycles.items():
        span = document.key_span(*place, "latency_from", name)
        if name not in read:
            message = f"'{entry.name}' reads no operand '{name}'"
            yield fail("E139", message, span, f"those that it reads are: {', '.join(read)}")
        elif fewer > entry.latency:
            message = f"{fewer} cycles from '{name}' are more than the latency, {entry.latency}"
            yield fail("E139", message, span, "'latency' is from the operand that takes longest")


def _check_same(document: Document, index: int, entry: Entry) -> Iterator[Diagnostic]:
    """Yield what keeps operands from being one register."""
    operands = {operand.name: operand for operand in entry.instruction.places}
    if not entry.same:
        return
    span = document.span("instructions", index, "same")
    for name in entry.same:
        if name not in operands:
            yield fail("E126", f"'{entry.name}' has no operand '{name}' to be the same", span)
            return
    own = [operands[name] for name in entry.same]
    first = own[0]
    if len(set(entry.same)) < 2:
        yield fail("E126", "it takes two operands to be one register", span)
    for other in own[1:]:
        if (other.storage, other.dtype, other.shape) != (first.storage, first.dtype, first.shape):
            message = f"'{other.name}' and '{first.name}' cannot be one register"
            yield fail("E126", message, span, "they differ in storage, type or shape")
    outputs = [operand.name for operand in own if operand.role in ("out", "inout")]
    if len(outputs) > 1 or any(operand.role == "inout" for operand in own):
        message = "an operand that is read and written has its register already"
        yield fail("E126", message, span, "give one 'out' and the inputs that it overwrites")


def parsed_constraints(
    document: Document, index: int, model: InstructionModel, instruction: Instruction
) -> tuple[tuple[Constraint, ...], tuple[Diagnostic, ...]]:
    """Return an instruction's constraints, and what is wrong with those that are none."""
    found: list[Constraint] = []
    faults: list[Diagnostic] = []
    known = {v.name for s in instruction.statements for v in s.variables}
    known |= {extent.name for extent in instruction.extents}
    for position, text in enumerate(model.constraints):
        place = ("instructions", index, "constraints", position)
        span = document.span(*place) if len(model.constraints) > 1 else document.span(*place[:3])
        try:
            constraint = parse_constraint(text)
        except ConstraintError as error:
            faults.append(fail("E125", f"the constraint '{text}': {error}", span))
            continue
        if unknown := sorted(constraint.names - known):
            message = f"'{unknown[0]}' is no axis or extent of '{instruction.name}'"
            hint = f"they are: {', '.join(sorted(known)) or 'none'}"
            faults.append(fail("E125", message, span, hint))
        else:
            found.append(constraint)
    return tuple(found), tuple(faults)


def check_states(
    document: Document, entries: Iterable[Entry], states: Mapping[str, State]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the states that instructions find set."""
    for entry in entries:
        for state, source in entry.states.items():
            if state not in states:
                known = f"they are: {', '.join(states) or 'none'}"
                yield fail(
                    "E134", f"'{entry.name}': there is no state '{state}'", entry.span, known
                )
                continue
            # In a queue what is set comes before what finds it set.
            if not states[state].units.keys() <= entry.busy.keys():
                text = f"'{entry.name}' does not occupy what setting '{state}' does"
                yield fail("E134", text, entry.span)
            extents = {e.name for e in entry.instruction.extents}
            scalars = {o.name for o in entry.instruction.operands if not o.shape}
            if isinstance(source, str) and source not in extents | scalars:
                text = f"'{source}' is no extent and no immediate operand of '{entry.name}'"
                yield fail("E134", text, entry.span)


def _check_bypass(
    document: Document, index: int, entry: Entry, machine: Machine
) -> Iterator[Diagnostic]:
    span = document.span("instructions", index, "bypass")
    stored = [machine.storages[o.storage or ""] for o in entry.outputs]
    stored = [place for place in stored if place.kind == "memory"]
    places = (machine.storages[o.storage or ""] for o in entry.instruction.places)
    if entry.emit is None or not any(place.kind == "memory" for place in places):
        message = (
            f"'{entry.name}' is no store and no load that is written in C: it bypasses nothing"
        )
        yield fail("E127", message, span)
    elif any(memory.fence is None for memory in stored):
        message = f"'{entry.name}' bypasses caches, and nothing says when others see its result"
        yield fail("E127", message, span, f"give '{stored[0].name}' a 'fence'")


def check_unique(entries: Iterable[tuple[int, Entry]], document: Document) -> Iterator[Diagnostic]:
    """Yield a fault for each second instruction of one name."""
    first: dict[str, Entry] = {}
    for index, entry in entries:
        place = document.span("instructions", index, "semantics")
        if entry.name in first:
            earlier = first[entry.name].span
            note = Diagnostic("", "first here", earlier, severity="note")
            message = f"there are two instructions '{entry.name}'"
            span = entry.instruction.span or place
            yield Diagnostic("E116", message, span, notes=(note,) if earlier else ())
        else:
            first[entry.name] = entry


def _elements(entry: Entry, operand: Buffer) -> int | None:
    """Return how many elements an operand has, the least where the description leaves it open."""
    open_ = {e.name: e.least for e in entry.instruction.extents if e.least is not None}
    found = 1
    for extent in operand.shape:
        number = extent.substitute(open_).constant
        if number is None:
            return None
        found *= number
    return found
