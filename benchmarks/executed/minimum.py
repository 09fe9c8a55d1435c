"""The fewest instructions of a product, from the description alone.

Of the block of a product: the calls of its instruction, a load (or what else the description has)
of each fragment, and nothing for loops and addresses.  All blocks are tried that fit the registers,
with the results, the fragments of one factor and one fragment of the other; so are all mappings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from executed.products import DEPTHS, product_text
from isamap.hw.accelerator import Accelerator, Unit
from isamap.ir.nodes import Kernel
from isamap.mapping.compose.composed import Composed
from isamap.mapping.find import enumerate_with
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Mapping
from isamap.mapping.needles.needles import needles
from isamap.mapping.tiles.shared import brought
from isamap.schedule.shape import Shape, read_shape
from isamap.schedule.treatment import KINDS, Shared, Treatment, Treatments, accesses_of
from isamap.text.load import parse_module

_EXTENT = 480
_MAPPINGS = 64
_KINDS = tuple(kind for kind in KINDS if kind != "repeated")
"""How factors may lie: packed copies have each element once, so that they are no larger."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """Instructions per multiply-accumulate, and the rows and columns of the block with so few."""

    instructions: float
    rows: int
    columns: int


def fewest(machine: Accelerator, types: str, instruction: str) -> Fewest:
    """Return the fewest instructions of a product that is computed with ``instruction``."""
    counted = _by_length(machine)
    text = product_text(types, _EXTENT, _EXTENT, DEPTHS[0])
    kernel = parse_module(text).kernels[0]
    producers, shared = Producers(counted), Shared()
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    found = [
        best
        for mapping in _mappings(counted, kernel, instruction)
        for best in _blocks(
            Treatments(mapping, producers, buffers, kernel.permissions, shared), counted
        )
    ]
    return min(found, key=lambda one: one.instructions)


def _by_length(machine: Accelerator) -> Accelerator:
    """Return the machine with instructions that cost what they are long."""
    entries = tuple(
        replace(
            entry,
            throughput=Fraction(entry.length),
            latency=Fraction(0),
            units={"instructions": Fraction(entry.length)},
        )
        for entry in machine.entries
        # Those of a part of a vector are longer than descriptions say.
        if not any(extent.range for extent in entry.instruction.extents)
    )
    return replace(machine, entries=entries, units=(Unit("instructions"),))


def _mappings(machine: Accelerator, kernel: Kernel, name: str) -> list[Mapping]:
    every = enumerate_with(kernel, 0, needles(machine), name.split(" + ")[-1]).mappings
    own = [mapping for mapping in every if mapping.matching.needle.name == name]
    whole = [m for m in own if m.utilisation == 1]
    return (whole or own)[:_MAPPINGS]


def _blocks(treatments: Treatments, machine: Accelerator) -> Iterator[Fewest]:
    """Yield the best block of a mapping, nothing if an operand cannot be brought to it."""
    shape = read_shape(treatments.mapping)
    costs: dict[str, float] = {}
    for operand, _ in brought(treatments.mapping.matching):
        kinds = [kind for kind in _KINDS if not _repeats(treatments, shape, operand, kind)]
        known = [treatments.whole_cost(operand, kind) for kind in kinds]
        if all(cost is None for cost in known):
            return
        costs[operand] = min(cost for cost in known if cost is not None)
    best: Fewest | None = None
    length = float(treatments.mapping.matching.needle.entry.throughput)
    for rows in range(1, 65):
        for columns in range(1, 65):
            counts = {o: _fragments(shape, o, rows, columns) for o in costs}
            if not _fits(shape, machine, rows * columns, counts):
                break
            loads = sum(costs[operand] * count for operand, count in counts.items())
            calls = rows * columns
            each = (calls * length + loads) / (calls * prod(shape.tile.values()))
            if best is None or each < best.instructions:
                best = Fewest(each, rows * shape.tile["i"], columns * shape.tile["j"])
    if best is not None:
        yield best


def _repeats(treatments: Treatments, shape: Shape, operand: str, kind: Treatment) -> bool:
    """Return whether a packed copy has elements of an operand more than once in a fragment."""
    if kind != "packed":
        return False
    used = frozenset().union(*(names for _, names, _ in shape.reads[operand]))
    elements = prod(extent for variable, extent in shape.tile.items() if variable in used)
    found = (
        treatments.reference(operand, access, kind)
        for access in accesses_of(treatments.mapping.matching, operand)
    )
    return any(r is not None and r.dense is not None and prod(r.laid_out) > elements for r in found)


def _fragments(shape: Shape, operand: str, rows: int, columns: int) -> int:
    """Return how many fragments of an operand a block has at one iteration of the inner loop."""
    used = frozenset().union(*(names for _, names, _ in shape.reads[operand]))
    return (rows if "i" in used else 1) * (columns if "j" in used else 1)


def _fits(shape: Shape, machine: Accelerator, results: int, counts: dict[str, int]) -> bool:
    """Return whether the registers hold the results of a block, and what it needs at a time."""
    needle = shape.mapping.matching.needle
    taken: dict[str, int] = {}

    def take(name: str, number: int) -> None:
        storage = machine.storage(name)
        if storage.kind == "registers":
            file, each = machine.register_file(storage)
            taken[file.name] = taken.get(file.name, 0) + number * each

    take(needle.entry.storage(needle.target.buffer), results)
    streamed = max(counts, key=lambda operand: counts[operand], default="")
    for operand, number in counts.items():
        take(needle.operand(operand).storage or "", 1 if operand == streamed else number)
    for operand in needle.entry.scratch if isinstance(needle.entry, Composed) else ():
        take(operand.storage or "", 1)
    return all(number <= (machine.storage(f).count or number) for f, number in taken.items())
