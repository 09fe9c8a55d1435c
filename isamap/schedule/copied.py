"""Operands that are packed although instructions could read them where they lie."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from itertools import takewhile
from math import prod

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import ASSUMED_EXTENT, Shape, fragments_of
from isamap.schedule.treatment import PACKED, Treatments, by_operand, inputs, numeric

LARGER = 1.25
"""How many times its own size a constant may take that is packed to lie in one piece."""

PASSES = 64
"""Blocks that read a panel in turn, at least, where it is packed to lie in one piece.  As they lie,
panels of 64 columns of 512 to 2048 rows of f32 took 0.93 to 1.03 times as long as packed at 40
blocks, 0.96 to 1.17 at 80, 1.00 to 1.38 at 160 (``benchmarks/panels.py``, an AMD Zen 4).
"""

COPY = 1 / 4
"""Cycles a byte that is copied into a packed operand."""

COPY_BYTES = 8.0
"""Bytes a cycle of a copy whose innermost counter is contiguous on both sides, where the
description does not say what the first cache takes.

Where it does, a copy moves half of that, as every byte is loaded, too, and one that weaves rows a
part of it, as vectors of two rows, then of four, are made of each other.  On an Emerald Rapids,
whose first cache takes 64 bytes a cycle, rows were copied at 27 to 37 bytes a cycle, and 2, 4, 8
and 16 rows of bytes woven at 18, 15, 10 and 7, of 16 bits at 13, 8, 5 and 4, of f32 at 26, 23, 18
and 13 (``benchmarks/copies.py``).
"""

RUN_CYCLES = 1.0
"""Cycles of each stretch of elements that such a copy moves, on top."""

SINGLE_CYCLES = 0.75
"""Cycles an element of a copy that moves or weaves a few at a time."""

WOVEN = 8
"""Rows that loops over elements weave at most."""

TURNED = 8
"""Bytes of a row that a copy moves together, at most, where it turns rows into columns."""


def pack_aliased(
    shape: Shape, chosen: list[Treatment], accelerator: Accelerator, treatments: Treatments
) -> list[Treatment]:
    """Pack operands whose rows lie a multiple of 2 KiB apart and are read again and again.

    Such rows fall into the same few sets of a cache, which then holds almost none of them: rows
    that a pass over the reductions takes one after the other, and those of one fragment.
    """
    if not any(s.kind == "cache" for s in accelerator.storages):
        return chosen
    result = list(chosen)
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        if chosen[n] in PACKED:
            continue
        names = access.names
        reuse = prod(-(-shape.extents[v] // shape.tile[v]) for v in shape.outputs if v not in names)
        reference = treatments.reference(operand, access, "direct")
        laned = {v for v, tile in shape.tile.items() if tile > 1}
        if reference is None or reuse < 16 or not names & laned:
            continue
        pitches = [
            numeric(reference.offset.coefficient(v), ASSUMED_EXTENT) * access.dtype.bytes
            for v, extent in shape.extents.items()
            if v in names and reference.offset.is_linear_in([v])
            if max(shape.tile[v], extent if v in shape.reductions else 1) >= 16
        ]
        aliased = any(pitch and pitch % 2048 == 0 for pitch in pitches)
        if aliased and treatments.cost(operand, "packed") is not None:
            result[n] = "packed"
    return result


def pack_reused(
    shape: Shape, block: Dict[str, int], chosen: list[Treatment], treatments: Treatments
) -> list[Treatment]:
    """Pack operands whose fragments are so much cheaper then that it pays for the copies.

    Rows that lie as they are given may have to be woven together, or turned into columns, for each
    fragment that a block loads; packed, that is done once.
    """
    result = list(chosen)
    blocks = prod(-(-shape.extents[v] // (block[v] * shape.tile[v])) for v in shape.extents)
    found = inputs(shape.mapping)
    for operand, kinds in by_operand(shape.mapping, chosen).items():
        if not kinds or kinds[0] in PACKED or treatments.is_constant(operand):
            continue
        before, after = (treatments.whole_cost(operand, kind) for kind in (kinds[0], "packed"))
        if before is None or after is None:
            continue
        own = [n for n, (name, _) in enumerate(found) if name == operand]
        saved = before - after
        copied = sum(
            treatments.elements(operand, found[n][1], "packed") * found[n][1].dtype.bytes
            for n in own
        )
        loads = blocks * fragments_of(shape, operand, block)
        if saved * loads > COPY * copied:
            for n in own:
                result[n] = "packed"
    return result


def treated_otherwise(
    shape: Shape, chosen: Sequence[Treatment], treatments: Treatments
) -> list[list[Treatment]]:
    """Return treatments in which one operand is packed that was read as it lies, or the other way
    round; what the rules decide is a close call, which an estimate knows better.

    Constants are packed ahead, and what comes in long pieces of many rows is left as it lies.
    """
    found = inputs(shape.mapping)
    result: list[list[Treatment]] = []
    for operand, kinds in by_operand(shape.mapping, list(chosen)).items():
        if not kinds or treatments.is_constant(operand) or treatments.is_gathered(operand):
            continue
        own = [n for n, (name, _) in enumerate(found) if name == operand]
        other: Treatment = "direct" if kinds[0] in PACKED else "packed"
        if set(kinds) - {"direct", "packed"} or treatments.cost(operand, other) is None:
            continue
        if any(not set(shape.outputs) - found[n][1].names for n in own):
            continue
        if other == "packed" and any(_has_many_rows(shape, treatments, *found[n]) for n in own):
            continue
        result.append([other if n in own else kind for n, kind in enumerate(chosen)])
    return result


def _has_many_rows(shape: Shape, treatments: Treatments, operand: str, access: Access) -> bool:
    """Return whether a fragment comes from more stretches of memory than copies weave, and those
    are no columns either, of a few bytes from each; or whether that is unknown.
    """
    reference = treatments.reference(operand, access, "direct")
    names = () if reference is None else sorted(reference.offset.names & shape.extents.keys())
    if reference is None or not reference.offset.is_linear_in(names):
        return True
    steps = (
        (abs(numeric(reference.offset.coefficient(v), ASSUMED_EXTENT)), shape.tile[v])
        for v in names
        if shape.tile[v] > 1
    )
    length, rows = 1, 1
    for step, count in sorted(steps):
        if step <= length:
            length += step * (count - 1)
        else:
            rows *= count
    return rows > WOVEN and length * access.dtype.bytes > TURNED


def pack_scattered(
    shape: Shape,
    block: Dict[str, int],
    chosen: list[Treatment],
    accelerator: Accelerator,
    treatments: Treatments,
    order: Sequence[str],
) -> list[Treatment]:
    """Pack operands of which a pass over the reductions reads scattered pieces.

    Packed, the pieces follow each other, which caches, prefetchers and translation buffers like.
    Constants are packed once, so that costs nothing; others are where so many blocks
    pass the same pieces, one after the other, that the copy is soon paid.  What the first
    cache holds anyway is left where it lies.  ``order`` are the statement's outputs as their loops
    lie, outermost first.
    """
    first = next((s.size for s in accelerator.storages if s.kind == "cache" and s.size), None)
    if first is None:
        return chosen
    result = list(chosen)
    for n, (operand, access) in enumerate(inputs(shape.mapping)):
        buffer = treatments.buffers[access.buffer]
        if chosen[n] in PACKED:
            continue
        if buffer.role != "const" and _passes(shape, block, access, order) < PASSES:
            continue
        own, packed = (treatments.cost(operand, kind) for kind in (chosen[n], "packed"))
        if own is None or packed is None or packed > own:
            continue
        size = treatments.elements(operand, access, chosen[n])
        if treatments.elements(operand, access, "packed") > LARGER * size:
            continue
        reference = treatments.reference(operand, access, chosen[n])
        if size * buffer.dtype.bytes <= first / 2 or reference is None:
            continue
        if _is_scattered(reference.offset, shape, block):
            result[n] = "packed"
    return result


def _passes(shape: Shape, block: Dict[str, int], access: Access, order: Sequence[str]) -> int:
    """Return how many blocks in turn read the same panel of an access."""
    inner = list(takewhile(lambda v: all(v not in i.names for i in access.indices), order[::-1]))
    return prod(-(-shape.extents[v] // (block[v] * shape.tile[v])) for v in inner)


def _is_scattered(offset: Index, shape: Shape, block: Dict[str, int]) -> bool:
    """Return whether what a block reads over all reductions lies in more than one stretch."""
    names = sorted(offset.names & shape.extents.keys())
    if not offset.is_linear_in(names):
        return False
    reach = {
        v: shape.extents[v] if v in shape.reductions else block[v] * shape.tile[v] for v in names
    }
    steps = sorted((abs(numeric(offset.coefficient(v), ASSUMED_EXTENT)), v) for v in names)
    length = 1
    for step, v in steps:
        if reach[v] > 1 and step > length:
            return True
        length = max(length, step * (min(reach[v], shape.extents[v]) - 1) + length)
    return False
