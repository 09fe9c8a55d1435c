"""Arrays of which code writes no element twice, so that the order of its stores does not matter."""

from collections.abc import Iterable, Mapping

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.interp.arithmetic import declared
from isamap.interp.call import Plan
from isamap.interp.rounding import Values
from isamap.lower.apart import uses
from isamap.lower.nodes import Array, Call, Guard, Loop, Node, Scope, Window

_CALLS = 1 << 14
"""Calls that are looked at."""

_ELEMENTS = 1 << 24
"""Elements of arrays that are looked at, and elements that calls write, at most."""


def written_once(
    nodes: Iterable[Node], arrays: Iterable[Array], entries: Mapping[str, Entry]
) -> frozenset[str]:
    """Return arrays of which nodes write no element twice, as far as that can be counted.

    It is not where loops, places or sizes are known when the code runs only, where there is too
    much to count, and of what is written by copies.
    """
    counted = _Counted(entries)
    for array in arrays:
        size = array.size.constant
        if size is not None and counted.room >= size:
            counted.room -= size
            counted.written[array.name] = np.zeros(size, np.bool_)
    counted.nodes(tuple(nodes), {})
    return frozenset(counted.written)


class _Counted:
    """Goes through code as it is executed; ``written`` has the arrays that may yet be found."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self.written: dict[str, Values] = {}
        self.plans: dict[tuple[str, tuple[tuple[str, int], ...]], Plan] = {}
        self.calls = _CALLS
        self.room = self.elements = _ELEMENTS

    def nodes(self, nodes: tuple[Node, ...], at: Mapping[str, int]) -> None:
        for node in nodes:
            if uses((node,), self.entries).writes & self.written.keys():
                self.node(node, at)

    def node(self, node: Node, at: Mapping[str, int]) -> None:
        try:
            match node:
                case Call():
                    self.call(node, at)
                case Loop(counter, count, body):
                    for value in range(int(count.evaluate(at))):
                        self.nodes(body, {**at, counter: value})
                case Guard(conditions, body, otherwise):
                    holds = all(int(c.evaluate(at)) >= 0 for c in conditions)
                    self.nodes(body if holds else otherwise, at)
                case Scope(_, body):
                    self.nodes(body, at)
                case _:
                    self.forget(node)
        except KeyError:  # a number that is known when the code runs
            self.forget(node)

    def forget(self, node: Node) -> None:
        for name in uses((node,), self.entries).writes:
            self.written.pop(name, None)

    def call(self, call: Call, at: Mapping[str, int]) -> None:
        symbols = tuple((name, int(index.evaluate(at))) for name, index in call.symbols)
        instruction = self.entries[call.instruction].instruction
        key = call.instruction, symbols
        if key not in self.plans:
            values = {e.name: e.value for e in instruction.extents if e.value is not None}
            values |= dict(symbols)
            pitches = {
                o.name: tuple(int(p.evaluate(values)) for p in o.strides)
                for o in instruction.places
                if o.strides is not None
            }
            self.plans[key] = Plan(instruction, values, pitches, declared())
        for name, place in call.operands:
            if not isinstance(place, Window) or instruction.operand(name).role == "in":
                continue
            where = self.plans[key].footprints[name].writes + int(place.offset.evaluate(at))
            self.calls -= 1
            self.elements -= len(where)
            marks = self.written.get(place.buffer)
            if marks is None:
                continue
            ends = int(where.max(initial=0)) >= len(marks)
            if ends or min(self.calls, self.elements) < 0 or marks[where].any():
                del self.written[place.buffer]
            else:
                marks[where] = True
