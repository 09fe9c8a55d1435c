"""Which registers and buffers a stretch of a lowered kernel touches."""

from collections.abc import Iterator
from typing import Literal as OneOf
from typing import TypeAlias, assert_never

from isamap.emit.templates import Machine
from isamap.ir.index import Index
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    Node,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
    Window,
)

Use: TypeAlias = OneOf["read", "written"]


def calls(nodes: tuple[Node, ...]) -> Iterator[Call]:
    """Yield the calls in order."""
    for node in nodes:
        match node:
            case Call():
                yield node
            case Guard(_, body, otherwise):
                yield from calls(body)
                yield from calls(otherwise)
            case Loop(body=body) | Scope(body=body):
                yield from calls(body)
            case Copy() | Prefetch() | Token() | Setting():
                pass
            case _:
                assert_never(node)


def registers_used(nodes: tuple[Node, ...], machine: Machine) -> dict[str, Use]:
    """Return the names of registers, each ``read`` somewhere or only ``written``."""
    found: dict[str, Use] = {}
    for call in calls(nodes):
        instruction = machine.entries[call.instruction].instruction
        for name, place in call.operands:
            if isinstance(place, Register):
                if instruction.operand(name).role != "out":
                    found[place.name] = "read"
                else:
                    found.setdefault(place.name, "written")
    return found


def buffers_used(nodes: tuple[Node, ...]) -> frozenset[str]:
    """Return the buffers of which some nodes know the place: read, written or prefetched."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case Call():
                windows = [p for _, p in node.operands if isinstance(p, Window)]
                found.update(w.buffer for w in windows)
                found |= _read(*(w.offset for w in windows), *(i for _, i in node.symbols))
                found |= _read(*(p for _, p in node.operands if isinstance(p, Index)))
            case Copy():
                found.add(node.target)
                found |= {node.source} if node.source is not None else set()
                found |= _read(node.target_offset, node.source_offset, *node.conditions)
                found |= _read(*(count for _, count in node.counters))
            case Prefetch(buffer=buffer):
                found.add(buffer)
            case Guard(conditions, body, otherwise):
                found |= _read(*conditions)
                found |= buffers_used(body)
                found |= buffers_used(otherwise)
            case Loop():
                found |= _read(node.count)
                found |= buffers_used(node.body)
            case Scope():
                found |= buffers_used(node.body)
            case Token() | Setting():
                pass
            case _:
                assert_never(node)
    return frozenset(found)


def _read(*indices: Index) -> set[str]:
    return {read.buffer for index in indices for read in index.reads}
