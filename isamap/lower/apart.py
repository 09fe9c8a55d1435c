"""What constants alone decide is taken out of a lowered kernel's body, to be executed once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.ahead import Uses, ahead
from isamap.ir.index import Index
from isamap.lower.nodes import (
    Array,
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Scope,
    Setting,
    Token,
    Window,
)


def set_apart(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return a lowered kernel whose ``prepare`` holds what may run once ahead of all calls.

    That is every statement, and every packing, padding or fill, that reads constants only.  Locals
    that it writes and the rest reads become ``prepared`` arrays.  A kernel that declares no
    constant is returned as it is.
    """
    if not any(a.role == "const" for a in lowered.arrays):
        return lowered
    entries = accelerator.by_name
    steps = [uses((node,), entries) for node in lowered.body]
    constants = frozenset(a.name for a in lowered.arrays if a.role in ("const", "table"))
    local = frozenset(a.name for a in lowered.arrays if a.role == "local")
    first = ahead(steps, constants, local)
    if not first:
        return lowered
    rest = [number for number in range(len(steps)) if number not in first]
    made = frozenset().union(*(steps[n].writes for n in first))
    read = frozenset().union(*(steps[n].reads for n in rest))
    return replace(
        lowered,
        arrays=tuple(_kept(a) if a.name in made & read else a for a in lowered.arrays),
        body=tuple(lowered.body[n] for n in rest),
        prepare=tuple(lowered.body[n] for n in first),
    )


def _kept(array: Array) -> Array:
    assert not array.private, "a thread's own array holds nothing for other nodes"
    return replace(array, role="prepared")


def faults_ahead(lowered: LoweredKernel, entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return what ties the two bodies of a lowered kernel together in a way that must not be.

    What runs ahead reads constants and writes locals and prepared arrays; a call writes no prepared
    array.  KeyError for an instruction that there is not.
    """
    roles = {a.name: a.role for a in lowered.arrays}
    made = {a.name for a in lowered.prepared}
    first, call = uses(lowered.prepare, entries), uses(lowered.body, entries)
    own = ("local", "prepared")
    inputs = sorted(n for n in first.reads if roles.get(n) not in ("const", "table", *own))
    found = [f"{name} is read ahead of the call that gives it" for name in inputs]
    targets = sorted(n for n in first.writes if roles.get(n) not in own)
    found += [f"{name} is written ahead of the calls" for name in targets]
    changed = sorted(call.writes & made)
    found += [f"{name} is prepared, and changed by a call" for name in changed]
    found += [f"{name} is prepared by nothing" for name in sorted(made - first.writes)]
    lost = sorted((first.writes & call.reads) - call.writes - made)
    found += [f"{name} is written ahead of the calls and not kept" for name in lost]
    return tuple(found)


def uses(nodes: Iterable[Node], entries: Mapping[str, Entry]) -> Uses:
    """Return the arrays that some nodes read and write."""
    reads: set[str] = set()
    writes: set[str] = set()
    known: dict[str, dict[str, str]] = {}
    for node in every(nodes):
        for index in _indices(node):
            reads.update(read.buffer for read in index.reads)
        match node:
            case Call(instruction, operands):
                if (roles := known.get(instruction)) is None:
                    own = entries[instruction].instruction.operands
                    roles = known[instruction] = {o.name: o.role for o in own}
                for name, place in operands:
                    if isinstance(place, Window):
                        if roles[name] != "out":
                            reads.add(place.buffer)
                        if roles[name] in ("out", "inout"):
                            writes.add(place.buffer)
            case Copy():
                writes.add(node.target)
                reads |= set() if node.source is None else {node.source}
            case Loop() | Guard() | Scope() | Prefetch() | Token() | Setting():
                pass
    return Uses(frozenset(reads), frozenset(writes))


def indices(nodes: Iterable[Node]) -> Iterator[Index]:
    """Yield every index expression in some nodes."""
    for node in every(nodes):
        yield from _indices(node)


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield some nodes and all that is in them."""
    for node in nodes:
        yield node
        match node:
            case Loop(body=body) | Scope(body=body):
                yield from every(body)
            case Guard(_, body, otherwise):
                yield from every((*body, *otherwise))
            case Call() | Copy() | Prefetch() | Token() | Setting():
                pass


def _indices(node: Node) -> Sequence[Index]:
    """Return the index expressions of a node itself, not those of the nodes in it."""
    match node:
        case Call():
            places = [place for _, place in node.operands]
            offsets = [p.offset if isinstance(p, Window) else p for p in places]
            return [*(o for o in offsets if isinstance(o, Index)), *(i for _, i in node.symbols)]
        case Copy():
            counts = [count for _, count in node.counters]
            return [*counts, node.target_offset, node.source_offset, *node.conditions]
        case Loop():
            return [node.count]
        case Guard():
            return node.conditions
        case Prefetch():
            return [node.offset]
        case Scope() | Token() | Setting():
            return []
