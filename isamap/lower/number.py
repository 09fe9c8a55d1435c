"""Which of its storage's registers holds a fragment, where registers have numbers and no names.

A fragment has its number from the first node of its scope that uses it to the last: nothing else
that is needed meanwhile has the same one.  Of the free numbers that which was free the longest is
taken, so that what fills a register need not wait for those who read what it held.  Lives that
are intervals need no more numbers than are alive at once, unless some take several in a row: where
fragments of several sizes share a file the least free number is taken, which leaves longer rows.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import count

from isamap.hw.accelerator import Accelerator
from isamap.lower.nodes import (
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
)

Taken = Mapping[str, AbstractSet[int]]
"""The numbers that are taken, by register file."""


def number_registers(lowered: LoweredKernel, accelerator: Accelerator) -> LoweredKernel:
    """Return the lowered kernel with a number for each fragment in numbered registers.

    A fragment for which none is left stays without one.
    """
    numbered = [
        (s.name, *accelerator.register_file(s))
        for s in accelerator.storages
        if s.kind == "registers" and s.numbered
    ]
    sizes: dict[str, set[int]] = {}
    for _, file, each in numbered:
        sizes.setdefault(file.name, set()).add(each)
    files = {
        name: _File(file.name, file.count or 0, each, len(sizes[file.name]) == 1)
        for name, file, each in numbered
    }
    if not files:
        return lowered
    numbering = _Numbering(files)
    prepare, body = (numbering.nodes(nodes, {}, {}) for nodes in (lowered.prepare, lowered.body))
    return replace(lowered, prepare=prepare, body=body)


def without_number(lowered: LoweredKernel, accelerator: Accelerator) -> Register | None:
    """Return a fragment that is used, should have a number and has none, if there is one."""
    numbered = {s.name for s in accelerator.storages if accelerator.rows(s) is not None}
    return next((r for r in used(lowered.code) if r.storage in numbered and r.number is None), None)


def used(nodes: tuple[Node, ...]) -> Iterator[Register]:
    """Yield the registers that calls use."""
    for node in nodes:
        match node:
            case Call(operands=operands):
                yield from (place for _, place in operands if isinstance(place, Register))
            case Loop(body=body) | Scope(body=body):
                yield from used(body)
            case Guard(_, body, otherwise):
                yield from used((*body, *otherwise))
            case Copy() | Prefetch() | Token() | Setting():
                pass


@dataclass(frozen=True, slots=True)
class _File:
    """A register file of ``count`` numbers; a fragment takes ``each`` of them in a row.

    Numbers take ``turns`` where all fragments are of one size.
    """

    name: str
    count: int
    each: int
    turns: bool

    def free(self, taken: Taken, ended: Mapping[tuple[str, int], int]) -> int | None:
        """Return the first number of a row that is free and begins at a multiple of its length.

        ``ended`` tells when a number was used last.
        """
        busy = taken.get(self.name, frozenset())
        starts = range(0, self.count - self.each + 1, self.each)
        free = (n for n in starts if busy.isdisjoint(self.row(n)))
        if not self.turns:
            return next(free, None)
        return min(free, key=lambda n: ended.get((self.name, n), -1), default=None)

    def row(self, number: int) -> range:
        """Return the numbers that a fragment takes from its number on."""
        return range(number, number + self.each)

    def taken_by(self, register: Register) -> range:
        """Return the numbers that a fragment takes: none if it has no number."""
        return range(0) if register.number is None else self.row(register.number)


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Files by the storages in them, and when each number was free again, in order of the code."""

    files: Mapping[str, _File]
    ended: dict[tuple[str, int], int] = field(default_factory=dict)
    clock: Iterator[int] = field(default_factory=count)

    def nodes(
        self, nodes: tuple[Node, ...], scope: Mapping[str, Register], taken: Taken
    ) -> tuple[Node, ...]:
        """Return nodes whose fragments have numbers; those of ``scope`` are known by name."""
        return tuple(self._node(node, scope, taken) for node in nodes)

    def _node(self, node: Node, scope: Mapping[str, Register], taken: Taken) -> Node:
        match node:
            case Call(operands=operands):
                places = tuple(
                    (name, scope.get(place.name, place) if isinstance(place, Register) else place)
                    for name, place in operands
                )
                return replace(node, operands=places)
            case Loop(body=body):
                return replace(node, body=self.nodes(body, scope, taken))
            case Guard(_, body, otherwise):
                inside = self.nodes(body, scope, taken)
                return replace(node, body=inside, otherwise=self.nodes(otherwise, scope, taken))
            case Scope():
                return self._scope(node, scope, taken)
            case Copy() | Prefetch() | Token() | Setting():
                return node

    def _scope(self, node: Scope, scope: Mapping[str, Register], taken: Taken) -> Scope:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for position, inner in enumerate(node.body):
            for register in used((inner,)):
                first.setdefault(register.name, position)
                last[register.name] = position
        begun: dict[int, list[str]] = {}
        ended: dict[int, list[str]] = {}
        for register in node.registers:
            if register.storage in self.files and register.name in first:
                begun.setdefault(first[register.name], []).append(register.name)
                ended.setdefault(last[register.name], []).append(register.name)
        own = {register.name: register for register in node.registers}
        known = {**scope, **own}
        here = {name: set(numbers) for name, numbers in taken.items()}
        body: list[Node] = []
        for position, inner in enumerate(node.body):
            for name in begun.get(position, ()):
                file = self.files[own[name].storage]
                own[name] = known[name] = replace(own[name], number=file.free(here, self.ended))
                here.setdefault(file.name, set()).update(file.taken_by(own[name]))
            body.append(self._node(inner, known, here))
            for name in ended.get(position, ()):
                file = self.files[own[name].storage]
                numbers = file.taken_by(own[name])
                here[file.name].difference_update(numbers)
                now = next(self.clock)
                self.ended.update({(file.name, n): now for n in numbers})
        return Scope(tuple(own.values()), tuple(body))
