"""How much of each storage a lowered kernel needs at once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

from isamap.hw.accelerator import Accelerator, Storage
from isamap.ir.index import Index
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
from isamap.lower.number import without_number

ADDRESSABLE = 1 << 47
"""Bytes: what one process can address on CPUs of 64 bits; sizes far below it are counted without
overflow."""


def peak_use(lowered: LoweredKernel, accelerator: Accelerator) -> dict[str, int]:
    """Return the greatest use of each storage that holds registers: bytes, or whole registers.

    A register counts from the first node of its scope that uses it to the last, in the register
    file that it lies within.
    """
    storages = {s.name: accelerator.register_file(s)[0] for s in accelerator.storages}
    return _peak(lowered.code, storages)


def excess(lowered: LoweredKernel, accelerator: Accelerator) -> str | None:
    """Return which storage is too small for a lowered kernel and by how much, or None.

    The compiler of a machine with a toolchain spills what its registers cannot hold, so only
    scratchpads and numbered registers are limits there.
    """
    held = sum(_least(array.size) * array.dtype.bytes for array in lowered.arrays)
    if held > ADDRESSABLE:
        return f"{lowered.name} needs {held} bytes of memory, more than any program can address"
    limits = [(s, c) for s in accelerator.storages if (c := _capacity(s, accelerator)) is not None]
    use = peak_use(lowered, accelerator) if limits else {}
    for storage, capacity in limits:
        needed = use.get(storage.name, 0)
        if needed > capacity:
            unit = "bytes" if storage.kind == "scratchpad" else "registers"
            return (
                f"{lowered.name} needs {needed} {unit} of {storage.name}, which has {capacity}: "
                f"{needed - capacity} {unit} over"
            )
    if (register := without_number(lowered, accelerator)) is not None:
        pad = accelerator.storage(register.storage).kind == "scratchpad"
        what = "rows" if pad else "register"
        return f"{lowered.name}: no {what} of {register.storage} left for {register.name}"
    return None


def _least(size: Index) -> int:
    """Return how many elements an array has at least: with extents of one where they are open."""
    return int(size.evaluate(dict.fromkeys(size.names, 1)))


def _capacity(storage: Storage, accelerator: Accelerator) -> int | None:
    if storage.kind == "scratchpad":
        return storage.size
    spills = accelerator.toolchain is not None and accelerator.server is None
    if storage.kind == "registers" and (storage.numbered or not spills):
        return storage.count
    return None


def _size(register: Register, storage: Storage) -> int:
    bits = prod(register.shape) * register.dtype.bytes * 8
    if storage.kind == "registers":
        return -(-bits // storage.bits) if storage.bits else 1
    aligned = max(1, storage.alignment)
    return -(-bits // 8 // aligned) * aligned * register.places


def _peak(nodes: tuple[Node, ...], storages: Mapping[str, Storage]) -> dict[str, int]:
    most: dict[str, int] = {}
    for node in nodes:
        _raise_to(most, _peak_of(node, storages))
    return most


def _peak_of(node: Node, storages: Mapping[str, Storage]) -> dict[str, int]:
    match node:
        case Call() | Copy() | Prefetch() | Token() | Setting():
            return {}
        case Loop(body=body):
            return _peak(body, storages)
        case Guard(body=body, otherwise=otherwise):
            return _peak((*body, *otherwise), storages)
        case Scope(registers=registers, body=body):
            return _scope_peak(registers, body, storages)


def _scope_peak(
    registers: tuple[Register, ...], body: tuple[Node, ...], storages: Mapping[str, Storage]
) -> dict[str, int]:
    first: dict[Register, int] = {}
    last: dict[Register, int] = {}
    for position, node in enumerate(body):
        for register in set(_used(node)):
            first.setdefault(register, position)
            last[register] = position
    begun: dict[int, list[Register]] = {}
    ended: dict[int, list[Register]] = {}
    for register in registers:
        if register in first:
            begun.setdefault(first[register], []).append(register)
            ended.setdefault(last[register], []).append(register)
    most: dict[str, int] = {}
    alive: Counter[str] = Counter()
    for position, node in enumerate(body):
        for register in begun.get(position, ()):
            storage = storages[register.storage]
            alive[storage.name] += _size(register, storage)
        here = Counter(_peak_of(node, storages))
        here.update(alive)
        _raise_to(most, here)
        for register in ended.get(position, ()):
            storage = storages[register.storage]
            alive[storage.name] -= _size(register, storage)
    return most


def _used(node: Node) -> Iterator[Register]:
    match node:
        case Call(operands=operands):
            yield from (place for _, place in operands if isinstance(place, Register))
        case Loop(body=body) | Scope(body=body):
            for inner in body:
                yield from _used(inner)
        case Guard(body=body, otherwise=otherwise):
            for inner in (*body, *otherwise):
                yield from _used(inner)
        case Copy() | Prefetch() | Token() | Setting():
            pass


def _raise_to(most: dict[str, int], other: Mapping[str, int]) -> None:
    for name, value in other.items():
        most[name] = max(most.get(name, 0), value)


def takes_turns(lowered: LoweredKernel) -> bool:
    """Return whether a fragment has several places in a scratchpad, which it takes in turn."""
    return any(register.places > 1 for node in lowered.code for register in _used(node))
