"""Variables of which an access sees a sum only: ``p`` and ``r`` of ``X[2*p + r, c]``.

What is packed for such an access is packed once for each value of the sum.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import gcd

from isamap.ir.box import Extents
from isamap.ir.index import Index, product, total, var
from isamap.ir.nodes import Access

ASSUMED_EXTENT = 256
"""What a symbolic extent is taken for where it is judged whether a sum has fewer values."""


@dataclass(frozen=True, slots=True)
class Join:
    """A form of several variables that is 0 and more, less than ``extent``, and its name.

    The name is no identifier, so that nothing else has it: ``p+r``.
    """

    name: str
    form: Index
    extent: Index


def joins(
    access: Access, free: AbstractSet[str], extents: Extents, whole: Extents
) -> tuple[Join, ...]:
    """Return the sums through which alone an access sees several of the ``free`` variables.

    Only those that have fewer values than the variables have together in the ``whole`` statement:
    a piece of it, which may be a tail, has the sums that all others have.
    """
    found: list[Join] = []
    for d, index in enumerate(access.indices):
        others = {v for n, other in enumerate(access.indices) if n != d for v in other.names}
        own = sorted((index.names & free) - others)
        if len(own) < 2 or index.reads or not index.is_linear_in(own):
            continue
        factors = {v: index.coefficient(v).constant for v in own}
        known = {v: factor for v, factor in factors.items() if factor is not None}
        if len(known) < len(own):
            continue
        step = gcd(*known.values())
        steps = {v: factor // step for v, factor in known.items()}
        reach = total((extents[v] - 1) * abs(step) for v, step in steps.items())
        low = total((extents[v] - 1) * step for v, step in steps.items() if step < 0)
        form = total(var(v) * step for v, step in steps.items()) - low
        all_ = total((whole[v] - 1) * abs(step) for v, step in steps.items()) + 1
        if _size(all_) < _size(product(whole[v] for v in own)):
            found.append(Join("+".join(own), form, reach + 1))
    return tuple(found)


def offset_at(offset: Index, form: Index, value: Index) -> Index:
    """Return an offset, which is linear in a form, where the form has a value."""
    names = sorted(v for v in form.names if form.coefficient(v).constant)
    begin = dict.fromkeys(names, 0)
    own = form.coefficient(names[0]).constant or 1
    factor = offset.coefficient(names[0])
    step = factor // own if own > 0 else -factor // -own
    return offset.substitute(begin) + (value - form.substitute(begin)) * step


def _size(index: Index) -> int:
    return int(index.evaluate(dict.fromkeys(index.names, ASSUMED_EXTENT)))
