"""How long caches and memory take to deliver what a kernel asks of them, and what that costs it."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from isamap.hw.accelerator import Accelerator, Storage
from isamap.lower.reuse import HELD, OUTSIDE, pushed_out
from isamap.lower.traffic import Coming, Traffic
from isamap.schedule.walk import cycles_a_byte

RESIDENT = 1 / 4
"""The part of a cache that one statement's data may take to be there when it begins: those of the
other statements, and of others who share the cache, want the rest.
"""

KEPT = HELD
"""The part of a core's own cache that data may take to be there from the last call; of more, ever
more is pushed out before it is read again, until none is left where they fill all of it.
"""

SHARED = 1 / 8
"""The part of the last cache, which other cores and programs have, too."""

TOGETHER = 0.1
"""Computing and memories are in each other's way: this part of the shorter comes on top."""

ALONE = 1.5
"""How much longer lines take from the second cache which nobody fetches ahead.  Lines of rows that
lie apart took twice as long as lines that follow each other on a Zen 3, and 1.1 to 1.3 times on a
Zen 4, 1.5 to 2.3 times where they fall into few sets of the first cache (``benchmarks/rows.py``).
"""

Deliveries: TypeAlias = Mapping[str, Mapping[str, Mapping[float, float]]]
"""Cycles for each outermost loop and memory, by the part of the loop's time in which they are."""


def delivered(
    accelerator: Accelerator,
    whole: float,
    all_threads: float,
    through: Callable[[float | None], Mapping[str, Coming]],
) -> Deliveries:
    """Return how long caches and memory deliver.

    A thread touches ``whole`` bytes, ``all_threads`` so many; ``through`` gives what passes into a
    cache of a size (None: into registers) for each outermost loop.  A core's own caches also take
    in what comes from beyond them and, as more does, what is written.
    """
    levels = [s for s in accelerator.storages if s.kind in ("cache", "memory")]
    sizes = [float(s.size) for s in levels if s.size]
    last = len(sizes) - 1
    missed = [
        float(all_threads > SHARED * size) if n == last else pushed_out(whole / size)
        for n, size in enumerate(sizes)
    ]
    near = next((n for n, part in enumerate(missed) if not part), len(levels))
    rated = [s.name for s in levels if s.read is not None]
    found: dict[str, dict[str, dict[float, float]]] = {OUTSIDE: {name: {} for name in rated}}
    inner: float | None = None
    # What a nearer cache has from the last call comes from it.
    for number, storage in enumerate(levels[: near + 1]):
        # What the caches before it hold comes once, if it is not there already.
        waits = inner is not None and whole > RESIDENT * inner
        coming = through(inner) if storage.read is not None else {}
        lacking = missed[number - 1] if 0 < number <= len(missed) else 1.0
        for nest, parts in coming.items():
            for during, traffic in parts.times(lacking).during.items():
                part = traffic.unforeseen / traffic.bytes if waits and traffic.bytes else 0.0
                taken = {storage.name: traffic.bytes * cycles_a_byte(storage, part)}
                if len(levels) == 1:
                    taken = {storage.name: _through_ports(storage, traffic)}
                if number == 1:
                    alone = traffic.unforeseen * (ALONE - 1) * cycles_a_byte(storage, 0.0)
                    taken[storage.name] += traffic.leaving + alone
                if 0 < number < min(near, last) and storage.write:
                    taken[storage.name] += traffic.written / float(storage.write)
                before = levels[number - 1]
                if 0 < number - 1 < last and before.write:
                    taken[before.name] = traffic.bytes / float(before.write)
                for name, cycles in taken.items():
                    own = found.setdefault(nest, {}).setdefault(name, {})
                    own[during] = own.get(during, 0.0) + cycles
        inner = float(storage.size) if storage.size else inner
    return found


def _through_ports(memory: Storage, traffic: Traffic) -> float:
    """Return the cycles of a memory that has no caches: it reads while it writes."""
    read = (traffic.bytes - traffic.written) * cycles_a_byte(memory, 0.0)
    return max(read, traffic.written / float(memory.write) if memory.write else 0.0)


def while_coming(computing: float, memories: Mapping[str, Mapping[float, float]]) -> float:
    """Return the cycles of computing while memories deliver, each in parts of that time."""
    total, before = 0.0, 0.0
    for part in sorted({1.0, *(part for cycles in memories.values() for part in cycles)}):
        width = part - before
        slowest = max(
            (sum(c / p for p, c in cycles.items() if p >= part) for cycles in memories.values()),
            default=0.0,
        )
        total += beside(computing * width, slowest * width)
        before = part
    return total


def beside(computing: float, slowest: float) -> float:
    """Return the cycles of computing while memories deliver, a little in each other's way."""
    return max(computing, slowest) + TOGETHER * min(computing, slowest)


def sums(deliveries: Deliveries) -> dict[str, float]:
    """Return what each memory takes for all outermost loops."""
    total: dict[str, float] = {}
    for memories in deliveries.values():
        for name, cycles in memories.items():
            total[name] = total.get(name, 0.0) + sum(cycles.values())
    return total
