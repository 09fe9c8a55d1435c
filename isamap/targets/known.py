"""What is recorded of the tools that a description's code is built and run with."""

from collections.abc import Iterable, Sequence

from isamap.hw.accelerator import Accelerator, Entry
from isamap.hw.faults import Fault, recorded_faults
from isamap.hw.needed import Needed, needed
from isamap.hw.parameters import split_name


def known_faults(
    entry: Entry, machine: Accelerator, tools: Sequence[Needed], faults: Iterable[Fault]
) -> list[Fault]:
    """Return those of ``faults`` that the versions at hand of ``tools`` have in an instruction.

    What is recorded of a description holds for those that extend it, too, unless they say another
    word about the instruction.
    """
    versions = {tool.name: tool.version or "" for tool in tools}
    return [
        fault
        for fault in faults
        if _is_recorded_of(fault.target, entry, machine)
        and fault.instruction in (entry.name, entry.instruction.generic)
        and fault.tool in versions
        and fault.is_of(versions[fault.tool])
    ]


def _is_recorded_of(target: str, entry: Entry, machine: Accelerator) -> bool:
    """Return whether what is recorded of a description is about an instruction of a machine."""
    files = {split_name(machine.name)[0]: machine.path, **machine.bases}
    if target not in files:
        return False
    nearer = list(files.values())[: list(files).index(target)]
    return entry.home not in nearer


def recorded_of(machine: Accelerator, names: Iterable[str]) -> str:
    """Return what is recorded of the instructions called ``names`` here, '' if nothing is."""
    tools = needed(machine)
    return "; ".join(
        f"{fault.tool} is known to compute {name} wrongly: {fault.what}"
        for name in dict.fromkeys(names)
        for fault in known_faults(machine.entry(name), machine, tools, recorded_faults())
    )
