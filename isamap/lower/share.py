"""Copies of whole operands that threads share out."""

from dataclasses import replace
from math import prod

from isamap.lower.nodes import Array, Copy, Guard, Loop, LoweredKernel, Node

LEAST = 1 << 15
"""Bytes of a copy below which one thread makes it: the others would have to wait for it anyway."""


def share_copies(lowered: LoweredKernel) -> LoweredKernel:
    """Return a lowered kernel whose threads share large copies before and between its loops.

    A copy's points write an element each; so a loop over one of its counters is parallel.
    """
    arrays = {array.name: array for array in lowered.arrays}
    body = tuple(_shared(node, arrays) for node in lowered.body)
    return replace(lowered, body=body)


def _shared(node: Node, arrays: dict[str, Array]) -> Node:
    if isinstance(node, Loop) and not node.parallel:
        return replace(node, body=tuple(_shared(inner, arrays) for inner in node.body))
    if isinstance(node, Guard):
        body = tuple(_shared(inner, arrays) for inner in node.body)
        otherwise = tuple(_shared(inner, arrays) for inner in node.otherwise)
        return Guard(node.conditions, body, otherwise)
    if not isinstance(node, Copy) or arrays[node.target].private:
        return node
    counts = [count.constant for _, count in node.counters]
    known = [count for count in counts if count is not None]
    if len(known) == len(counts) and prod(known) * arrays[node.target].dtype.bytes < LEAST:
        return node
    # The outermost counter with enough iterations: threads then write to places far apart.
    for at, (counter, count) in enumerate(node.counters):
        inner = (*node.counters[:at], *node.counters[at + 1 :])
        depends = any(counter in other.names for _, other in inner)
        is_written = counter in node.target_offset.names
        if not depends and is_written and (count.constant is None or count.constant >= 8):
            return Loop(counter, count, (_without(node, at),), parallel=True)
    return node


def _without(copy: Copy, at: int) -> Copy:
    return replace(copy, counters=(*copy.counters[:at], *copy.counters[at + 1 :]))
