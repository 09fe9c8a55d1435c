"""Faults, put mechanically into lowered kernels: each yields every mutant that it can make.

A fault is the kind of mistake that a compiler makes: a stride, a tail, an operand, a bound that is
wrong at one place.  Nothing here knows kernels or machines.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.lower.apart import uses
from isamap.lower.nodes import (
    Array,
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
    Token,
    Window,
)

Nodes: TypeAlias = tuple[Node, ...]
Change: TypeAlias = Callable[[Nodes, int], Iterator[Nodes]]
"""What may stand in place of the node at a position of a body (of the whole body)."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A lowered kernel with one fault; ``place`` says where, in its own words."""

    fault: str
    place: str
    lowered: LoweredKernel


@dataclass(frozen=True, slots=True)
class Site:
    """The kernel and the machine that a fault is put into."""

    lowered: LoweredKernel
    accelerator: Accelerator

    @property
    def entries(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.accelerator.entries}


Fault: TypeAlias = Callable[[Site], Iterator[tuple[str, LoweredKernel]]]


def mutants(lowered: LoweredKernel, accelerator: Accelerator) -> Iterator[Mutant]:
    """Yield every mutant of every fault, each once."""
    site = Site(lowered, accelerator)
    seen = {lowered}
    for name, fault in FAULTS.items():
        for place, changed in fault(site):
            if changed not in seen:
                seen.add(changed)
                yield Mutant(name, place, changed)


# --- walking ------------------------------------------------------------------------------------
def _everywhere(nodes: Nodes, change: Change) -> Iterator[tuple[str, Nodes]]:
    """Yield a body for each single change of one of its nodes, at any depth."""
    for at, node in enumerate(nodes):
        for changed in change(nodes, at):
            yield _named(node), changed
        for name, inside in _inside(node, change):
            yield name, (*nodes[:at], inside, *nodes[at + 1 :])


def _inside(node: Node, change: Change) -> Iterator[tuple[str, Node]]:
    match node:
        case Loop() | Scope():
            for name, body in _everywhere(node.body, change):
                yield name, replace(node, body=body)
        case Guard():
            for name, body in _everywhere(node.body, change):
                yield name, replace(node, body=body)
            for name, body in _everywhere(node.otherwise, change):
                yield name, replace(node, otherwise=body)
        case _:
            return


def _named(node: Node) -> str:
    match node:
        case Call(instruction, _, _):
            return f"call of {instruction}"
        case Loop(counter, _, _, _):
            return f"loop over {counter}"
        case Copy():
            return f"copy to {node.target}"
        case Guard():
            return "guard"
        case Scope():
            return "scope"
        case Prefetch():
            return f"prefetch of {node.buffer}"
        case Token():
            return f"token of {node.channel}"
        case Setting():
            return f"setting of {node.state}"


def _bodies(site: Site, change: Change) -> Iterator[tuple[str, LoweredKernel]]:
    for place, body in _everywhere(site.lowered.body, change):
        yield place, replace(site.lowered, body=body)
    for place, body in _everywhere(site.lowered.prepare, change):
        yield f"{place}, ahead", replace(site.lowered, prepare=body)


def _one(change: Callable[[Node], Iterator[Node]]) -> Change:
    """Return the change that puts another node in place of one."""

    def changed(nodes: Nodes, at: int) -> Iterator[Nodes]:
        for node in change(nodes[at]):
            yield (*nodes[:at], node, *nodes[at + 1 :])

    return changed


# --- offsets ------------------------------------------------------------------------------------
def _offsets(node: Node, change: Callable[[Index], Iterator[Index]]) -> Iterator[Node]:
    """Yield a node with one of its offsets changed."""
    match node:
        case Call():
            for n, (name, operand) in enumerate(node.operands):
                if isinstance(operand, Window):
                    for offset in change(operand.offset):
                        other = (name, replace(operand, offset=offset))
                        operands = (*node.operands[:n], other, *node.operands[n + 1 :])
                        yield replace(node, operands=operands)
        case Copy():
            for offset in change(node.target_offset):
                yield replace(node, target_offset=offset)
            for offset in change(node.source_offset):
                if node.source is not None:
                    yield replace(node, source_offset=offset)
        case _:
            return


