"""Reductions that are cut outside the results, so that what is passed again stays in a cache."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from math import prod

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access
from isamap.schedule.flows import PASSES, Flow
from isamap.schedule.shape import Shape
from isamap.schedule.treatment import inputs


def cut(
    shape: Shape, block: Dict[str, int], accelerator: Accelerator, far: Sequence[Flow]
) -> dict[str, int]:
    """Return the reduction level outside the results that keeps a panel in the second cache.

    Of an input from beyond that cache that is passed several times it keeps the next panel, too,
    which comes meanwhile, and all of the other inputs that is read beside it.  What is brought to
    scratchpads passes no cache.
    """
    capacity = accelerator.second_cache
    if not shape.reductions or not capacity or _on_scratchpads(shape, accelerator):
        return {}
    steps = {v: block[v] * shape.tile[v] for v in shape.extents}
    whole = {v: shape.extents[v] for v in shape.reductions}
    accesses = [access for _, access in inputs(shape.mapping)]
    panels = [touched(access, steps | whole) for access in accesses]
    panel = max(panels, default=0)
    room = 0.6 * capacity
    for flow in far:
        if accelerator.prefetched is not None and 1 < flow.passes(shape, block) <= PASSES:
            passed = steps | whole | {v: shape.extents[v] for v in flow.reuse}
            beside = [touched(a, passed) for n, a in enumerate(accesses) if n != flow.access]
            panel = max(panel, 2 * panels[flow.access] + sum(beside))
            room = 0.75 * capacity
    longest = max(shape.reductions, key=lambda v: shape.extents[v])
    if panel <= room or shape.extents[longest] < 512:
        return {}
    pieces = -(-panel // int(0.4 * capacity))
    step = -(-shape.extents[longest] // pieces)
    unit = steps[longest]
    step = max(unit, -(-step // unit) * unit)
    return {longest: step} if max(128, unit + 1) <= step < shape.extents[longest] else {}


def _on_scratchpads(shape: Shape, accelerator: Accelerator) -> bool:
    """Return whether an instruction takes all that it reads from scratchpads."""
    needle = shape.mapping.matching.needle
    taken = {needle.operand(name).storage or "" for name, _ in inputs(shape.mapping)}
    return all(accelerator.storage(name).kind == "scratchpad" for name in taken)


def touched(access: Access, counts: Dict[str, int]) -> int:
    """Return the bytes that an access has of its buffer in so many iterations of each variable."""
    spans = (
        1
        + sum(
            abs(index.coefficient(v).constant or 0) * (counts[v] - 1)
            for v in index.names & counts.keys()
        )
        for index in access.indices
    )
    return prod(spans) * access.dtype.bytes
