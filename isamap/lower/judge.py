"""What a schedule is worth: what it lowers to on a machine, whether that fits, and its estimate."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.lower.capacity import excess, takes_turns
from isamap.lower.cost import Estimate, estimate
from isamap.lower.drafts import Drafts
from isamap.lower.in_registers import Asked
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.fragments.produce import Producers
from isamap.schedule.schedule import Schedule, StatementSchedule


@dataclass(frozen=True, slots=True)
class Judge:
    """Lowers and estimates schedules for calls by so many ``threads``.

    ``symbols`` are typical values of the run-time extents; ``producers`` saves reading the
    machine's entries again.  ``asked`` are instructions that are to compute statements, by the
    number of the statement, in the registers of others, too.
    """

    accelerator: Accelerator
    producers: Producers
    symbols: Mapping[str, int] | None = None
    threads: int = 1
    asked: Asked = field(default_factory=dict)

    def lowered(
        self,
        kernel: Kernel,
        schedule: Schedule | StatementSchedule,
        *,
        saved: bool = True,
        drafts: Drafts | None = None,
    ) -> LoweredKernel:
        """Return what a schedule, or that of the only statement, lowers to: :func:`lower`."""
        whole = schedule if isinstance(schedule, Schedule) else Schedule((schedule,))
        return lower(kernel, self.accelerator, whole, self.producers, drafts, saved=saved)

    def excess(self, lowered: LoweredKernel) -> str | None:
        """Return which storage a lowered kernel overflows, None if none."""
        return excess(lowered, self.accelerator)

    def told(self, schedule: StatementSchedule, lowered: LoweredKernel) -> StatementSchedule:
        """Return a schedule without places that nothing takes in turn: one for each."""
        if takes_turns(lowered):
            return schedule
        return replace(schedule, buffers=(1,) * len(schedule.buffers))

    def estimate(self, lowered: LoweredKernel) -> Estimate:
        """Return the estimate of a call."""
        return estimate(lowered, self.accelerator, self.symbols, self.threads)
