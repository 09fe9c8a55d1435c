"""What an instruction's readings and a statement differ in, and the statement without that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from isamap.explain.align import align
from isamap.explain.alignment import Alignment, conversion_effect, worse
from isamap.explain.explanation import Effect, Reason
from isamap.ir.dtype import DType
from isamap.ir.nodes import Expr, Op, Statement
from isamap.ir.printer import print_expr, print_statement
from isamap.ir.statements import accesses, reduces
from isamap.mapping.matching import Needle
from isamap.mapping.needles.pattern import bindings, size


@dataclass(frozen=True, slots=True)
class Near:
    """A reading of an instruction, in what a statement differs from it, and what to change.

    ``statement`` is the statement after all changes, None where they are not known; ``target`` the
    type that the buffer it writes must then have, if another one.  ``steps`` are the changes in
    words.
    """

    needle: Needle
    alignment: Alignment
    cost: int
    reasons: tuple[Reason, ...]
    steps: tuple[str, ...]
    statement: Statement | None
    target: DType | None
    effect: Effect


def nearest(statement: Statement, needles: Sequence[Needle]) -> tuple[Near, ...]:
    """Return the smallest sets of differences from an instruction's readings, nearest first."""
    found = [_near(statement, n, a) for n in needles for a in align(n.value, statement.value)]
    return tuple(sorted(found, key=lambda near: (near.cost, *near.alignment.order)))


def part(statement: Statement, needles: Sequence[Needle]) -> Expr | None:
    """Return the largest part of a statement that an instruction computes alone, if any.

    That is a part of the value, or the whole value where the statement reduces it.
    """
    inside = list(_parts(statement.value))
    if statement.reduction == "=":
        inside = inside[1:]
    for expr in sorted(inside, key=size, reverse=True):
        for needle in needles:
            # One that holds a whole reduction is of use for the whole, not for a single step of it.
            alone = needle.reduction == "=" and size(needle.value) and not reduces(needle.value)
            if needle.places:
                continue  # What it reads at several places is laid out for a whole statement only.
            if alone and bindings(needle.value, expr):
                return expr
    return None


def _parts(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Op):
        yield expr
        for arg in expr.args:
            yield from _parts(arg)


def _near(statement: Statement, needle: Needle, alignment: Alignment) -> Near:
    cost, reasons = alignment.cost, list(alignment.differences)
    steps, effect = list(alignment.steps), alignment.effect
    target = None
    if needle.target.dtype != statement.target.dtype:
        here = print_expr(statement.target)
        text = f"its result {needle.target.buffer} is {needle.target.dtype}, {here} is "
        text += f"{statement.target.dtype}"
        reasons.append(Reason("type", text, statement.target.span, needle.target.span))
        target = needle.target.dtype
        steps.append(f"make {statement.target.buffer} {target}")
        effect = worse(effect, conversion_effect(statement.target.dtype, target))
        cost += 1
    if needle.reduction != statement.reduction:
        text = f"it does '{needle.reduction}', the statement does '{statement.reduction}'"
        reasons.insert(0, Reason("reduction", text, statement.span, needle.target.span))
        steps.insert(0, f"write '{needle.reduction}' for '{statement.reduction}'")
        effect = "different"
        cost += 1
    changed = None
    if alignment.changed is not None:
        changed = replace(
            statement,
            reduction=needle.reduction,
            value=alignment.changed,
            target=replace(statement.target, dtype=target or statement.target.dtype),
        )
        if any(a.buffer == changed.target.buffer for a in accesses(changed.value)) and target:
            changed = None
    return Near(needle, alignment, cost, tuple(reasons), tuple(steps), changed, target, effect)


def written(near: Near) -> str:
    """Return the changed statement as text."""
    assert near.statement is not None
    return print_statement(near.statement)
