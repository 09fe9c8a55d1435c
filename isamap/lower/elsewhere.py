"""Nodes with other places in memory, and other index expressions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from isamap.ir.index import Index
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    Node,
    Operand,
    Prefetch,
    Scope,
    Setting,
    Token,
    Window,
)

Place: TypeAlias = tuple[str, Index]
"""An array, and the number of an element of it."""


def elsewhere(
    nodes: Sequence[Node],
    place: Callable[[str, Index], Place],
    index: Callable[[Index], Index] = lambda own: own,
) -> tuple[Node, ...]:
    """Return nodes in which each place is what ``place`` makes of it, each other index expression
    what ``index`` does.

    Nodes in which nothing changes are the same objects.
    """

    def each(nodes: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(map(changed, nodes))

    def operand(own: Operand) -> Operand:
        match own:
            case Window(buffer, offset):
                new, at = place(buffer, offset)
                return own if new == buffer and at is offset else Window(new, at)
            case Index():
                return index(own)
            case _:
                return own

    def changed(node: Node) -> Node:
        match node:
            case Call(_, operands, symbols):
                places = tuple((name, operand(own)) for name, own in operands)
                values = tuple((name, index(own)) for name, own in symbols)
                if _same(places, operands) and _same(values, symbols):
                    return node
                return replace(node, operands=places, symbols=values)
            case Loop(_, count, body):
                inside, times = each(body), index(count)
                if times is count and all(map(_is, inside, body)):
                    return node
                return replace(node, count=times, body=inside)
            case Guard(conditions, body, otherwise):
                return Guard(tuple(map(index, conditions)), each(body), each(otherwise))
            case Scope(_, body):
                inside = each(body)
                return node if all(map(_is, inside, body)) else replace(node, body=inside)
            case Copy(target=target, source=source):
                to, start = place(target, node.target_offset), (source, node.source_offset)
                if source is not None:
                    start = place(source, node.source_offset)
                return replace(
                    node,
                    counters=tuple((name, index(count)) for name, count in node.counters),
                    target=to[0],
                    target_offset=to[1],
                    source=start[0],
                    source_offset=start[1],
                    conditions=tuple(map(index, node.conditions)),
                )
            case Prefetch(buffer=buffer, offset=offset):
                new, at = place(buffer, offset)
                return replace(node, buffer=new, offset=at)
            case Token() | Setting():
                return node

    return each(nodes)


def _is(one: object, other: object) -> bool:
    return one is other


def _same(new: Sequence[tuple[str, object]], old: Sequence[tuple[str, object]]) -> bool:
    return all(one is other for (_, one), (_, other) in zip(new, old, strict=True))
