"""Which elements of memory a call or a copy touches, from the instruction's own statements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, row_major, total, var
from isamap.ir.nodes import Buffer, Literal, Statement
from isamap.ir.statements import accesses
from isamap.lower.nodes import Call, Copy, Register, Window
from isamap.proof.walk import Context, Site


@dataclass(frozen=True, slots=True)
class Touch:
    """Elements of an array: ``address`` for all values of the context's counters.

    ``begin`` is the part of the address that the call gives, for messages and for alignment.
    """

    array: str
    address: Index
    writes: bool
    context: Context


def touches(site: Site, entries: Mapping[str, Entry]) -> Iterator[Touch]:
    """Yield everything that a site reads or writes in memory, indices held by arrays included.

    KeyError for an instruction that there is not.
    """
    match site.node:
        case Copy():
            yield from _copied(site.node, site.context)
        case Call():
            yield from _called(site.node, site.context, entries[site.node.instruction])


def _copied(copy: Copy, context: Context) -> Iterator[Touch]:
    everywhere = context.inside(copy.counters)
    live = everywhere.inside((), copy.conditions)
    for condition in copy.conditions:
        yield from _read_by(condition, everywhere)
    yield from _read_by(copy.target_offset, everywhere)
    filled = copy.fill is not None
    yield Touch(copy.target, copy.target_offset, True, everywhere if filled else live)
    if copy.source is not None:
        yield from _read_by(copy.source_offset, live)
        yield Touch(copy.source, copy.source_offset, False, live)


def _called(call: Call, context: Context, entry: Entry) -> Iterator[Touch]:
    symbols = bound_symbols(call, entry)
    for _, value in call.symbols:
        yield from _read_by(value, context)
    for name, place in call.operands:
        match place:
            case Window(array, offset):
                yield from _read_by(offset, context)
                operand = entry.instruction.operand(name)
                yield from _window(array, offset, operand, entry, symbols, context)
            case Index():
                yield from _read_by(place, context)
            case Register() | Literal():
                pass


def bound_symbols(call: Call, entry: Entry) -> dict[str, Index]:
    """Return what each extent and pitch of an instruction is in a call."""
    known = {e.name: const(e.value) for e in entry.instruction.extents if e.value is not None}
    return {**known, **dict(call.symbols)}


def _window(
    array: str,
    offset: Index,
    operand: Buffer,
    entry: Entry,
    symbols: Mapping[str, Index],
    context: Context,
) -> Iterator[Touch]:
    shape = tuple(extent.substitute(symbols) for extent in operand.shape)
    strides = operand.strides
    pitches = row_major(shape) if strides is None else [s.substitute(symbols) for s in strides]
    for statement in entry.instruction.statements:
        renamed, box = _variables(statement, symbols)
        inner = context.inside(box)
        read = [(access, False) for access in accesses(statement.value)]
        for access, writes in (*read, (statement.target, True)):
            if access.buffer != operand.name:
                continue
            indices = [i.substitute({**symbols, **renamed}) for i in access.indices]
            place = inner
            if operand.pad is not None and not writes:
                # Outside its shape the operand is not read: its padding value is.
                bounds = [(i, size - 1 - i) for i, size in zip(indices, shape, strict=True)]
                place = inner.inside((), tuple(b for pair in bounds for b in pair))
            steps = total(i * p for i, p in zip(indices, pitches, strict=True))
            yield Touch(array, offset + steps, writes, place)


def _variables(
    statement: Statement, symbols: Mapping[str, Index]
) -> tuple[dict[str, Index], tuple[tuple[str, Index], ...]]:
    """Return the instruction's variables under names of their own, from 0, and their ranges."""
    renamed: dict[str, Index] = {}
    box = []
    for v in statement.variables:
        name = f"axis {v.name}"
        renamed[v.name] = v.lower.substitute({**symbols, **renamed}) + var(name)
        box.append((name, v.extent.substitute({**symbols, **renamed})))
    return renamed, tuple(box)


def _read_by(index: Index, context: Context) -> Iterator[Touch]:
    """Yield the elements in which an index is held."""
    for read in index.reads:
        yield Touch(read.buffer, total(read.indices), False, context)
