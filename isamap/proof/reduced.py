"""The same kernel and schedule at smaller sizes, for code that takes too long to run."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import lcm

from isamap.diagnostics import IsamapError
from isamap.hw.accelerator import Accelerator
from isamap.ir.index import var
from isamap.ir.nodes import Expr, Kernel, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping import matching
from isamap.proof.evidence import Evidence
from isamap.rewrite.apply import again
from isamap.rewrite.rule import Rewriting
from isamap.schedule.schedule import Schedule, StatementSchedule

_STEPS = 2
"""Full steps of the outermost loop that are kept; what was left over at the end is kept, too."""

_SIZES = (16, 8)
"""Sizes that a rewritten kernel is tried at, or a little more, the greatest first."""

_MORE = 4
"""How many sizes from each of them on."""


def reduced(evidence: Evidence) -> Iterator[tuple[Evidence, dict[str, int]]]:
    """Yield the evidence at smaller sizes, with the extents that are smaller.

    The schedule stays: with fewer full steps of each range, or, where rules have rewritten the
    kernel, at small sizes, for which it is rewritten again by the same rules.  Nothing is yielded
    where nothing can be reduced: extents without a name, statements that are computed together,
    code that is not what the schedule is lowered to, of which smaller code would say nothing.
    """
    if evidence.mapped != _last(evidence.kernel, evidence.rewritings):
        return
    if _lowered(evidence.mapped, evidence.machine, evidence.schedule) != evidence.lowered:
        return
    if not evidence.rewritings:
        every = [_fewer_steps(evidence)]
    else:
        every = [_small(evidence, size) for size in _SIZES]
    for smaller in every:
        if smaller and (found := _at(evidence, smaller)) is not None:
            yield found, smaller


def _fewer_steps(evidence: Evidence) -> dict[str, int]:
    kernel, smaller = evidence.kernel, {}
    for extent in kernel.extents:
        step = _step(kernel, evidence.schedule, extent.name)
        if extent.value is not None and step and extent.value > (_STEPS + 1) * step:
            smaller[extent.name] = _STEPS * step + extent.value % step
    return smaller


def _small(evidence: Evidence, size: int) -> dict[str, int]:
    """Return extents of a size, or a little more, for which the rules give the same statements."""
    chosen: dict[str, int] = {}
    for extent in evidence.kernel.extents:
        for value in range(size, min(size + _MORE, extent.value or 0)):
            tried = {**chosen, extent.name: value}
            if _rewritten(evidence, _with(evidence.kernel, tried)) is not None:
                chosen = tried
                break
    return chosen


def _at(evidence: Evidence, smaller: Mapping[str, int]) -> Evidence | None:
    """Return the evidence at other sizes, None where its schedule does not fit them."""
    small = _with(evidence.kernel, smaller)
    rewritings = _rewritten(evidence, small)
    if rewritings is None:
        return None
    mapped = _last(small, rewritings)
    statements = tuple(
        _moved(own, zero_based(statement))
        for own, statement in zip(
            evidence.schedule.statements, bind_extents(mapped).statements, strict=True
        )
    )
    schedule = replace(evidence.schedule, statements=statements)
    lowered = _lowered(mapped, evidence.machine, schedule)
    if lowered is None:
        return None
    return Evidence(small, rewritings, mapped, evidence.machine, schedule, lowered)


def _last(kernel: Kernel, rewritings: tuple[Rewriting, ...]) -> Kernel:
    return rewritings[-1].kernel if rewritings else kernel


def _with(kernel: Kernel, values: Mapping[str, int]) -> Kernel:
    """Return a kernel with other values of some extents."""
    extents = tuple(replace(e, value=values.get(e.name, e.value)) for e in kernel.extents)
    return replace(kernel, extents=extents)


def _rewritten(evidence: Evidence, kernel: Kernel) -> tuple[Rewriting, ...] | None:
    """Return what the rules make of the kernel at other sizes, None if it is something else."""
    bodies = [s for entry in evidence.machine.entries for s in entry.instruction.statements]
    steps = [(rewriting.rule, rewriting.statement) for rewriting in evidence.rewritings]

    def same(n: int, rewriting: Rewriting) -> bool:
        return _texts(rewriting.kernel) == _texts(evidence.rewritings[n].kernel)

    found = again(kernel, bodies, steps, same)
    return found if len(found) == len(steps) else None


def _texts(kernel: Kernel) -> list[tuple[str, ...]]:
    """Return the statements without the ranges of their variables."""
    return [(print_expr(s.target), s.reduction, print_expr(s.value)) for s in kernel.statements]


def _lowered(kernel: Kernel, machine: Accelerator, schedule: Schedule) -> LoweredKernel | None:
    try:
        return lower(kernel, machine, schedule)
    except IsamapError:
        return None  # The schedule does not fit these sizes.


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
    old = own.mapping.matching
    same = dict(_pairs(old.statement.value, statement.value))
    operands = tuple((name, same.get(expr, expr)) for name, expr in old.operands)
    moved = replace(old, statement=statement, operands=operands)
    return replace(own, mapping=matching.Mapping(moved, own.mapping.tile, own.mapping.utilisation))


def _pairs(old: Expr, new: Expr) -> Iterator[tuple[Expr, Expr]]:
    yield old, new
    if isinstance(old, Op) and isinstance(new, Op):
        for one, other in zip(old.args, new.args, strict=True):
            yield from _pairs(one, other)
