"""Loops over variables of which a register block has all iterations.

Rounds are over a variable that all their statements have a loop over.  A statement that is fastest
alone with all of it in a block would keep them from each other.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from isamap.diagnostics import ScheduleError
from isamap.ir.ahead import statement_kernel
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.judge import Judge
from isamap.schedule.first import first_schedule
from isamap.schedule.rounds import shares_of
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.treatment import Treatments


@dataclass(frozen=True, slots=True)
class Looped:
    """Answers with schedules of a kernel's statements that have loops to share, and remembers."""

    kernel: Kernel
    judge: Judge
    _known: dict[tuple[int, str], tuple[StatementSchedule, StatementSchedule]] = field(
        default_factory=dict
    )

    def over(self, schedule: Schedule, members: list[int]) -> Schedule:
        """Return a schedule in which each of some statements has a loop over the variable that
        tells apart what they share, where it can; as it is if nothing does."""
        everyone = sorted({*members, *(f for m in members for f in schedule.followers(m))})
        shares = shares_of(self.kernel, everyone)
        if shares is None:
            return schedule
        for number in members:
            own, variable = schedule.statements[number], shares[number].variable
            if all(level.variable != variable for level in own.levels):
                schedule = schedule.with_statement(number, self._own(number, own, variable))
        return schedule

    def _own(self, number: int, own: StatementSchedule, variable: str) -> StatementSchedule:
        known = self._known.get((number, variable))
        if known is None or known[0] is not own:
            known = self._known[number, variable] = own, self._found(number, own, variable)
        return known[1]

    def _found(self, number: int, own: StatementSchedule, variable: str) -> StatementSchedule:
        alone = bind_extents(statement_kernel(self.kernel, number))
        buffers = {buffer.name: buffer for buffer in alone.buffers}
        treatments = Treatments(own.mapping, self.judge.producers, buffers, alone.permissions)
        with suppress(ScheduleError):
            found = first_schedule(
                own.mapping,
                self.judge.accelerator,
                self.judge.producers,
                alone,
                self.judge.threads,
                treatments=treatments,
                wanted=own.operands,
                rolled=frozenset({variable}),
            )
            kept = replace(found, buffers=own.buffers, bypass=own.bypass, stream=own.stream)
            if any(level.variable == variable for level in kept.levels):
                return kept
        return own
