"""Schedules that copy, in place of whole padded operands, only the fragments that a border cuts."""

from dataclasses import replace

from isamap.schedule.schedule import StatementSchedule, Treatment
from isamap.schedule.treatment import Treatments, inputs


def bordered(schedule: StatementSchedule, treatments: Treatments) -> tuple[StatementSchedule, ...]:
    """Return the schedule with its padded operands bordered, if it has some that can be."""
    kinds: list[Treatment] = []
    for (operand, _), kind in zip(inputs(schedule.mapping), schedule.operands, strict=True):
        can = kind == "padded" and treatments.cost(operand, "bordered") is not None
        kinds.append("bordered" if can else kind)
    if tuple(kinds) == schedule.operands:
        return ()
    inside = [0 if k == "bordered" else schedule.copied_inside(n) for n, k in enumerate(kinds)]
    pitches = [0 if k == "bordered" else schedule.pitch(n) for n, k in enumerate(kinds)]
    return (
        replace(
            schedule,
            operands=tuple(kinds),
            inside=tuple(inside) if any(inside) else (),
            pitches=tuple(pitches) if any(pitches) else (),
        ),
    )
