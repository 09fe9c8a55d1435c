"""isamap itself, by its adapter: one definition of each kernel for all benchmarks."""

from collections.abc import Iterator

import peer

from beside.cases import Case
from beside.way import Way

VERSION = f"{peer.VERSION}, {peer.machine().name}"


def ways(case: Case, threads: int) -> Iterator[Way]:
    """The adapter chooses the layout by its estimate."""
    made = peer.make(case, threads)
    if made is not None:
        yield Way("first schedule", *made)
