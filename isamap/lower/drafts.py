"""Drafts of statements, which many schedules of a kernel have in common: each is lowered once."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from isamap.diagnostics import ScheduleError
from isamap.lower.finish import Finished
from isamap.lower.nodes import Array, Node
from isamap.mapping.matching import Mapping
from isamap.schedule.schedule import Schedule, StatementSchedule


@dataclass(frozen=True, slots=True)
class Draft:
    """What a statement was lowered to.

    These are its nodes, how its results are finished in registers, and the arrays that it has
    beside those of the kernel.
    """

    nodes: tuple[Node, ...]
    finished: tuple[Finished, ...]
    arrays: tuple[Array, ...]


@dataclass(slots=True)
class Drafts:
    """Remembers, for one kernel on one machine, what its statements were lowered to.

    Names in a draft are those of its statement alone, so that it serves whatever becomes of the
    others: to be estimated, not to be read.
    """

    _known: dict[tuple[object, ...], Draft | ScheduleError] = field(default_factory=dict)
    _kept: list[Mapping] = field(default_factory=list)

    def of(
        self,
        schedule: Schedule,
        number: int,
        besides: tuple[object, ...],
        make: Callable[[], Draft],
    ) -> Draft:
        """Return the draft of a statement that has loops of its own, which ``make`` makes.

        ``besides`` is what else decides what it is.  ScheduleError if it cannot be lowered.
        """
        key = (*_key(schedule, number), *besides)
        if key not in self._known:
            # Mappings are known by the very objects, which are kept for that.
            self._kept.append(schedule.statements[number].mapping)
            try:
                self._known[key] = make()
            except ScheduleError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, ScheduleError):
            raise ScheduleError(*found.diagnostics)
        return found


DECIDING = tuple(
    one.name for one in fields(StatementSchedule) if one.name not in ("mapping", "within", "along")
)
"""What a statement's own nodes are made from, beside its mapping."""


def _key(schedule: Schedule, number: int) -> tuple[object, ...]:
    statements = schedule.statements
    own = statements[number]
    followers = tuple((one, statements[one].by) for one in schedule.followers(number))
    return (number, id(own.mapping), *(getattr(own, name) for name in DECIDING), followers)
