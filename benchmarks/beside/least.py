"""The time that a case takes at least: its operations and its bytes, at the rates of now."""

from beside.cases import Case, element_kind, needed, touched, traffic
from beside.peaks import Loop, Peaks

WINDOW = 0.003
"""Seconds of each measurement."""


class Least:
    """What bounds one case from below.

    A case that counts operations takes as long as they do in registers, or as reading what it
    touches once takes where as many bytes are read again and again, whichever is longer.  Any other
    case takes as long as a copy of as many bytes as it reads and writes.
    """

    def __init__(self, case: Case, peaks: Peaks) -> None:
        self._peaks, self._kind = peaks, element_kind(case)
        self._operations = needed(case)
        self._bytes = traffic(case) if self._operations is None else touched(case)
        how = "copy" if self._operations is None else "read"
        self._moving: Loop = peaks.moving(how, self._bytes)

    def seconds(self) -> float | None:
        """Return that time, measured now; None if no loop of the case's elements runs here."""
        rate = self._moving.rate(WINDOW)
        assert rate is not None
        moving = self._bytes * 1e-9 / rate
        if self._operations is None:
            return moving
        peak = self._peaks.computing(self._kind, WINDOW)
        return None if peak is None else max(moving, self._operations * 1e-9 / peak)

    def close(self) -> None:
        """End what was started for the case."""
        self._moving.close()
