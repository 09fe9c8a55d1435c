"""A nest executed loop by loop, with one held tile for each operand: slow and obvious."""

from collections.abc import Iterator, Sequence

from isamap.model.nest import Operand


def tiles_in_order(
    extents: Sequence[int], loops: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the box (begin and end of each dimension) of every innermost trip, in order."""
    boxes = [tuple((0, extent) for extent in extents)]
    for dim, step in loops:
        boxes = [
            (*box[:dim], (begin, min(begin + step, box[dim][1])), *box[dim + 1 :])
            for box in boxes
            for begin in range(box[dim][0], box[dim][1], step)
        ]
    yield from boxes


def elements(operand: Operand, box: Sequence[tuple[int, int]]) -> int:
    """Count the elements that a box touches, by touching them."""
    count = 1
    for group in operand.groups:
        values = {0}
        for dim, coefficient in group:
            values = {v + coefficient * i for v in values for i in range(*box[dim])}
        count *= len(values)
    return count


def fetched(operand: Operand, extents: Sequence[int], loops: Sequence[tuple[int, int]]) -> int:
    """Return the elements that are fetched when a tile stays until another one is needed."""
    total, held = 0, None
    for box in tiles_in_order(extents, loops):
        needed = tuple(box[dim] for dim in sorted(operand.dims))
        if needed != held:
            total += elements(operand, box)
            held = needed
    return total
