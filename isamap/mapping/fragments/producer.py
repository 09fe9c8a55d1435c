"""Instructions read as producers, each of one element of a fragment for each point of its axes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, const
from isamap.ir.nodes import Access, Buffer, Expr, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses
from isamap.mapping.fragments.fragment import Fragment
from isamap.mapping.fragments.radix import extents_of, unfold

MEMORY_KINDS = ("memory", "cache")

Kind: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Storage, type and shape of a fragment."""


@dataclass(frozen=True, slots=True)
class Producer:
    """An entry read as ``target = value``, one target element for each point of its axes.

    These are in the order of the target's dimensions, of which one has several if they lie on it
    one inside another.
    """

    entry: Entry
    target: str
    value: Expr
    axes: tuple[str, ...]
    tied: str | None

    def along(self, access: Access) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
        """Return the axis along each dimension of an operand, and its shape, in the same way."""
        shape = fixed_shape(self.entry.instruction.operand(access.buffer))
        if shape is None:
            return None
        return unfold(access.indices, shape, extents_of(self.entry.instruction.statements[0]))

    def kind(self, access: Access) -> Kind | None:
        """Return the kind of fragment that an operand is, None where it is open or nowhere."""
        operand = self.entry.instruction.operand(access.buffer)
        found = self.along(access)
        if found is None or operand.storage is None:
            return None
        return operand.storage, operand.dtype.name, found[1]

    @property
    def written(self) -> Access:
        """The access of the target."""
        return self.entry.instruction.statements[0].target


@dataclass(frozen=True, slots=True)
class Tables:
    """The producers of a machine, the fastest first.

    ``making`` has those that make a kind of fragment outside memory, ``storing`` those that take
    one to memory, ``moving`` those of ``making`` that take one to another place unchanged,
    ``computing`` those that take to memory what they compute of one fragment.
    ``views`` has, for a storage, a type and a number of elements, the shapes that occur.
    """

    making: dict[Kind, list[Producer]] = field(default_factory=dict)
    storing: dict[Kind, list[Producer]] = field(default_factory=dict)
    moving: dict[Kind, list[Producer]] = field(default_factory=dict)
    computing: list[Producer] = field(default_factory=list)
    views: dict[tuple[str, str, int], list[tuple[int, ...]]] = field(default_factory=dict)

    def shapes(self, fragment: Fragment) -> tuple[tuple[int, ...], ...]:
        """Return the other shapes of a fragment that some instruction makes or stores."""
        key = (fragment.storage, fragment.dtype.name, prod(fragment.shape))
        found = dict.fromkeys(self.views.get(key, ()))
        return tuple(shape for shape in found if shape != fragment.shape)


def kind_of(fragment: Fragment) -> Kind:
    """Return the kind of a fragment."""
    return fragment.storage, fragment.dtype.name, fragment.shape


def read_tables(accelerator: Accelerator) -> Tables:
    """Read all instructions of a machine that are producers."""
    tables = Tables()
    memory = {s.name for s in accelerator.storages if s.kind in MEMORY_KINDS}
    for entry in accelerator.entries:
        if (producer := read_producer(entry)) is None:
            continue
        if any(extent.least is not None for extent in entry.instruction.extents):
            continue  # What it moves depends on a number that the description leaves open.
        made = producer.kind(producer.written)
        if entry.storage(producer.target) not in memory:
            if made is not None:
                tables.making.setdefault(made, []).append(producer)
        elif isinstance(producer.value, Access):
            taken = producer.kind(producer.value)
            if taken is not None:
                tables.storing.setdefault(taken, []).append(producer)
        elif producer.tied is None:
            tables.computing.append(producer)
    for table in (tables.making, tables.storing):
        for (storage, dtype, shape), producers in table.items():
            tables.views.setdefault((storage, dtype, prod(shape)), []).append(shape)
            producers.sort(key=_by_speed)
    tables.computing.sort(key=_by_speed)
    for producers in tables.making.values():
        for producer in producers:
            if (source := _moved(producer)) is not None:
                tables.moving.setdefault(source, []).append(producer)
    return tables


