"""What is raised where a schedule cannot be lowered."""

from isamap.diagnostics import Diagnostic, ScheduleError


def bad(message: str) -> ScheduleError:
    """Return what is raised where a schedule cannot be lowered."""
    return ScheduleError(Diagnostic("E401", message))
