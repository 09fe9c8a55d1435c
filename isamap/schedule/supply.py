"""How operands come to a register block: what makes fragments, and what caches and memory do."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from isamap.hw.accelerator import Accelerator
from isamap.schedule.crowded import Crowding, crowding
from isamap.schedule.flows import Flow, driven_out, flows
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import Shape
from isamap.schedule.streams import Walks, walks
from isamap.schedule.treatment import Treatments, by_operand


@dataclass(frozen=True, slots=True)
class Supply:
    """Cycles of making a fragment of each operand, in all and by unit, and in how many machine
    instructions; lines that push each other out, pages walked side by side, and what comes from
    far away.  ``besides`` are the registers of each file that the C of instructions takes, that of
    the calls included, beside those of operands.

    Where nothing is reduced, what streams by drives out of the first cache what is read ``again``
    for each row.
    """

    costs: Dict[str, float]
    busy: Dict[str, Dict[str, float]]
    instructions: Dict[str, int]
    besides: Dict[str, int]
    crowd: Crowding
    walks: Walks
    far: tuple[Flow, ...]
    again: tuple[Flow, ...] = ()

    def busiest(self, own: Dict[str, Fraction], calls: int, fragments: Dict[str, int]) -> float:
        """Return the cycles a call for which units are busy that a call keeps busy for ``own``.

        A block has so many ``calls``, and ``fragments`` of each operand.
        """
        times = []
        for unit, cycles in own.items():
            made = (count * self.busy[o].get(unit, 0.0) for o, count in fragments.items())
            times.append(float(cycles) + sum(made) / calls)
        return max(times)

    def paced(
        self, own: float, shape: Shape, block: Dict[str, int], fragments: Dict[str, int]
    ) -> float:
        """Return the cycles a call, where a call takes ``own`` once all is near.

        A block has so many ``fragments`` of each operand.
        """
        if not shape.reductions:
            streams = (*self.far, *self.again)
            return max(own, sum(f.coming(shape, block, fragments[f.operand]) for f in streams))
        times = (flow.paced(own, shape, block, fragments[flow.operand]) for flow in self.far)
        return max(times, default=own)


def supply(
    shape: Shape,
    chosen: Sequence[Treatment],
    accelerator: Accelerator,
    treatments: Treatments,
    order: Sequence[str],
) -> Supply:
    """Return how the operands of a mapping come to a block.

    ``order`` are the statement's outputs as their loops lie, outermost first.
    """
    kinds = by_operand(shape.mapping, chosen)
    costs = {operand: treatments.mean_cost(operand, own) for operand, own in kinds.items()}
    busy = {operand: treatments.busy(operand, own) for operand, own in kinds.items()}
    made = {operand: treatments.instructions(operand, own) for operand, own in kinds.items()}
    making = [entry for o, own in kinds.items() for entry in treatments.entries(o, own)]
    besides = accelerator.besides((shape.mapping.matching.needle.entry, *making))
    far = flows(shape, chosen, accelerator, treatments, order)
    streaming = far and not shape.reductions
    again = driven_out(shape, chosen, accelerator, treatments) if streaming else ()
    crowd = crowding(shape, chosen, accelerator, treatments)
    walked = walks(shape, chosen, accelerator, treatments, far)
    return Supply(costs, busy, made, besides, crowd, walked, far, again)
