"""How operands come to a register block: what caches and memory make of one."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass

from isamap.hw.accelerator import Accelerator
from isamap.schedule.crowded import Crowding, crowding
from isamap.schedule.flows import Flow, flows
from isamap.schedule.schedule import Treatment
from isamap.schedule.shape import Shape
from isamap.schedule.streams import Walks, walks
from isamap.schedule.treatment import Treatments


@dataclass(frozen=True, slots=True)
class Supply:
    """Lines that push each other out, pages walked side by side, and what comes from far away."""

    crowd: Crowding
    walks: Walks
    far: tuple[Flow, ...]

    def paced(
        self, own: float, shape: Shape, block: Dict[str, int], fragments: Dict[str, int]
    ) -> float:
        """Return the cycles a call, where a call takes ``own`` once all is near.

        A block has so many ``fragments`` of each operand.
        """
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
    far = flows(shape, chosen, accelerator, treatments, order)
    crowd = crowding(shape, chosen, accelerator, treatments)
    return Supply(crowd, walks(shape, chosen, accelerator, treatments, far), far)
