"""Loops over single elements that the C compiler is asked to vectorize."""

from collections.abc import Iterator, Mapping

from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.index import Index
from isamap.lower.nodes import Call, Loop, Node, Register, Scope, Window
from isamap.schedule.plain import NEAR

PROMOTED = 4
"""Bytes of an element at least while C computes with it: as many as an int has."""


def lanes_of(loop: Loop, entries: Mapping[str, Entry], accelerator: Accelerator) -> int:
    """Return how many iterations of a loop its compiler does at once, 1 if it is not asked to.

    A compiler whose vectors have a size is asked for them where each iteration calls instructions
    of one element, in registers of its own, and neither reads nor writes what another one writes.
    """
    vector = accelerator.toolchain.vector if accelerator.toolchain is not None else 0
    if not vector or not _is_straight(loop.body):
        return 1
    made = list(_calls(loop.body))
    own = {register for scope in _scopes(loop.body) for register in scope.registers}
    if not made or not all(_is_single(call, entries, own) for call in made):
        return 1
    if not _is_independent(loop, made, entries):
        return 1
    widest = max([PROMOTED, *(register.dtype.bytes for register in own)])
    return max(1, vector // widest)


def _is_straight(nodes: tuple[Node, ...]) -> bool:
    """Return whether nodes are calls and nothing else."""
    return all(
        _is_straight(node.body) if isinstance(node, Scope) else isinstance(node, Call)
        for node in nodes
    )


def _calls(nodes: tuple[Node, ...]) -> Iterator[Call]:
    for node in nodes:
        if isinstance(node, Call):
            yield node
        elif isinstance(node, Scope):
            yield from _calls(node.body)


def _scopes(nodes: tuple[Node, ...]) -> Iterator[Scope]:
    for node in nodes:
        if isinstance(node, Scope):
            yield node
            yield from _scopes(node.body)


def _is_single(call: Call, entries: Mapping[str, Entry], own: set[Register]) -> bool:
    """Return whether a call is on single elements, none of them in others' registers."""
    operands = entries[call.instruction].instruction.operands
    kept = (place for _, place in call.operands if isinstance(place, Register))
    return not any(operand.shape for operand in operands) and all(place in own for place in kept)


def _is_independent(loop: Loop, made: list[Call], entries: Mapping[str, Entry]) -> bool:
    """Return whether iterations write each its own elements, and read none of another one's."""
    places: dict[str, set[Index]] = {}
    written: set[str] = set()
    held: set[str] = set()  # what indices are read from
    for call in made:
        instruction = entries[call.instruction].instruction
        for name, place in call.operands:
            if isinstance(place, Index):
                held |= {read.buffer for read in place.reads}
            if isinstance(place, Window):
                held |= {read.buffer for read in place.offset.reads}
                stores = instruction.operand(name).role != "in"
                if not _goes_along(place.offset, loop.counter, stores):
                    return False
                places.setdefault(place.buffer, set()).add(place.offset)
                written |= {place.buffer} if stores else set()
    return not written & held and all(len(places[buffer]) == 1 for buffer in written)


def _goes_along(offset: Index, counter: str, stores: bool) -> bool:
    """Return whether an offset goes on steadily with a counter: to the next one if it is written,
    and else not far.
    """
    if not offset.is_linear_in({counter}):
        return False
    step = offset.coefficient(counter).constant
    return step is not None and (abs(step) == 1 if stores else abs(step) <= NEAR)
