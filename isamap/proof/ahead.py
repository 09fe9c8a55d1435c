"""What runs ahead of the calls holds for all of them: it depends on constants, and none changes it.

This reads the two bodies as data, by what their instructions touch; it shares no code with the
lowering that took them apart.
"""

from collections.abc import Iterator
from dataclasses import replace

from isamap.hw.accelerator import Accelerator
from isamap.lower.nodes import LoweredKernel
from isamap.proof.touched import touches
from isamap.proof.walk import sites

_GIVEN = frozenset({"const", "table"})
_OWN = frozenset({"local", "prepared"})


def faults_ahead(machine: Accelerator, lowered: LoweredKernel) -> tuple[str, ...]:
    """Return what is wrong between the two bodies of a lowered kernel."""
    roles = {array.name: array.role for array in lowered.arrays}
    kept = {name for name, role in roles.items() if role == "prepared"}
    read, written = _touched(machine, replace(lowered, body=(), prepare=lowered.prepare))
    read_later, written_later = _touched(machine, replace(lowered, prepare=()))

    def told() -> Iterator[str]:
        for name in sorted(read):
            if roles[name] not in _GIVEN | _OWN:
                yield f"{name} is read ahead, and another one in each call"
        for name in sorted(written):
            if roles[name] not in _OWN:
                yield f"{name} is written ahead, and belongs to the caller"
        for name in sorted(kept & written_later):
            yield f"{name} is prepared, and written by a call"
        for name in sorted(kept - written):
            yield f"{name} is to be prepared, and not written"
        for name in sorted((written & read_later) - kept - written_later):
            yield f"{name} is written ahead, and lost"

    return tuple(told())


def _touched(machine: Accelerator, lowered: LoweredKernel) -> tuple[set[str], set[str]]:
    """Return the arrays that the nodes of a lowered kernel read, and those that they write."""
    entries = {entry.name: entry for entry in machine.entries}
    read: set[str] = set()
    written: set[str] = set()
    for site in sites(lowered):
        for touch in touches(site, entries):
            (written if touch.writes else read).add(touch.array)
        for _, count in site.context.counters:
            read |= {held.buffer for held in count.reads}
        for condition in (*site.context.conditions, *sum(site.context.failed, ())):
            read |= {held.buffer for held in condition.reads}
    return read, written
