"""The same kernel and schedule at smaller sizes, for code that takes too long to run."""

from collections.abc import Iterator
from dataclasses import replace
from math import lcm

from isamap.diagnostics import IsamapError
from isamap.ir.index import var
from isamap.ir.nodes import Expr, Kernel, Op, Statement
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.lower import lower
from isamap.mapping.matching import Mapping
from isamap.proof.evidence import Evidence
from isamap.schedule.schedule import Schedule, StatementSchedule

_STEPS = 2
"""Full steps of the outermost loop that are kept; what was left over at the end is kept, too."""


def reduced(evidence: Evidence) -> tuple[Evidence, dict[str, int]] | None:
    """Return the evidence with fewer full steps of each range, and the extents that are smaller.

    None where nothing can be reduced: extents without a name, a kernel that was rewritten.
    """
    kernel = evidence.kernel
    if evidence.rewritings or evidence.mapped != kernel:
        return None
    smaller = {}
    for extent in kernel.extents:
        step = _step(kernel, evidence.schedule, extent.name)
        if extent.value is not None and step and extent.value > (_STEPS + 1) * step:
            smaller[extent.name] = _STEPS * step + extent.value % step
    if not smaller:
        return None
    extents = tuple(
        replace(e, value=smaller.get(e.name, e.value)) if e.value is not None else e
        for e in kernel.extents
    )
    small = replace(kernel, extents=extents)
    schedule = Schedule(
        tuple(
            _moved(own, zero_based(statement))
            for own, statement in zip(
                evidence.schedule.statements, bind_extents(small).statements, strict=True
            )
        )
    )
    try:
        lowered = lower(small, evidence.machine, schedule)
    except IsamapError:
        return None  # The schedule does not fit the smaller sizes.
    found = replace(evidence, kernel=small, mapped=small, schedule=schedule, lowered=lowered)
    return found, smaller


def _step(kernel: Kernel, schedule: Schedule, name: str) -> int:
    """Return the longest step into which ranges of this extent are cut; 0 if one is not cut."""
    steps = [1]
    for statement, own in zip(kernel.statements, schedule.statements, strict=True):
        for v in statement.variables:
            if name not in v.extent.names:
                continue
            cut = [level.step for level in own.levels if level.variable == v.name]
            if v.extent != var(name) or not cut:
                return 0
            steps.append(max(cut))
    return lcm(*steps)


def _moved(own: StatementSchedule, statement: Statement) -> StatementSchedule:
    """Return a schedule for a statement that differs in sizes only."""
    matching = own.mapping.matching
    same = dict(_pairs(matching.statement.value, statement.value))
    operands = tuple((name, same.get(expr, expr)) for name, expr in matching.operands)
    moved = replace(matching, statement=statement, operands=operands)
    return replace(own, mapping=Mapping(moved, own.mapping.tile, own.mapping.utilisation))


def _pairs(old: Expr, new: Expr) -> Iterator[tuple[Expr, Expr]]:
    yield old, new
    if isinstance(old, Op) and isinstance(new, Op):
        for one, other in zip(old.args, new.args, strict=True):
            yield from _pairs(one, other)
