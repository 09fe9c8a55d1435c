"""What a product executes, beside the fewest instructions that there could be."""

import re
from dataclasses import dataclass

from executed.minimum import Fewest, fewest
from executed.products import Product, of_blocks, of_many, products
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.pipeline.result import Result
from isamap.targets.count import Counted, count_instructions, on_stack, spills, way_to_count

LIMIT = 1.15
"""Instructions beyond the fewest that loops and addresses may take, as a factor."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A product with the instructions per multiply-accumulate that it executes, and the fewest.

    ``executed`` is None where nothing counts them; ``spilled`` is what the compiler tells of the
    inner loop, None if it tells nothing.  ``deep`` is what the longer of two runs executed.
    """

    product: Product
    executed: float | None
    fewest: Fewest
    spilled: str | None
    deep: Counted | None

    @property
    def ratio(self) -> float | None:
        """How many times the fewest instructions are executed."""
        return None if self.executed is None else self.executed / self.fewest.instructions

    @property
    def good(self) -> bool:
        """Whether it is as it should be."""
        return not self.spilled and (self.ratio is None or self.ratio <= LIMIT)


def measure(machine: Accelerator, only: str | None = None) -> list[Measured]:
    """Count the instructions of each product of a machine, or of those of the types ``only``."""
    return [_measured(machine, product) for product in products(machine, only)]


def _measured(machine: Accelerator, product: Product) -> Measured:
    least = fewest(machine, *of_many(machine, product), product.instruction)
    if way_to_count(machine) is None:
        return Measured(product, None, least, None, None)
    blocks, results = of_blocks(machine, product)
    source = results[0].source
    told = spills(source, machine) if source is not None else None
    counts = [_count(machine, result) for result in results]
    first, last = counts[0], counts[-1]
    told = on_stack(last, machine) if told is None else told
    begun, ended = product.depths
    work = blocks * product.rows * product.columns * (ended - begun)
    executed = (last.instructions - first.instructions) / work
    return Measured(product, executed, least, told, last)


def _count(machine: Accelerator, result: Result) -> Counted:
    assert result.source is not None, "what is run has C"
    return count_instructions(result.source, machine, random_inputs(result.kernel, {}, 0))


def shortly(told: str | None) -> str:
    """Return what a compiler tells of spills in a few words."""
    if told is None:
        return "not told"
    kinds = re.findall(r"(\d+) ((?:folded )?(?:spills or reloads|spills|reloads))", told)
    return ", ".join(f"{count} {kind}" for count, kind in kinds) or "none"


def profile(counted: Counted) -> list[str]:
    """Return the inner loop: what is executed at least half as often as anything else."""
    most = max(step.times for step in counted.steps)
    return [
        f"    {step.address:x}  {step.text}" for step in counted.steps if 2 * step.times >= most
    ]
