"""The fewest instructions of a product, from the description alone.

Of the block of a product: the calls of its instruction, a load (or what else the description has)
of each fragment, what computes operands of it, and nothing for loops and addresses.  All blocks are
tried that fit the registers, with the results, the fragments of one factor, one fragment of the
other and what the C of instructions takes besides; so are all mappings.  Packed copies have each
element once where that is possible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from executed.made import Part, parts
from isamap.hw.accelerator import Accelerator, Unit
from isamap.ir.nodes import Kernel
from isamap.mapping.compose.composed import Composed
from isamap.mapping.find import enumerate_with
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.matching import Mapping
from isamap.mapping.needles.needles import needles
from isamap.mapping.tiles.shared import brought
from isamap.schedule.shape import Shape, read_shape
from isamap.schedule.treatment import KINDS, PACKED, Shared, Treatment, Treatments, accesses_of

_MAPPINGS = 64


@dataclass(frozen=True, slots=True)
class Fewest:
    """Instructions per multiply-accumulate, and the rows and columns of the block with so few."""

    instructions: float
    rows: int
    columns: int


def fewest(machine: Accelerator, kernel: Kernel, statement: int, instruction: str) -> Fewest:
    """Return the fewest instructions of a product that is computed with ``instruction``.

    ``statement`` is the number of the kernel's statement that multiplies; its variables are i, j
    and k, and its extents are numbers.
    """
    counted = _by_length(machine)
    producers, shared = producers_of(counted), Shared()
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    found: list[Fewest] = []
    for once in (True, False):
        for mapping in _mappings(counted, kernel, statement, instruction) if not found else ():
            ways = Treatments(mapping, producers, buffers, kernel.permissions, shared)
            found += _blocks(ways, counted, once)
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


def _mappings(machine: Accelerator, kernel: Kernel, statement: int, name: str) -> list[Mapping]:
    every = enumerate_with(kernel, statement, needles(machine), name.split(" + ")[-1]).mappings
    own = [mapping for mapping in every if mapping.matching.needle.name == name]
    whole = [m for m in own if m.utilisation == 1]
    return (whole or own)[:_MAPPINGS]


def _blocks(treatments: Treatments, machine: Accelerator, once: bool) -> Iterator[Fewest]:
    """Yield the best block of a mapping, nothing if an operand cannot be brought to it.

    With ``once`` packed copies have each element once.
    """
    shape = read_shape(treatments.mapping)
    made: list[Part] = []
    for operand, _ in brought(treatments.mapping.matching):
        kinds = [k for k in KINDS if not once or not _repeats(treatments, shape, operand, k)]
        ways = [way for kind in kinds if (way := parts(treatments, operand, kind)) is not None]
        if not ways:
            return
        made += min(ways, key=lambda way: sum(part.cost for part in way))
    best: Fewest | None = None
    length = float(treatments.mapping.matching.needle.entry.throughput)
    for rows in range(1, 65):
        for columns in range(1, 65):
            if not _fits(shape, machine, rows, columns, made):
                break
            calls = rows * columns
            brings = sum(part.cost * _times(part, rows, columns) for part in made)
            each = (calls * length + brings) / (calls * prod(shape.tile.values()))
            if best is None or each < best.instructions:
                best = Fewest(each, rows * shape.tile["i"], columns * shape.tile["j"])
    if best is not None:
        yield best


def _times(part: Part, rows: int, columns: int) -> int:
    """Return how many fragments of a kind a block has at one iteration of the inner loop."""
    return (rows if "i" in part.names else 1) * (columns if "j" in part.names else 1)


def _repeats(treatments: Treatments, shape: Shape, operand: str, kind: Treatment) -> bool:
    """Return whether a packed copy has elements of an operand more than once in a fragment."""
    if kind not in PACKED:
        return False
    used = frozenset().union(*(names for _, names, _ in shape.reads[operand]))
    elements = prod(extent for variable, extent in shape.tile.items() if variable in used)
    found = (
        treatments.reference(operand, access, kind)
        for access in accesses_of(treatments.mapping.matching, operand)
    )
    return any(r is not None and r.dense is not None and prod(r.laid_out) > elements for r in found)


def _fits(
    shape: Shape, machine: Accelerator, rows: int, columns: int, made: Sequence[Part]
) -> bool:
    """Return whether the registers hold the results of a block, and what it needs at a time."""
    needle = shape.mapping.matching.needle
    taken: dict[str, int] = {}

    def take(name: str, number: int) -> None:
        storage = machine.storage(name)
        if storage.kind == "registers":
            file, each = machine.register_file(storage)
            taken[file.name] = taken.get(file.name, 0) + number * each

    take(needle.entry.storage(needle.target.buffer), rows * columns)
    kept = [part for part in made if part.storage is not None]
    streamed = max(kept, key=lambda part: _times(part, rows, columns), default=None)
    for part in kept:
        # What differs from call to call is there for one of them.
        once = part is streamed or {"i", "j"} <= part.names
        take(part.storage or "", 1 if once else _times(part, rows, columns))
    for operand in needle.entry.scratch if isinstance(needle.entry, Composed) else ():
        take(operand.storage or "", 1)
    for name, number in machine.besides((needle.entry, *(part.entry for part in made))).items():
        taken[name] = taken.get(name, 0) + number
    return all(number <= (machine.storage(f).count or number) for f, number in taken.items())
