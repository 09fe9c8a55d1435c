"""Accesses whose loads go past the first cache, as a schedule's text says them."""

from collections.abc import Sequence

from isamap.diagnostics import Diagnostic
from isamap.hw.accelerator import Accelerator
from isamap.ir.printer import print_expr
from isamap.mapping.matching import Mapping
from isamap.schedule.meant import means
from isamap.schedule.reader import said_twice
from isamap.schedule.schedule import StatementSchedule
from isamap.schedule.treatment import inputs
from isamap.schedule.written import WrittenLoads


def past_texts(own: StatementSchedule) -> list[str]:
    """Return the accesses whose loads go past the first cache: ``B[k, n] as b``."""
    return [
        f"{print_expr(access)} as {operand}"
        for n, (operand, access) in enumerate(inputs(own.mapping))
        if n in own.past
    ]


def resolve_past(
    written: Sequence[WrittenLoads],
    mapping: Mapping,
    accelerator: Accelerator,
    faults: list[Diagnostic],
) -> tuple[int, ...]:
    """Return the numbers of the accesses that are written; faults are added."""
    if written and not accelerator.past_loads:
        text = f"no instruction of {accelerator.name} loads past the first cache"
        hint = "a description says how with 'bypass' of a load"
        faults.append(Diagnostic("E415", text, written[0].what.span, hint=hint))
    found: dict[int, WrittenLoads] = {}
    pairs = inputs(mapping)
    for own in written:
        fits = [n for n, pair in enumerate(pairs) if means(own, *pair)]
        if not fits:
            known = dict.fromkeys(f"{print_expr(access)} as {operand}" for operand, access in pairs)
            text = f"there is no access '{own.what.text}'"
            hint = f"there are {'; '.join(known)}"
            faults.append(Diagnostic("E412", text, own.what.span, hint=hint))
        if before := next((found[n] for n in fits if n in found), None):
            text = f"'{own.what.text}' is said twice"
            faults.append(said_twice(text, own.what, before.what))
        found |= dict.fromkeys(fits, own)
    return tuple(sorted(found))
