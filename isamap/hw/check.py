"""What must hold between the fields of a description: every check that needs more than one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from isamap.diagnostics import Diagnostic, Span, fail
from isamap.hw.accelerator import Entry, State, Storage
from isamap.hw.document import Document, Place
from isamap.hw.numeric import check_numeric
from isamap.hw.schema import InstructionModel, StorageModel
from isamap.hw.template import PARTS, Placeholder, Stray, scan
from isamap.hw.yaml_nodes import Scalar
from isamap.ir.constraint import Constraint
from isamap.ir.literal import value
from isamap.ir.nodes import Buffer, Extent, Instruction
from isamap.text.constraints import ConstraintError, parse_constraint

_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # kind: fields it must have, fields it may have
    "registers": (
        frozenset({"count", "bits"}),
        frozenset(
            {"within", "types", "latency", "read", "write", "numbered", "permit", "enter", "leave"}
            | {"function", "spare", "renamed"}
        ),
    ),
    "scratchpad": (
        frozenset({"size"}),
        frozenset({"banks", "alignment", "latency", "read", "write", "permit", "enter", "leave"}),
    ),
    "cache": (
        frozenset({"size"}),
        frozenset({"line", "ways", "streams", "latency", "read", "write", "prefetch"}),
    ),
    "memory": (frozenset(), frozenset({"alignment", "latency", "read", "write", "fence"})),
    "immediate": (frozenset(), frozenset()),
}


_BRACE = "a single brace: braces of C are doubled, '{{' or '}}'"


@dataclass(frozen=True, slots=True)
class Machine:
    """What entries are checked against: the storages and units of the whole description.

    ``merged`` has the units that are another one, and which.
    """

    storages: Mapping[str, Storage]
    units: Mapping[str, int]
    compiles: bool
    merged: Mapping[str, str]


def check_storage(document: Document, name: str, model: StorageModel) -> Iterator[Diagnostic]:
    """Yield what is wrong with one storage: fields that its kind needs, or does not have."""
    required, allowed = _FIELDS[model.kind]
    given = model.model_fields_set - {"kind"}
    for field in sorted(required - given):
        message = f"'{field}' is missing: {_article(model.kind)} needs it"
        yield fail("E105", message, document.span("storages", name))
    for field in sorted(given - required - allowed):
        message = f"{_article(model.kind)} has no '{field}'"
        yield fail("E121", message, document.key_span("storages", name, field))
    for dtype, text in model.types.items():
        if not text.strip():
            span = document.span("storages", name, "types", dtype)
            yield fail("E115", f"the C type of '{dtype}' is empty", span)
    if model.numbered and model.types:
        message = f"the registers of '{name}' are numbered: they have no C types"
        yield fail("E121", message, document.key_span("storages", name, "types"))
    if model.spare is not None and model.count is not None and model.spare >= model.count:
        message = f"{model.spare} registers to spare of {model.count} leave none"
        yield fail("E121", message, document.key_span("storages", name, "spare"))
    if model.kind == "memory" and model.alignment & (model.alignment - 1):
        message = f"expected a power of two, found {model.alignment}"
        yield fail("E107", message, document.span("storages", name, "alignment"))
    if model.kind == "scratchpad" and model.size is not None:
        yield from _check_rows(document, name, model.size, model.alignment, model.banks)
    if model.prefetch is not None:
        yield from _check_prefetch(document, name, model.prefetch)


def _check_rows(
    document: Document, name: str, size: int, alignment: int, banks: int
) -> Iterator[Diagnostic]:
    """A scratchpad consists of whole rows, and a bank of as many as another."""
    rows, rest = divmod(size, alignment)
    if rest or not rows:
        message = f"{size} bytes are no rows of {alignment} (its alignment)"
        yield fail("E136", message, document.span("storages", name, "size"))
    elif rows % banks:
        message = f"{banks} banks cannot share {rows} rows of {alignment} bytes"
        if alignment == 1:
            message = f"{banks} banks cannot share {rows} bytes"
        fewer = next((n for n in range(min(banks, 4096), 1, -1) if rows % n == 0), 1)
        yield fail("E136", message, document.span("storages", name, "banks"), hint=f"{fewer} can")


def _check_prefetch(document: Document, name: str, template: str) -> Iterator[Diagnostic]:
    scalar = document.scalar("storages", name, "prefetch")
    used = set()
    for token in scan(template):
        match token:
            case Stray(offset):
                yield fail("E114", _BRACE, _inside(scalar, offset, 1))
                return
            case Placeholder(_, offset) if token.text != "address":
                message = f"'{{{token.text}}}' is nothing that a line is prefetched by"
                span = _inside(scalar, offset, len(token.text) + 2)
                yield fail("E114", message, span, "the only name is: address")
                return
            case Placeholder(own, _):
                used.add(own)
    if not used:
        message = f"the template that prefetches into '{name}' never uses 'address'"
        yield fail("E114", message, scalar.span, "write '{address}' where it belongs")


def check_within(
    document: Document, name: str, storages: Mapping[str, Storage]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the register file that a storage says it lies in."""
    within = storages[name].within
    if within is None or storages[name].kind != "registers":
        return
    span = document.span("storages", name, "within")
    files = [s.name for s in storages.values() if s.kind == "registers" and s.within is None]
    if within not in files:
        message = f"'{within}' is no register file of its own, '{name}' cannot lie within it"
        hint = f"the register files are: {', '.join(files) or 'none'}"
        yield fail("E124", message, span, hint)
    elif storages[name].numbered != storages[within].numbered:
        numbered, other = (name, within) if storages[name].numbered else (within, name)
        message = f"the registers of '{numbered}' are numbered, those of '{other}' are not"
        yield fail("E124", message, span, "parts of numbered registers are numbered, too")


