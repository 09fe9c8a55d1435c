"""How a register is filled and looked at: by instructions of the same description.

How elements lie in a register is nobody's business but the instructions'.  So an operand in a
register is made of memory by some instructions, and a result goes back to memory by others.
Of several the plainest are taken: loads and stores, then what converts, then what computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from isamap.hw.accelerator import Accelerator, Entry
from isamap.interp.arguments import shape_of
from isamap.interp.arithmetic import declared
from isamap.interp.call import CallFault, Plan
from isamap.ir.nodes import Access, Buffer, Op
from isamap.ir.statements import operations
from isamap.targets.probe.extents import usual

_COMPUTES, _LOSES, _CONSTANT = 10, 40, 200
_MANY = 1 << 15
"""Elements of an operand above which a movement is not looked at closely."""

HELD = ("registers", "scratchpad")
"""Storages whose content instructions bring and take away."""

Kind = tuple[str, str, int]
"""A storage, a type and a number of elements: what makes registers alike."""


def kind_of(operand: Buffer, symbols: Mapping[str, int]) -> Kind:
    """Return which registers hold an operand."""
    assert operand.storage is not None
    return operand.storage, operand.dtype.name, prod(shape_of(operand, symbols))


@dataclass(frozen=True, slots=True)
class Link:
    """An instruction that writes, or reads, a kind of register through ``operand``.

    ``symbols`` are the extents that it is used with.  What is brought ``varies`` with what is in
    memory, or is a constant.  One that changes what it finds has a ``first`` one, which fills that.
    """

    entry: Entry
    operand: str
    symbols: Mapping[str, int]
    cost: int
    varies: bool = True
    first: "Link | None" = None

    def is_before(self, other: "Link | None") -> bool:
        """Return whether this one is to be taken rather than the other."""
        return other is None or (not self.varies, self.cost) < (not other.varies, other.cost)


@dataclass(frozen=True, slots=True)
class Links:
    """For each kind of register what fills it, and what takes its content away."""

    makers: Mapping[Kind, Link]
    readers: Mapping[Kind, Link]


def writes_all(entry: Entry, operand: str) -> bool:
    """Whether a use writes all of an operand, even with the least extents that there are."""
    instruction = entry.instruction
    symbols = usual(entry) or {}
    least = {e.name: e.range[0] for e in instruction.extents if e.value is None and e.range}
    plan = Plan(instruction, {**symbols, **least}, {}, declared())
    return len(plan.footprints[operand].writes) == prod(plan.shapes[operand])


def moves(entry: Entry) -> bool:
    """Whether an instruction has two operands, and moves one to the other as it is."""
    statements = entry.instruction.statements
    if len(statements) != 1 or len(entry.instruction.places) != 2:
        return False
    return statements[0].reduction == "=" and isinstance(statements[0].value, Access)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An instruction with what it does to its operands, and the cost that is its own."""

    entry: Entry
    symbols: Mapping[str, int]
    inputs: tuple[tuple[str, Kind], ...]
    outputs: tuple[tuple[str, Kind | None], ...]
    whole: bool
    reads: bool
    price: int
    lossy: frozenset[str]


def find_links(accelerator: Accelerator) -> Links:
    """Return the cheapest ways there are to every kind of register, and from it."""
    candidates = [c for e in accelerator.entries if (c := _candidate(e, accelerator)) is not None]
    makers: dict[Kind, Link] = {}
    _settle(candidates, makers)
    readers: dict[Kind, Link] = {}
    while _improve_readers(candidates, makers, readers):
        pass
    return Links(makers, readers)


def _settle(candidates: list[_Candidate], makers: dict[Kind, Link]) -> None:
    changed = True
    while changed:
        changed = False
        for c in candidates:
            if len(c.outputs) != 1 or not c.whole:
                continue
            (name, kind), cost = c.outputs[0], _made(c.inputs, makers)
            if kind is None or cost is None:
                continue
            known, is_changed = makers.get(kind), c.entry.outputs[0].role == "inout"
            if is_changed and (known is None or known.varies):
                continue
            cost += c.price + _LOSES * bool(c.lossy)
            varies = c.reads or any(makers[k].varies for _, k in c.inputs)
            found = Link(c.entry, name, c.symbols, cost, varies, known if is_changed else None)
            if found.is_before(known):
                makers[kind] = found
                changed = True


