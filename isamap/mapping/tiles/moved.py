"""What stores in place of a mapping's own instruction, where that only moves what is in a register.

A statement that copies is mapped to one store of its type; a masked one, or one with pitches, takes
the same register where that one does not fit.
"""

from isamap.mapping.fragments.fragment import Reference
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.steps import Store
from isamap.mapping.matching import Mapping
from isamap.mapping.tiles.operand import fragment


def moved_store(
    producers: Producers, mapping: Mapping, partial: frozenset[str], place: Reference
) -> Store | None:
    """Return the cheapest store of what a mapping's instruction moves; None if it computes.

    ``partial`` are the variables of which fewer iterations are alive than their tiles have.
    """
    needle = mapping.matching.needle
    if needle.moved is None or producers.is_memory(needle.entry.storage(needle.moved)):
        return None
    taken = fragment(mapping, needle.moved, partial, None)
    return producers.store(taken, place) if taken is not None else None