def check_units(
    document: Document, place: Place, units: Iterable[str], machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the units of the instruction at a place."""
    for position, unit in enumerate(units):
        if unit not in machine.units:
            span = document.span(*place, "units", position)
            known = ", ".join(machine.units) or "none"
            yield fail("E113", f"unknown unit '{unit}'", span, f"the units are: {known}")


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
    yield from _check_align(document, index, entry, machine)
    yield from _check_same(document, index, entry)
    own: Place = ("instructions", index)
    yield from check_besides(document, own, entry.besides, machine)
    yield from check_numeric(document, own, entry)
    for field, template in (("emit", entry.emit), ("bypass", entry.bypass)):
        if template is not None:
            yield from check_template(document, (*own, field), entry, template, machine)
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
            if operand.role != "in" or operand.shape:
                message = f"operand '{operand.name}' is immediate: it is a scalar that is read"
                yield fail("E119", message, span)
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


def _check_align(
    document: Document, index: int, entry: Entry, machine: Machine
) -> Iterator[Diagnostic]:
    operands = {operand.name: operand for operand in entry.instruction.places}
    for name in entry.align:
        span = document.key_span("instructions", index, "align", name)
        if name not in operands:
            yield fail("E117", f"'{entry.name}' has no operand '{name}' to align", span)
            continue
        storage = machine.storages[operands[name].storage or ""]
        if storage.kind not in ("memory", "scratchpad"):
            message = f"operand '{name}' is in {_article(storage.kind)}: it has no alignment"
            yield fail("E117", message, span)


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
    places = [machine.storages[o.storage or ""] for o in entry.outputs]
    memories = [place for place in places if place.kind == "memory"]
    if entry.emit is None or not memories:
        message = f"'{entry.name}' is no store that is written in C: it cannot bypass caches"
        yield fail("E127", message, span)
    elif any(memory.fence is None for memory in memories):
        message = f"'{entry.name}' bypasses caches, and nothing says when others see its result"
        yield fail("E127", message, span, f"give '{memories[0].name}' a 'fence'")


def check_template(
    document: Document, place: Place, entry: Entry, template: str, machine: Machine
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the C template of an instruction that stands at a place."""
    instruction = entry.instruction
    scalar = document.scalar(*place)
    known = template_names(instruction) | document.parameters.keys()
    pointers = tuple(
        operand.name
        for operand in instruction.places
        if machine.storages[operand.storage or ""].kind == "memory"
    )
    used: set[str] = set()
    parts: dict[str, set[str]] = {}
    broken = False
    for token in scan(template):
        match token:
            case Stray(offset):
                span = _inside(scalar, offset, 1)
                broken = True
                yield fail("E114", _BRACE, span)
            case Placeholder(name, offset) if name not in known:
                span = _inside(scalar, offset, len(token.text) + 2)
                broken = True
                message = f"'{{{token.text}}}' is no operand, extent or type of '{entry.name}'"
                yield fail("E114", message, span, f"the names are: {', '.join(sorted(known))}")
            case Placeholder(name, offset, part) if part and (
                part not in PARTS or name not in pointers
            ):
                span = _inside(scalar, offset, len(token.text) + 2)
                broken = True
                message = f"'{{{token.text}}}' is no part of where an operand lies in memory"
                hint = f"the parts are {' and '.join(PARTS)}, of: {', '.join(pointers) or 'none'}"
                yield fail("E114", message, span, hint)
            case Placeholder(name, _, part):
                used.add(name)
                parts.setdefault(name, set()).add(part)
    needed = [o.name for o in instruction.places]
    chosen = (e for e in instruction.extents if e.value is None and e.least is None)
    needed += [e.name for e in chosen if _matters(e, instruction)]
    for name in needed:
        # A name that is wrong is usually the one that is missing.
        if name not in used and not broken:
            message = f"the template of '{entry.name}' never uses '{name}'"
            yield fail("E114", message, scalar.span, f"write '{{{name}}}' where it belongs")
    for name, own in parts.items():
        if "" not in own and own != set(PARTS):
            (lacking,) = set(PARTS) - own
            message = f"the template of '{entry.name}' has a part of where '{name}' lies only"
            yield fail("E114", message, scalar.span, f"write '{{{name}.{lacking}}}', too")


def template_names(instruction: Instruction) -> frozenset[str]:
    """Return what a template may name of an instruction: operands, extents, type parameters."""
    names = {operand.name for operand in instruction.places}
    names |= {extent.name for extent in instruction.extents}
    names |= {parameter for parameter, _ in instruction.types}
    return frozenset(names)


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


def _matters(extent: Extent, instruction: Instruction) -> bool:
    """Whether the machine needs the extent's number: some operand's place depends on it."""
    used: frozenset[str] = frozenset()
    for operand in instruction.places:
        for index in (*operand.shape, *(operand.strides or ())):
            used |= index.names
    return extent.name in used


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


def _inside(scalar: Scalar, offset: int, length: int) -> Span:
    """Place characters of a scalar in its file; the whole scalar where that cannot be done."""
    excerpt = scalar.excerpt
    if excerpt is None:
        return scalar.span
    before = excerpt.text[:offset]
    line = before.count("\n")
    column = offset - (before.rfind("\n") + 1)
    row, start = excerpt.first_line + line, excerpt.indent + column + 1
    return Span(excerpt, row, start, row, start + length)


def _article(kind: str) -> str:
    return {"registers": "a register file", "immediate": "an immediate"}.get(kind, f"a {kind}")