def _by_speed(producer: Producer) -> tuple[Fraction, int]:
    return producer.entry.throughput, len(producer.entry.instruction.extents)


def _moved(producer: Producer) -> Kind | None:
    """Return the kind of fragment that a producer takes unchanged from one storage to another."""
    value, instruction = producer.value, producer.entry.instruction
    if not isinstance(value, Access) or producer.tied:
        return None
    source, target = instruction.operand(value.buffer), instruction.operand(producer.target)
    found = producer.along(value)
    if found is None or found[0] != producer.axes or source.storage == target.storage:
        return None
    if any(extent.value is None for extent in instruction.extents):
        return None
    return producer.kind(value)


def read_producer(entry: Entry) -> Producer | None:
    """Read an entry as a producer, or return None if it is none."""
    if len(entry.instruction.statements) != 1:
        return None
    statement: Statement = entry.instruction.statements[0]
    axes = _axes(entry)
    variables = {v.name for v in statement.variables}
    if set(axes) != variables or len(set(axes)) != len(axes):
        return None
    if any(v.lower.constant != 0 for v in statement.variables):
        return None
    if any(entry.instruction.operand(a.buffer).contents for a in accesses(statement.value)):
        return None  # what a table holds is matched with a tile of a whole statement only
    if any(operand.values is not None for operand in entry.instruction.operands):
        return None  # nothing is proved here of the values that it would get
    if _has_two_places(accesses(statement.value)):
        return None  # one fragment would have to be what each place wants
    operand = entry.instruction.operand(statement.target.buffer)
    if statement.reduction == "=" and operand.role == "out":
        own = entry.overwritten
        return Producer(entry, operand.name, statement.value, axes, own)
    if statement.reduction != "=" and operand.role == "inout":
        # ``c += a*b`` makes ``c0 + a*b`` of a register that holds c0.
        op = REDUCTION_OPERATIONS[statement.reduction]
        value = Op(op, (statement.target, statement.value), operand.dtype)
        return Producer(entry, operand.name, value, axes, operand.name)
    return None


def _axes(entry: Entry) -> tuple[str, ...]:
    """Return the axis along each dimension of what an entry writes, "" where it is none.

    One that lies in memory may have any shape, and is read dimension by dimension.
    """
    target = entry.instruction.statements[0].target
    shape = fixed_shape(entry.instruction.operand(target.buffer))
    extents = extents_of(entry.instruction.statements[0])
    found = None if shape is None else unfold(target.indices, shape, extents)
    return tuple(index.name or "" for index in target.indices) if found is None else found[0]


def _has_two_places(found: Iterable[Access]) -> bool:
    """Return whether some operand is read at two places (``a[i, j] * a[j, i]``)."""
    known: dict[str, Access] = {}
    return any(known.setdefault(a.buffer, a).indices != a.indices for a in found)


def access_of(value: Expr, operand: str) -> Access:
    """Return the access of an operand in a producer's value."""
    match value:
        case Access(name, _, _) if name == operand:
            return value
        case Op(_, args, _):
            for arg in args:
                if operand in _operand_names(arg):
                    return access_of(arg, operand)
    raise AssertionError(f"{operand} is no operand of the body")


def _operand_names(value: Expr) -> frozenset[str]:
    match value:
        case Access(name, _, _):
            return frozenset((name,))
        case Op(_, args, _):
            return frozenset().union(*map(_operand_names, args))
    return frozenset()


def fixed_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """Return a buffer's shape if it is made of numbers."""
    shape = [extent.constant for extent in buffer.shape]
    return tuple(e for e in shape if e is not None) if None not in shape else None


def bind_rest(entry: Entry, limits: Mapping[str, int], pitches: dict[str, Index]) -> None:
    """Give every extent of the instruction that is still free a value that does no harm."""
    for extent in entry.instruction.extents:
        if extent.value is not None or extent.name in limits or extent.name in pitches:
            continue
        pitches[extent.name] = const(extent.range[1] - 1 if extent.range else 0)
