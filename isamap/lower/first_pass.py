"""How long the first pass through code takes on a machine whose units are queues.

In later passes one unit works beside another.  In the first one a unit waits until what it needs is
there: products for what is brought, stores for the sums.
"""

from collections.abc import Mapping, Sequence

from isamap.hw.accelerator import Accelerator, Entry
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


def first_pass(
    nodes: Sequence[Node], accelerator: Accelerator, entries: Mapping[str, Entry]
) -> float:
    """Return the cycles of one pass through all loops, until the last result is there.

    A call begins when its units are free and what it reads is there: a fragment that an earlier
    call wrote, or an array.  Conditions are taken to hold.
    """
    walk = _Pass(accelerator, entries)
    walk.nodes(nodes)
    return walk.end


class _Pass:
    def __init__(self, accelerator: Accelerator, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self.issue = 1 / max(1, accelerator.issue)
        self.issued = 0.0
        self.free: dict[str, float] = {}
        self.ready: dict[str, float] = {}
        self.end = 0.0

    def nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            match node:
                case Call():
                    self._call(node)
                case Loop(body=body) | Scope(body=body) | Guard(body=body):
                    self.nodes(body)
                case Copy() | Prefetch() | Setting() | Token():
                    pass

    def _call(self, call: Call) -> None:
        entry = self.entries[call.instruction]
        roles = {o.name: o.role for o in entry.instruction.operands}
        places = [
            (place.name if isinstance(place, Register) else place.buffer, roles[name])
            for name, place in call.operands
            if isinstance(place, Register | Window)
        ]
        start = self.issued
        self.issued += self.issue
        for unit in entry.busy:
            start = max(start, self.free.get(unit, 0.0))
        for name, role in places:
            if role != "out":
                start = max(start, self.ready.get(name, 0.0))
        for unit, cycles in entry.busy.items():
            self.free[unit] = start + float(cycles)
            self.end = max(self.end, self.free[unit])
        done = start + float(entry.latency)
        for name, role in places:
            if role != "in":
                self.ready[name] = max(done, self.ready.get(name, 0.0))
        self.end = max(self.end, done)
