"""Whether what units do to one place is in order where only tokens order them.

Each unit knows of every other one how many of its instructions are done: it learns that from
tokens, and with them what the one that posted knew.  What touches a place that another unit writes,
or writes one that another unit reads, must come after that by what it knows, not by luck.
"""

from collections.abc import Mapping

import numpy as np

from isamap.interp.rounding import Values
from isamap.sim.memory import LoweredFault

HOST = "the host"
"""What stands for a unit where the host executes an instruction."""

Known = dict[str, int]
"""Of each unit, how many of its instructions are done for certain."""


class History:
    """Which instruction of which unit wrote each row or element last, and read it since."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.wrote: dict[str, Values] = {}
        self.read: dict[str, Values] = {}

    def reach(self, size: int) -> None:
        """Have room for ``size`` rows, which are no fewer than before."""
        for table in (self.wrote, self.read):
            for unit, numbers in table.items():
                table[unit] = np.pad(numbers, (0, size - self.size))
        self.size = size

    def of(self, table: dict[str, Values], unit: str) -> Values:
        """Return the numbers of a unit's last instructions, 0 where there was none."""
        if unit not in table:
            table[unit] = np.zeros(self.size, np.int64)
        return table[unit]


class Order:
    """Follows what units know of each other."""

    def __init__(self) -> None:
        self.count: Known = {}
        self.known: dict[str, Known] = {}
        self.met: Known = {}
        self.posted: dict[str, list[Known]] = {}

    def post(self, unit: str, channel: str) -> None:
        """Take note of a token: what ``unit`` was given is done then, and what it knows holds."""
        news = {**self._known(unit), unit: self.count.get(unit, 0)}
        self.posted.setdefault(channel, []).append(news)

    def wait(self, unit: str, channel: str, behind: int) -> None:
        """Have a unit learn what came with all tokens of a channel but the last ``behind``."""
        posted = self.posted.get(channel, [])
        if len(posted) > behind:
            self._learn(unit, posted[len(posted) - 1 - behind])

    def meet(self) -> None:
        """Have all units know that all is done so far: the host waits for them.

        That holds for a unit that begins later, too.
        """
        self.met = dict(self.count)
        for unit in self.known:
            self._learn(unit, self.met)

    def start(self, unit: str) -> int:
        """Return the number of a unit's next instruction, from 1."""
        self.count[unit] = self.count.get(unit, 0) + 1
        return self.count[unit]

    def check(self, unit: str, history: History, where: Values, write: bool, what: str) -> None:
        """LoweredFault if another unit may still write what is touched, or read what is written."""
        known = self._known(unit)
        tables = [("writes", history.wrote), *([("reads", history.read)] if write else [])]
        for doing, table in tables:
            for other, numbers in table.items():
                latest = int(numbers[where].max(initial=0))
                if other != unit and latest > known.get(other, 0):
                    does = "writes" if write else "reads"
                    raise LoweredFault(
                        f"{what} {does} what {other} still {doing} as far as {unit} knows"
                    )

    def note(self, unit: str, number: int, history: History, where: Values, write: bool) -> None:
        """Take note that an instruction of a unit touches a place."""
        history.of(history.wrote if write else history.read, unit)[where] = number

    def _learn(self, unit: str, news: Mapping[str, int]) -> None:
        own = self._known(unit)
        for other, number in news.items():
            own[other] = max(own.get(other, 0), number)

    def _known(self, unit: str) -> Known:
        """Return what a unit knows, which begins with what was done when all met last."""
        return self.known.setdefault(unit, dict(self.met))
