"""Results that pass through a stage, on machines whose units are queues: copied all together.

A copy is the program's own, and waits until all queues are done.  Where each result is stored to
one stage and copied from there, the next result waits for it::

    for i in 0..4 {                             for i in 0..4 {
      store(r = acc, m = Y_stage[0])              store(r = acc, m = Y_stage[32*i])
      copy Y[32*i + ..] = Y_stage[..]    -->      store(r = acc_2, m = Y_stage[32*i + 16])
      store(r = acc_2, m = Y_stage[0])          }
      copy Y[32*i + 16 + ..] = Y_stage[..]      for i_copied in 0..4 {
    }                                             copy Y[32*i_copied + ..] = Y_stage[..]
                                                  copy Y[32*i_copied + 16 + ..] = ..
                                                }
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index, var
from isamap.lower.apart import every, uses
from isamap.lower.held import moved
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
)
from isamap.lower.rounds import renamed

ROOM = 1 << 16
"""Bytes that a stage may have for the results of a loop."""


def copy_together(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return a lowered kernel whose staged results have places of their own until they are copied.

    Copies move behind the nodes that follow them and out of loops, in their order, as far as these
    nodes leave alone what they read and write.  Where no units are queues nothing changes.
    """
    if accelerator.queues is None:
        return lowered
    entries = accelerator.by_name
    stages = {
        array.name: array
        for array in lowered.arrays
        if array.role == "local" and array.private and array.size.constant is not None
        if _is_stage(lowered.body, array.name, entries)
    }
    if not stages:
        return lowered
    names = {a.name for a in lowered.arrays} | {*lowered.symbols} | _counters(lowered.body)
    part = _Gathering(stages, entries, names).sequence(lowered.body)
    arrays = tuple(
        replace(array, size=array.size * part.places.get(array.name, 1)) for array in lowered.arrays
    )
    return replace(lowered, body=(*part.nodes, *part.late), arrays=arrays)


def _is_stage(nodes: Sequence[Node], array: str, entries: Mapping[str, Entry]) -> bool:
    """Return whether an array is written by calls, then read by a copy, and so on."""
    written = False
    for node in nodes:
        own = uses((node,), entries)
        if array not in own.reads | own.writes:
            continue
        match node:
            case Call() if array not in own.reads:
                written = True
            case Copy(source=source) if source == array and array not in own.writes and written:
                written = False
            case Loop(body=body) | Scope(body=body) if not written:
                if not _is_stage(body, array, entries):
                    return False
            case Guard(_, body, otherwise) if not written:
                if not all(_is_stage(each, array, entries) for each in (body, otherwise)):
                    return False
            case _:
                return False
    return not written


def _counters(nodes: Sequence[Node]) -> set[str]:
    """Return the names of all counters."""
    found: set[str] = set()
    for node in every(nodes):
        if isinstance(node, Loop):
            found.add(node.counter)
        elif isinstance(node, Copy):
            found |= {name for name, _ in node.counters}
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """Nodes, copies that may come after them, and the places that each stage needs till then."""

    nodes: tuple[Node, ...]
    late: tuple[Node, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """Gathers copies from ``stages``; ``names`` are taken."""

    stages: Mapping[str, Array]
    entries: Mapping[str, Entry]
    names: set[str]

    def sequence(self, nodes: Sequence[Node]) -> _Part:
        """Return nodes that follow each other, and the copies that may come after them."""
        found: list[Node] = []
        late: list[Node] = []
        taken: dict[str, int] = {}
        most: dict[str, int] = {}
        for node in nodes:
            part = self._part(node)
            ahead = {stage: self._pitch(stage) * -number for stage, number in taken.items()}
            if late and self._clash(late, part.nodes):
                found += late
                late = []
            found += moved(part.nodes, ahead)
            late += moved(part.late, ahead)
            for stage, number in part.places.items():
                own = taken.get(stage, 0) + number
                most[stage] = max(most.get(stage, 0), own)
                if part.late:  # else its places are free again
                    taken[stage] = own
        return _Part(tuple(found), tuple(late), most)

    def _part(self, node: Node) -> _Part:
        match node:
            case Copy(source=source) if source is not None and source in self.stages:
                return _Part((), (node,), {source: 1})
            case Scope(body=body):
                part = self.sequence(body)
                return replace(part, nodes=(replace(node, body=part.nodes),))
            case Loop(body=body):
                return self._loop(node, self.sequence(body))
            case Guard(_, body, otherwise):
                parts = self.sequence(body), self.sequence(otherwise)
                first, second = ((*part.nodes, *part.late) for part in parts)
                stages = {stage for part in parts for stage in part.places}
                places = {s: max(part.places.get(s, 0) for part in parts) for s in stages}
                return _Part((replace(node, body=first, otherwise=second),), places=places)
            case Call() | Copy() | Prefetch() | Token() | Setting():
                return _Part((node,))

    def _loop(self, loop: Loop, part: _Part) -> _Part:
        """Return a loop, and one that copies after it where that may be."""
        count = loop.count.constant
        if not part.late or count is None or loop.parallel or not self._may_leave(part, count):
            whole = replace(loop, body=(*part.nodes, *part.late))
            return _Part((whole,), places=part.places)
        ahead = {s: self._pitch(s) * -var(loop.counter) * n for s, n in part.places.items()}
        counter = self._fresh(f"{loop.counter}_copied")
        late = renamed(moved(part.late, ahead), {loop.counter: var(counter)})
        return _Part(
            (replace(loop, body=moved(part.nodes, ahead)),),
            (Loop(counter, loop.count, late),),
            {stage: number * count for stage, number in part.places.items()},
        )

    def _may_leave(self, part: _Part, count: int) -> bool:
        """Return whether there is room for the results of all iterations until they are copied."""
        sizes = (
            number * count * (self._pitch(stage).constant or 0) * self.stages[stage].dtype.bytes
            for stage, number in part.places.items()
        )
        return all(size <= ROOM for size in sizes) and not self._clash(part.late, part.nodes)

    def _fresh(self, name: str) -> str:
        number = 2
        found = name
        while found in self.names:
            found, number = f"{name}_{number}", number + 1
        self.names.add(found)
        return found

    def _pitch(self, stage: str) -> Index:
        return self.stages[stage].size

    def _clash(self, copies: Sequence[Node], nodes: Sequence[Node]) -> bool:
        """Return whether copies must be done before nodes; what is in their stages stays there."""
        own, other = uses(copies, self.entries), uses(nodes, self.entries)
        read = own.reads - self.stages.keys()
        return bool(own.writes & (other.reads | other.writes) or read & other.writes)
