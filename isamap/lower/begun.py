"""The first statements of a kernel, lowered: where schedules differ in later ones only, once."""

from dataclasses import dataclass, field, replace

from isamap.ir.index import Index
from isamap.lower.context import Context
from isamap.lower.nodes import InRegisters, Node
from isamap.schedule.schedule import Schedule, StatementSchedule


@dataclass(slots=True)
class Begun:
    """What the statements so far have come to.

    ``groups`` are the nodes of statements that have one outermost loop, ``rounds`` how often the
    loop of each goes round and ``firsts`` their first statements; ``written`` are buffers that have
    content; ``in_registers`` are the statements without loops.
    """

    context: Context
    groups: list[list[tuple[Node, ...]]] = field(default_factory=list)
    rounds: list[list[Index]] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    in_registers: list[InRegisters] = field(default_factory=list)

    def copy(self) -> "Begun":
        """Return the same with lists of its own, to go on with."""
        return replace(
            self,
            context=self.context.copy(),
            groups=[[*group] for group in self.groups],
            rounds=[[*counts] for counts in self.rounds],
            firsts=[*self.firsts],
            written={*self.written},
            in_registers=[*self.in_registers],
        )


@dataclass(slots=True)
class Beginnings:
    """Remembers, for one kernel on one machine, what the first statements were lowered to.

    Statements are known by the very objects that schedule them, which are kept for that.  How a
    schedule orders the calls of all statements comes after them, and makes no difference here.
    """

    _known: dict[tuple[object, ...], Begun] = field(default_factory=dict)
    _kept: list[StatementSchedule] = field(default_factory=list)

    def longest(self, schedule: Schedule) -> tuple[int, Begun] | None:
        """Return the most statements of a schedule that are known, and what they came to."""
        for count in range(len(schedule.statements), 0, -1):
            if (found := self._known.get(_key(schedule, count))) is not None:
                return count, found.copy()
        return None

    def keep(self, schedule: Schedule, count: int, begun: Begun) -> None:
        """Remember what the first statements of a schedule have come to."""
        key = _key(schedule, count)
        if key not in self._known:
            self._known[key] = begun.copy()
            self._kept += schedule.statements[:count]


def _key(schedule: Schedule, count: int) -> tuple[object, ...]:
    statements = schedule.statements
    return tuple(
        (id(one), tuple((follower, statements[follower].by) for follower in schedule.followers(n)))
        for n, one in enumerate(statements[:count])
    )
