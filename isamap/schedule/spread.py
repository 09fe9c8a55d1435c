"""How far apart in memory the elements of fragments lie."""

from collections.abc import Mapping as Dict

from isamap.ir.nodes import Buffer
from isamap.mapping.fragments.layout import direct
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.shape import ASSUMED_EXTENT
from isamap.schedule.treatment import PACKED, inputs, numeric


def spread(own: StatementSchedule, buffers: Dict[str, Buffer]) -> int:
    """Return the bytes from the first to the last element of a fragment, of all operands in sum.

    What is packed lies in one piece.  Of schedules that are estimated alike the one with the least
    spread touches the fewest pages, and the fewest lines that fall into one set of a cache.
    """
    extents = {v.name: v.extent for v in own.mapping.matching.statement.variables}
    found = 0
    for (_, access), treatment in zip(inputs(own.mapping), own.operands, strict=False):
        if treatment in PACKED:
            continue
        offset = direct(buffers[access.buffer], access, extents, buffers).offset
        for v, tile in own.mapping.tile.items():
            if tile > 1 and v in offset.names and offset.is_linear_in([v]):
                pitch = abs(numeric(offset.coefficient(v), ASSUMED_EXTENT))
                found += (tile - 1) * pitch * access.dtype.bytes
    return found
