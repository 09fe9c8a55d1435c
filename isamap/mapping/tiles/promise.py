"""How much of an instruction a matching may use, roughly: to choose among very many matchings."""

from isamap.mapping.axes.rows import row
from isamap.mapping.matching import Matching


def promise(matching: Matching) -> float:
    """Return about how many iterations a call does, without a look for the best tile.

    Each inner variable, those on few axes first, takes as many positions of its axes as those
    before it leave.  An extent that is a symbol takes what there is.
    """
    inner = matching.inner
    known = {v.name: v.extent.constant for v in matching.statement.variables}
    left = {axis.name: axis.extent for axis in matching.needle.axes}
    on: dict[str, list[tuple[str, int]]] = {v: [] for v in inner}
    for placement in matching.placements:
        for name, factor in zip(inner, row(placement.form, inner), strict=True):
            if factor:
                on[name].append((placement.axis, abs(factor)))
    done = 1.0
    for name in sorted(inner, key=lambda v: len(on[v])):
        room = min(((left[axis] - 1) // factor + 1 for axis, factor in on[name]), default=1)
        extent = known[name]
        tile = room if extent is None else min(room, extent)
        done *= tile if extent is None else extent / -(-extent // tile)
        for axis, factor in on[name]:
            left[axis] = max(1, left[axis] // (factor * (tile - 1) + 1))
    return done
