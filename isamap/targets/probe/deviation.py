"""What a tool is recorded to compute in place of what an instruction is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from isamap.diagnostics import Source
from isamap.hw.accelerator import Entry
from isamap.hw.faults import Fault
from isamap.ir.nodes import Instruction
from isamap.ir.printer import print_instruction
from isamap.ir.statements import bind_lengths
from isamap.text.load import parse_instructions


@dataclass(frozen=True, slots=True)
class Deviation:
    """The instruction as it is executed, and how far its results may be off besides."""

    entry: Entry
    off: float = 0.0


Deviations = Mapping[str, Deviation]
"""Those of the instructions of a description, by name."""


def deviation_of(entry: Entry, faults: Iterable[Fault]) -> Deviation | None:
    """Return what is recorded of an instruction, None if nothing exact is.

    TextError if the statements of a fault are none for its operands.
    """
    exact = [fault for fault in faults if fault.is_exact]
    if not exact:
        return None
    for fault in exact:
        if fault.computes is not None:
            entry = replace(entry, instruction=_instead(entry, fault.computes))
    return Deviation(entry, sum(fault.within or 0.0 for fault in exact))


def _instead(entry: Entry, body: str) -> Instruction:
    instruction = replace(entry.instruction, types=())
    text = print_instruction(instruction, body)
    storages = frozenset(o.storage for o in instruction.places if o.storage is not None)
    (found,) = parse_instructions(Source(f"the faults of {entry.name}", text), storages)
    return bind_lengths(found)
