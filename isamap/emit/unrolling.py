"""Asking the compiler to repeat the bodies of short innermost loops."""

from isamap.emit.liveness import calls
from isamap.emit.templates import Machine
from isamap.lower.nodes import Call, Loop, Node, Prefetch, Scope, Setting

MOST = 8
"""How often a body is repeated at most."""


def unrolling(loop: Loop, machine: Machine) -> tuple[str, ...]:
    """Return the line before a loop that has its body repeated; none where it is long enough.

    A body is that of an innermost loop without conditions.  It is doubled until it has as many
    instructions as the toolchain says, so that counting and addresses are a small part of it.
    """
    tools = machine.accelerator.toolchain
    wanted = tools.unroll if tools is not None else 0
    if not wanted or not _is_straight(loop.body):
        return ()
    length = sum(machine.entries[call.instruction].length for call in calls(loop.body))
    times = 1
    while length and times < MOST and times * length < wanted:
        times *= 2
    return (f"#pragma GCC unroll {times}",) if times > 1 else ()


def _is_straight(nodes: tuple[Node, ...]) -> bool:
    """Return whether nodes are executed one after the other, without loops and conditions."""
    return all(
        _is_straight(node.body)
        if isinstance(node, Scope)
        else isinstance(node, Call | Prefetch | Setting)
        for node in nodes
    )
