"""What a stage of a mapped kernel hands on to the next one, as text."""

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from isamap.pipeline.result import Result

Stage: TypeAlias = Literal["kernel", "schedule", "lowered", "code"]
"""The kernel as it is mapped, its schedule, the lowered kernel, the C: in the order of the path."""

STAGES: tuple[str, ...] = get_args(Stage)


def stage_text(result: "Result", stage: Stage) -> str:
    """Return the text of a stage, and nothing else: a kernel, a schedule and C can be read again.

    Raises ToolError where the description makes no C.
    """
    match stage:
        case "kernel":
            from isamap.ir.printer import print_kernel

            return print_kernel(result.mapped)
        case "schedule":
            from isamap.pipeline.schedule_text import schedule_text

            return schedule_text(result)
        case "lowered":
            from isamap.lower.printer import print_lowered

            return print_lowered(result.lowered)
        case "code":
            from isamap.cli.emit import written_code

            return written_code(result).text
