"""What makes the operands of a block, and how often: for each of its rows, columns, or calls."""

from collections.abc import Iterator
from dataclasses import dataclass

from isamap.hw.accelerator import Entry
from isamap.ir.nodes import Access
from isamap.mapping.fragments.fragment import Reference
from isamap.mapping.fragments.steps import FromMemory, FromRegister, Source, Step
from isamap.mapping.tiles.operand import dense_fragment, fragment
from isamap.mapping.tiles.shared import accesses_of
from isamap.schedule.treatment import Treatment, Treatments

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Part:
    """Instructions that make a fragment, as many as ``cost`` in all.

    There is one fragment for all iterations that differ in other variables than ``names``.
    ``storage`` is where it is kept until it is used, None if what uses it is as often.  ``entry``
    is the instruction that makes it of others.
    """

    names: Names
    cost: float
    storage: str | None
    entry: Entry


def parts(treatments: Treatments, operand: str, kind: Treatment) -> tuple[Part, ...] | None:
    """Return what makes an operand under a treatment, nothing if it is read from where it lies.

    None if nothing makes it.
    """
    if treatments.whole_cost(operand, kind) is None:
        return None
    mapping = treatments.mapping
    filler = treatments.fillers.get(operand)
    wanted = fragment(mapping, operand, frozenset(), filler) or dense_fragment(mapping, operand)
    assert wanted is not None, "what has a cost has a fragment"
    producers = treatments.producers
    if producers.is_memory(wanted.storage) or producers.is_immediate(wanted.storage):
        return ()
    references: dict[Access, Reference] = {}
    for access in accesses_of(mapping.matching, operand):
        reference = treatments.reference(operand, access, kind)
        assert reference is not None, "what has a cost is found"
        references[access] = reference
    step = producers.make(mapping.matching.bound(operand), wanted, references)
    assert isinstance(step, Step), "no operand is in a register before"
    return tuple(_parts(step, None))


def _parts(step: Step, above: Names | None) -> Iterator[Part]:
    names = _names(step)
    before = [source for _, source in step.inputs if isinstance(source, Step | FromRegister)]
    own = float(step.cost - sum(source.cost for source in before))
    yield Part(names, own, None if names == above else step.fragment.storage, step.entry)
    for _, source in step.inputs:
        if isinstance(source, Step):
            yield from _parts(source, names)


def _names(source: Source) -> Names:
    """Return the variables on which what a source gives depends."""
    if isinstance(source, Step):
        return frozenset().union(*(_names(below) for _, below in source.inputs))
    return source.reference.offset.names if isinstance(source, FromMemory) else frozenset()
