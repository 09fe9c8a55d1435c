"""How many calls of an instruction do anything, where what an access reads may be padding."""

from collections.abc import Mapping

from isamap.ir.index import const
from isamap.ir.nodes import Buffer
from isamap.ir.often import Often
from isamap.ir.statements import accesses
from isamap.mapping.fragments.layout import direct
from isamap.mapping.laws.killing import is_nothing
from isamap.mapping.matching import Mapping as LegalMapping


def useful_share(
    mapping: LegalMapping, buffers: Mapping[str, Buffer], values: Mapping[str, int], unknown: float
) -> float:
    """Return the share of the calls without which some result would be another one, 0 to 1.

    The others take nothing but padding of some access, which adds nothing.  ``values`` are the
    extents of the variables, and the symbols.  What is not known of a condition counts as
    ``unknown``: 0 for what takes at least so long, 1 for what may take as long.
    """
    statement = mapping.matching.statement
    extents = {v.name: const(values[v.name]) for v in statement.variables}
    conditions = []
    for access in dict.fromkeys(accesses(statement.value)):
        buffer = buffers[access.buffer]
        if buffer.pad is None or not is_nothing(
            statement.value, statement.reduction, access, buffer.pad, finite=True
        ):
            continue
        for guard in direct(buffer, access, extents, buffers).guards:
            if not any(mapping.tile.get(name, 1) > 1 for name in guard.names):
                symbols = {n: values.get(n, 1) for n in guard.names - extents.keys()}
                conditions.append(guard.substitute(symbols))
    loops = [(name, float(max(1, values[name]))) for name in extents]
    return Often().share(tuple(conditions), loops, unknown)
