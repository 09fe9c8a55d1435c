"""Loops that compilers of C vectorize: a machine's instructions of one element are C, and where no
other ones compute a statement, what the compiler makes of a plain loop is the only vector code.
"""

from collections.abc import Sequence

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access
from isamap.mapping.compose.composed import Composed
from isamap.mapping.fragments.layout import direct
from isamap.mapping.tiles.shared import brought
from isamap.schedule.shape import Shape
from isamap.schedule.treatment import Treatments, inputs

SHORT = 15
"""Iterations of a loop that vectors do not make shorter."""

FUNCTION = 12
"""Cycles of an instruction of one element above which its C calls a function, one by one."""

NEAR = 4
"""Elements from one iteration to the next at most: those further apart are gathered."""


def vectorizable(
    shape: Shape, outputs: Sequence[str], treatments: Treatments, accelerator: Accelerator
) -> bool:
    """Return whether a compiler vectorizes a statement's innermost loop if its block is one call.

    It does where ``outputs``, as loops lie, end in one along which each iteration accesses what
    lies beside what the one before does, or the same again, and nothing is added up.  A block of
    several calls would be straight code, which compilers turn into vectors seldom.
    """
    matching, order = shape.mapping.matching, list(outputs)
    needle, entry = matching.needle, matching.needle.entry
    parts = [part.entry for part in entry.parts] if isinstance(entry, Composed) else [entry]
    own = [needle.target.buffer, *(operand for operand, _ in brought(matching))]
    single = all(not needle.operand(name).shape for name in own)
    vector = accelerator.toolchain.vector if accelerator.toolchain is not None else 0
    if not vector or not single or shape.reductions or not order:
        return False
    if any(part.throughput > FUNCTION for part in parts):
        return False
    along, extents = order[-1], {v.name: v.extent for v in matching.statement.variables}

    def stays_within(access: Access, most: int) -> bool:
        buffers = treatments.buffers
        offset = direct(buffers[access.buffer], access, extents, buffers).offset
        if not offset.is_linear_in({along}):
            return False
        return offset.coefficient(along).constant in range(-most, most + 1)

    return (
        shape.extents[along] > SHORT
        and stays_within(matching.statement.target, 1)
        and all(stays_within(access, NEAR) for _, access in inputs(shape.mapping))
    )