def _wrong_stride(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    def change(offset: Index) -> Iterator[Index]:
        for name in sorted(offset.names):
            if name not in site.lowered.symbols:
                yield offset + var(name)

    yield from _bodies(site, _one(lambda node: _offsets(node, change)))


def _shifted_access(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    def change(offset: Index) -> Iterator[Index]:
        yield offset + 1
        yield offset - 1

    yield from _bodies(site, _one(lambda node: _offsets(node, change)))


def _overlapping_write(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Let neighbouring tiles of a result share elements."""

    def change(node: Node) -> Iterator[Node]:
        match node:
            case Call():
                outputs = {o.name for o in site.entries[node.instruction].outputs}
                for n, (name, operand) in enumerate(node.operands):
                    if name in outputs and isinstance(operand, Window):
                        for v in sorted(operand.offset.names - set(site.lowered.symbols)):
                            shifted = replace(operand, offset=operand.offset - var(v))
                            others = (*node.operands[:n], (name, shifted), *node.operands[n + 1 :])
                            yield replace(node, operands=others)
            case Copy():
                for v in sorted(node.target_offset.names - set(site.lowered.symbols)):
                    yield replace(node, target_offset=node.target_offset - var(v))
            case _:
                return

    yield from _bodies(site, _one(change))


def _wrong_array(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    arrays = site.lowered.arrays

    def like(name: str) -> list[Array]:
        own = site.lowered.array(name)
        return [a for a in arrays if a.dtype == own.dtype and a.name != name]

    def change(node: Node) -> Iterator[Node]:
        match node:
            case Call():
                for n, (name, operand) in enumerate(node.operands):
                    for other in like(operand.buffer) if isinstance(operand, Window) else ():
                        assert isinstance(operand, Window)
                        there = (name, replace(operand, buffer=other.name))
                        operands = (*node.operands[:n], there, *node.operands[n + 1 :])
                        yield replace(node, operands=operands)
            case Copy():
                for other in like(node.source) if node.source is not None else ():
                    yield replace(node, source=other.name)
            case _:
                return

    yield from _bodies(site, _one(change))


# --- loops, tails, guards -----------------------------------------------------------------------
def _off_by_one_tile(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    def change(node: Node) -> Iterator[Node]:
        match node:
            case Loop():
                yield replace(node, count=node.count - 1)
                yield replace(node, count=node.count + 1)
            case Copy():
                for n, (name, count) in enumerate(node.counters):
                    for other in (count - 1, count + 1):
                        counters = (*node.counters[:n], (name, other), *node.counters[n + 1 :])
                        yield replace(node, counters=counters)
            case _:
                return

    yield from _bodies(site, _one(change))


def _late_start(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Let a loop do iteration 1 where it should begin with 0, and nothing twice."""

    def change(node: Node) -> Iterator[Node]:
        if isinstance(node, Loop):
            yield Loop(
                node.counter,
                node.count,
                (Guard((var(node.counter) - 1,), node.body),),
                node.parallel,
            )

    yield from _bodies(site, _one(change))


def _dropped_tail(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Leave out what follows a loop in its body."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        if isinstance(nodes[at], Loop) and at + 1 < len(nodes):
            yield nodes[: at + 1]

    yield from _bodies(site, change)


def _wrong_condition(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    def around(conditions: tuple[Index, ...]) -> Iterator[tuple[Index, ...]]:
        for n, condition in enumerate(conditions):
            for other in (condition - 1, condition + 1):
                yield (*conditions[:n], other, *conditions[n + 1 :])

    def change(node: Node) -> Iterator[Node]:
        match node:
            case Guard() | Copy():
                for conditions in around(node.conditions):
                    yield replace(node, conditions=conditions)
            case _:
                return

    yield from _bodies(site, _one(change))


def _lost_guard(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Do one branch of a guard whatever its conditions say."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        node = nodes[at]
        if isinstance(node, Guard):
            for branch in (node.body, node.otherwise):
                yield (*nodes[:at], *branch, *nodes[at + 1 :])
        if isinstance(node, Copy) and node.conditions:
            yield (*nodes[:at], replace(node, conditions=()), *nodes[at + 1 :])

    yield from _bodies(site, change)


def _race(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Spread a loop over threads that must run in order."""

    def change(node: Node) -> Iterator[Node]:
        if isinstance(node, Loop) and not node.parallel:
            yield replace(node, parallel=True)

    yield from _bodies(site, _one(change))


# --- calls --------------------------------------------------------------------------------------
def _dropped(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Leave out a call or a copy: a load, a store, a product, a packing."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        if isinstance(nodes[at], Call | Copy):
            yield (*nodes[:at], *nodes[at + 1 :])

    yield from _bodies(site, change)


def _repeated(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Do a call twice."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        if isinstance(nodes[at], Call):
            yield (*nodes[: at + 1], *nodes[at:])

    yield from _bodies(site, change)


def _wrong_order(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Do what comes next first: a result is finished before it is complete, stored before that."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        if at + 1 < len(nodes):
            yield (*nodes[:at], nodes[at + 1], nodes[at], *nodes[at + 2 :])

    yield from _bodies(site, change)


def _out_of_the_loop(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Do once, before a loop, what each iteration has to do: a fill, a load."""

    def change(nodes: Nodes, at: int) -> Iterator[Nodes]:
        loop = nodes[at]
        if not isinstance(loop, Loop):
            return
        for n, node in enumerate(loop.body):
            if isinstance(node, Call) and loop.counter not in _names(node):
                rest = replace(loop, body=(*loop.body[:n], *loop.body[n + 1 :]))
                yield (*nodes[:at], node, rest, *nodes[at + 1 :])
            if isinstance(node, Scope):  # its registers then live longer, too
                for k, inner in enumerate(node.body):
                    if isinstance(inner, Call) and loop.counter not in _names(inner):
                        body = (*node.body[:k], *node.body[k + 1 :])
                        others = (*loop.body[:n], *body, *loop.body[n + 1 :])
                        moved = (inner, replace(loop, body=others))
                        yield (*nodes[:at], replace(node, body=moved), *nodes[at + 1 :])

    yield from _bodies(site, change)


def _names(call: Call) -> frozenset[str]:
    """Return the names that the operands and extents of a call depend on."""
    found = [value.names for _, value in call.symbols]
    for _, place in call.operands:
        match place:
            case Window(_, offset):
                found.append(offset.names)
            case Index():
                found.append(place.names)
            case _:
                pass
    return frozenset().union(*found)


def _swapped_operands(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    def change(node: Node) -> Iterator[Node]:
        if not isinstance(node, Call):
            return
        for a in range(len(node.operands)):
            for b in range(a):
                (name, first), (other, second) = node.operands[b], node.operands[a]
                if type(first) is type(second):
                    operands = list(node.operands)
                    operands[b], operands[a] = (name, second), (other, first)
                    yield replace(node, operands=tuple(operands))

    yield from _bodies(site, _one(change))


def _stale_register(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Use another register of the same kind, one that holds another tile."""
    found: dict[object, list[Register]] = {}

    def collect(nodes: Nodes) -> None:
        for node in nodes:
            match node:
                case Scope():
                    for register in node.registers:
                        kind = (register.storage, register.dtype, register.shape)
                        found.setdefault(kind, []).append(register)
                    collect(node.body)
                case Loop():
                    collect(node.body)
                case Guard():
                    collect(node.body)
                    collect(node.otherwise)
                case _:
                    pass

    collect(site.lowered.code)

    def change(node: Node) -> Iterator[Node]:
        if not isinstance(node, Call):
            return
        for n, (name, operand) in enumerate(node.operands):
            if isinstance(operand, Register):
                kind = (operand.storage, operand.dtype, operand.shape)
                others = [r for r in found.get(kind, ()) if r != operand][:2]
                for other in others:
                    operands = (*node.operands[:n], (name, other), *node.operands[n + 1 :])
                    yield replace(node, operands=operands)

    yield from _bodies(site, _one(change))


def _wrong_mask(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Let a masked instruction, or a pitch, be one too short or too long."""

    def change(node: Node) -> Iterator[Node]:
        if isinstance(node, Call):
            for n, (name, value) in enumerate(node.symbols):
                for other in (value - 1, value + 1):
                    symbols = (*node.symbols[:n], (name, other), *node.symbols[n + 1 :])
                    yield replace(node, symbols=symbols)

    yield from _bodies(site, _one(change))


def _missing_fill(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Leave what must hold a constant as it is, or give it another one."""

    def change(node: Node) -> Iterator[Node]:
        match node:
            case Copy(fill=Literal() as fill):
                yield replace(node, fill=_other(fill))
                if node.source is not None and node.conditions:
                    yield replace(node, fill=None)
            case Call():
                for n, (name, operand) in enumerate(node.operands):
                    if isinstance(operand, Literal):
                        wrong = (name, _other(operand))
                        operands = (*node.operands[:n], wrong, *node.operands[n + 1 :])
                        yield replace(node, operands=operands)
            case _:
                return

    yield from _bodies(site, _one(change))


def _other(literal: Literal) -> Literal:
    if literal.dtype.kind == "bool":
        return replace(literal, text="false" if literal.text == "true" else "true")
    text = "1" if literal.text.lstrip("-") in ("0", "0.0", "inf") else "0"
    return replace(literal, text=f"{text}.0" if literal.dtype.is_float else text)


# --- instructions -------------------------------------------------------------------------------
def _wrong_sign(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Take unsigned for signed, or the other way round."""
    yield from _siblings(site, signs=True)


def _wrong_instruction(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Take another instruction with the same operands: a saturating one, a subtraction."""
    yield from _siblings(site, signs=False)


def _siblings(site: Site, signs: bool) -> Iterator[tuple[str, LoweredKernel]]:
    shapes: dict[object, list[Entry]] = {}
    for entry in site.accelerator.entries:
        shapes.setdefault(_shape(entry, signs), []).append(entry)

    def change(node: Node) -> Iterator[Node]:
        if not isinstance(node, Call):
            return
        own = site.entries[node.instruction]
        names = [o.name for o in own.instruction.operands]
        count = 0
        for entry in shapes[_shape(own, signs)]:
            if entry.name == own.name or _plain(entry) == _plain(own) or count == 3:
                continue
            if signs and _structure(entry) != _structure(own):
                continue
            count += 1
            renamed = dict(zip(names, (o.name for o in entry.instruction.operands), strict=True))
            operands = tuple((renamed[name], operand) for name, operand in node.operands)
            extents = [e.name for e in own.instruction.extents]
            others = [e.name for e in entry.instruction.extents]
            symbols = tuple((others[extents.index(name)], value) for name, value in node.symbols)
            yield Call(entry.name, operands, symbols)

    yield from _bodies(site, _one(change))


def _shape(entry: Entry, signs: bool) -> object:
    """Return what two instructions must share to stand in each other's place."""
    operands = tuple(
        (
            o.role,
            o.storage,
            o.dtype.bits if signs and o.dtype.is_integer else o.dtype.name,
            len(o.shape),
            tuple(e.constant for e in o.shape),
        )
        for o in entry.instruction.operands
    )
    return operands, len(entry.instruction.extents), len(entry.instruction.statements)


def _plain(entry: Entry) -> object:
    """Return an instruction's meaning without names."""
    names = {o.name: f"o{n}" for n, o in enumerate(entry.instruction.operands)}

    def text(expr: Expr) -> object:
        match expr:
            case Access(buffer, indices, dtype):
                return names.get(buffer, buffer), tuple(map(str, indices)), dtype.name
            case Op(op, args, dtype):
                return op, dtype.name, tuple(map(text, args))
            case _:
                return expr

    return tuple((s.reduction, text(s.target), text(s.value)) for s in entry.instruction.statements)


def _structure(entry: Entry) -> object:
    """Return an instruction's operations, whatever their types."""

    def text(expr: Expr) -> object:
        match expr:
            case Op(op, args, _):
                return op, tuple(map(text, args))
            case _:
                return type(expr).__name__

    return tuple((s.reduction, text(s.value)) for s in entry.instruction.statements)


def _lost_bound(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Size an array one element too small."""
    for n, array in enumerate(site.lowered.arrays):
        if array.role == "local":
            smaller = replace(array, size=array.size - const(1))
            arrays = (*site.lowered.arrays[:n], smaller, *site.lowered.arrays[n + 1 :])
            yield f"array {array.name}", replace(site.lowered, arrays=arrays)


def _too_early(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Do once, ahead of the calls, what every call has to do."""
    lowered = site.lowered
    for n, node in enumerate(lowered.body):
        written = uses((node,), site.entries).writes
        arrays = tuple(
            replace(a, role="prepared") if a.name in written and a.role == "local" else a
            for a in lowered.arrays
        )
        body = (*lowered.body[:n], *lowered.body[n + 1 :])
        first = (*lowered.prepare, node)
        yield _named(node), replace(lowered, arrays=arrays, body=body, prepare=first)


def _not_kept(site: Site) -> Iterator[tuple[str, LoweredKernel]]:
    """Let what is prepared lie where every call has its own content."""
    for n, array in enumerate(site.lowered.arrays):
        if array.role == "prepared":
            arrays = list(site.lowered.arrays)
            arrays[n] = replace(array, role="local")
            yield array.name, replace(site.lowered, arrays=tuple(arrays))


FAULTS: dict[str, Fault] = {
    "wrong stride": _wrong_stride,
    "shifted access": _shifted_access,
    "overlapping write": _overlapping_write,
    "wrong array": _wrong_array,
    "off-by-one tile": _off_by_one_tile,
    "late start": _late_start,
    "dropped tail": _dropped_tail,
    "wrong condition": _wrong_condition,
    "lost guard": _lost_guard,
    "race": _race,
    "dropped call or copy": _dropped,
    "repeated call": _repeated,
    "wrong order": _wrong_order,
    "out of the loop": _out_of_the_loop,
    "swapped operands": _swapped_operands,
    "stale register": _stale_register,
    "wrong mask or pitch": _wrong_mask,
    "missing or wrong fill": _missing_fill,
    "unsigned for signed": _wrong_sign,
    "wrong instruction": _wrong_instruction,
    "array too small": _lost_bound,
    "done too early": _too_early,
    "prepared, not kept": _not_kept,
}
