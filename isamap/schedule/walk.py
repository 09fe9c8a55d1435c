"""Walks through memory: how far they go before they jump, and what that makes of its rate.

Hardware fetches ahead of a walk once it has seen some of it.  What it does not foresee comes no
faster than a core can wait for: so many lines in each latency, by Little's law.
"""

from collections.abc import Iterable, Sequence
from math import sqrt

from isamap.hw.accelerator import LINE, Storage

IN_FLIGHT = 16
"""Lines that a core waits for at a time, at least: 16 to 24 on common processors."""

FOLLOWED = 2048
"""Bytes of each of two walks before hardware fetches ahead of them.  On a Zen 4, of 134 MB in rows
of 1, 4, 8, 16 and 64 KB that were read two, four and seven side by side, the first took 2.3 to 3.7
times as long as one after the other, the second 2.0, 1.8 and 1.6 times, then 1.7 to 1.4, 1.3 and
1.1.  (On a Xeon, which is regional, none took longer.)
"""


def walk(
    stretch: float, loops: Iterable[tuple[float, float]], places: Sequence[float] = (0,)
) -> float:
    """Return how far a walk goes that begins with a stretch, in the stretch's unit.

    ``loops`` have the iterations and the step of each loop around it, innermost first.  What is
    left out between two steps may be as long as what is walked before: others may touch that.  It
    is walked from several ``places`` at a time, which are one once they have met.
    """
    length, begun = _met(stretch, sorted(places))
    for count, step in loops:
        if count <= 1 or not step:
            continue
        if abs(step) >= 2 * length:
            break
        length, begun = _met(length + abs(step) * (count - 1), begun)
    return length


def _met(length: float, places: Sequence[float]) -> tuple[float, list[float]]:
    """Return how far walks of a length from ``places`` go together, and where they begin then."""
    begun, ends = [places[0]], [places[0]]
    for place in places[1:]:
        if place - ends[-1] < 2 * length:
            ends[-1] = place
        else:
            begun.append(place)
            ends.append(place)
    return length + min(end - first for first, end in zip(begun, ends, strict=True)), begun


def unforeseen(length: float, beside: float) -> float:
    """Return the part of walks of so many bytes that nobody fetches ahead.

    So many walk ``beside`` each other; what several have to wait for overlaps in part.
    """
    return min(1.0, FOLLOWED / length / sqrt(max(1.0, beside / 2)))


def cycles_a_byte(storage: Storage, part: float) -> float:
    """Return the cycles in which a cache or memory delivers a byte if a part is unforeseen.

    Zero where the description does not say.
    """
    if storage.read is None:
        return 0.0
    rate = float(storage.read)
    alone = IN_FLIGHT * (storage.line or LINE) / float(storage.latency or 1)
    return (1 - part) / rate + part / min(rate, alone)
