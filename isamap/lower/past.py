"""Loads past the first cache: of what it does not keep until it is read again.

Where a panel is read again and again while another operand streams by, the stream drives the panel
out of the first cache, and both come from the second one.  On a Xeon a step of four products of
tiles took 120 cycles so, and 91 where the stream went past the first cache
(``benchmarks/tiles.py``).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from isamap.hw.accelerator import Accelerator, Entry
from isamap.lower.nodes import Call, Guard, Loop, Node, Scope, Window


def loads_past(
    nodes: Sequence[Node], arrays: AbstractSet[str], accelerator: Accelerator
) -> tuple[Node, ...]:
    """Return nodes whose loads from some arrays go past the first cache, where they can."""
    loads = {entry.name: entry for entry in accelerator.past_loads} if arrays else {}

    def each(nodes: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(map(changed, nodes))

    def changed(node: Node) -> Node:
        match node:
            case Call():
                past = _loads(node, arrays, loads)
                return replace(node, bypass=True) if past else node
            case Loop(body=body) | Scope(body=body):
                return replace(node, body=each(body))
            case Guard(body=body, otherwise=otherwise):
                return replace(node, body=each(body), otherwise=each(otherwise))
            case _:
                return node

    return each(nodes) if loads else tuple(nodes)


def _loads(call: Call, arrays: AbstractSet[str], loads: Mapping[str, Entry]) -> bool:
    if call.instruction not in loads:
        return False
    windows = (place for _, place in call.operands if isinstance(place, Window))
    return any(place.buffer in arrays for place in windows)