def _improve_readers(
    candidates: list[_Candidate], makers: Mapping[Kind, Link], readers: dict[Kind, Link]
) -> bool:
    changed = False
    for c in candidates:
        away = [0 if kind is None else _cost(readers.get(kind)) for _, kind in c.outputs]
        if not c.outputs or any(cost is None for cost in away):
            continue
        for name, kind in c.inputs:
            if c.entry.instruction.operand(name).role != "in":
                continue
            others = [(n, k) for n, k in c.inputs if n != name]
            made = _made(others, makers)
            if made is None:
                continue
            cost = c.price + made + sum(x or 0 for x in away) + _LOSES * (name in c.lossy)
            if kind not in readers or cost < readers[kind].cost:
                readers[kind] = Link(c.entry, name, c.symbols, cost)
                changed = True
    return changed


def _cost(link: Link | None) -> int | None:
    return None if link is None else link.cost


def _made(inputs: object, makers: Mapping[Kind, Link]) -> int | None:
    """Return what it costs to fill the registers that are read, None if one cannot be."""
    assert isinstance(inputs, tuple | list)
    total = 0
    for _, kind in inputs:
        if kind not in makers:
            return None
        total += makers[kind].cost
    return total


def _candidate(entry: Entry, accelerator: Accelerator) -> _Candidate | None:
    """Return what an instruction is as a link, None if it is none."""
    instruction = entry.instruction
    symbols = usual(entry)
    if entry.emit is None or symbols is None or len(entry.numeric) > 1:
        return None
    kinds = {o.name: accelerator.storage(entry.storage(o.name)).kind for o in instruction.places}
    if not set(kinds.values()) <= {*HELD, "memory", "immediate"}:
        return None
    if any(prod(shape_of(o, symbols)) > _MANY for o in instruction.places):
        return None
    try:
        plan = Plan(instruction, symbols, {}, declared())
    except CallFault:
        return None
    known = {e.name: e.value for e in instruction.extents if e.value is not None} | dict(symbols)
    ins, outs, lossy = [], [], set()
    whole = True
    for operand in instruction.places:
        size = prod(shape_of(operand, known))
        register = kinds[operand.name] in HELD
        if operand.role == "in" and len(plan.footprints[operand.name].reads) < size:
            lossy.add(operand.name)
        if operand.role != "out" and register:
            ins.append((operand.name, kind_of(operand, known)))
        if operand.role != "in":
            outs.append((operand.name, kind_of(operand, known) if register else None))
            whole &= len(plan.footprints[operand.name].writes) == size
    sizes = {o.name: prod(shape_of(o, known)) for o in instruction.places}
    price = 1 + len(ins) + sum(_price(s.value) for s in instruction.statements)
    price += _COMPUTES * bool(entry.numeric) + 2 * bool(symbols)
    price += _CONSTANT * ("immediate" in kinds.values())
    price += _CONSTANT * any(o.values is not None for o in instruction.places)
    largest = max((sizes[n] for n, _ in outs), default=0)
    lossy |= {o.name for o in instruction.places if o.role == "in" and sizes[o.name] != largest}
    reads = any(o.role != "out" and kinds[o.name] == "memory" for o in instruction.places)
    return _Candidate(
        entry, symbols, tuple(ins), tuple(outs), whole, reads, price, frozenset(lossy)
    )


def _price(value: object) -> int:
    """Return how far an expression is from a plain movement."""
    match value:
        case Access():
            return 0
        case Op("cast", (inner,), dtype) if not isinstance(inner, Op):
            source = inner.dtype
            keeps = source.precision <= dtype.precision and source.bits <= dtype.bits
            return 3 if keeps and source.kind == dtype.kind else _COMPUTES
        case Op():
            return _COMPUTES * operations(value)
        case _:
            return _COMPUTES
