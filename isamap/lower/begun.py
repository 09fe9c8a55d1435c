"""A kernel that is being lowered, statement by statement."""

from dataclasses import dataclass, field

from isamap.ir.index import Index
from isamap.lower.context import Context
from isamap.lower.nodes import InRegisters, Node


@dataclass(slots=True)
class Begun:
    """What the statements so far have come to.

    ``groups`` are the nodes of statements that have one outermost loop, ``rounds`` how often the
    loop of each goes round and ``firsts`` their first statements; ``written`` are buffers that have
    content; ``in_registers`` are the statements without loops.
    """

    context: Context
    groups: list[list[tuple[Node, ...]]] = field(default_factory=list)
    rounds: list[list[Index]] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    in_registers: list[InRegisters] = field(default_factory=list)
