"""Why no instruction computes a statement: one line for each that comes near."""

from dataclasses import dataclass, replace
from itertools import permutations

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Permissions, Reduce, Statement
from isamap.ir.operations import OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import zero_based
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Needle
from isamap.mapping.needles.demands import is_partial
from isamap.mapping.needles.needles import (
    Needles,
    needles,
    not_constant,
    operand_accesses,
    roots,
)
from isamap.mapping.needles.pattern import bindings
from isamap.mapping.needles.readings import POSITION, written_like

MOST = 10


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first thing at which a needle and a statement differ; ``depth`` counts what agreed."""

    depth: int
    text: str


def reasons(
    statement: Statement,
    accelerator: Accelerator | Needles,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
    movements: bool = True,
) -> tuple[str, ...]:
    """Return why instructions do not compute ``statement``, the nearest first, at most ten lines.

    Each line names an instruction and what differs: the operation, a type, or the law that fails,
    in the kernel's own names.  Those that only move or set something are told where nothing else
    is, and only with ``movements``.  Instantiations of one generic instruction share a line.  Empty
    if some instruction computes the statement by itself; one that does for some values of its
    operands has reasons of its own.
    """
    index = accelerator if isinstance(accelerator, Needles) else needles(accelerator)
    statement = zero_based(statement)
    closed: dict[str, str] = {}
    for needle, operands in roots(statement, index):
        whole = problem(statement, needle, operands, permissions)
        if any(whole.is_open(filling) for filling in whole.fillings):
            return ()
        closed[needle.name] = _closed(needle)
    nearest: dict[str, tuple[Misfit, str]] = {}
    for entry in index.accelerator.entries:
        readings = index.readings(entry)
        if is_partial(entry) and any(_fits(statement, needle) for needle in readings.needles):
            continue
        told = written_like(statement, entry, readings)
        found = [_ranked(_misfit(statement, needle, index), needle) for needle in told]
        if entry.name in closed:
            found = [Misfit(99, closed[entry.name])]
        elif readings.reason and not _is_movement(readings.reason):
            found = [Misfit(0, readings.reason)]
        if not found:
            continue
        best = max(found, key=lambda misfit: misfit.depth)
        name = entry.instruction.generic or entry.name
        if name not in nearest or nearest[name][0].depth < best.depth:
            nearest[name] = (best, entry.name)
    ranked = sorted(nearest.values(), key=lambda pair: (-pair[0].depth, pair[1]))
    computing = [pair for pair in ranked if pair[0].depth >= 0]
    ranked = computing if computing or not movements else ranked
    return tuple(f"{name}: {misfit.text}" for misfit, name in ranked[:MOST])


def _is_movement(reason: str) -> bool:
    return reason == "it only moves data"


def _closed(needle: Needle) -> str:
    axes = ", ".join(axis.name for axis in needle.axes if axis.extent > 1)
    return (
        f"law 4: padding its axes ({axes}) would repeat work, and no constant in unused elements "
        f"keeps {needle.reduction} silent"
    )


def _fits(statement: Statement, needle: Needle) -> bool:
    body = _difference(needle.value, statement.value)
    return body is None and needle.reduction == statement.reduction


def _misfit(statement: Statement, needle: Needle, index: Needles) -> Misfit:
    """Return where a needle and a statement differ first."""
    agreed = 2 * (needle.reduction == statement.reduction)
    body = _difference(needle.value, statement.value)
    # A form that is derived from an instruction may have another reduction than it is written with.
    written = needle.entry.instruction.statements[-1].reduction
    if body is not None and not agreed and written == statement.reduction:
        return body
    if body is None:
        if agreed:
            inputs = [needle.operand(o) for o in operand_accesses(needle)]
            if any(operand.contents for operand in inputs):
                text = "an operand that is part of the instruction is not constant here"
            elif isinstance(needle.value, Access):
                text = "it only moves what something else would have to compute"
            elif needle.entry.same:
                text = "its operands that must be one register would hold different values"
            else:
                readings = bindings(needle.value, statement.value)
                no_constants = (not_constant(index, needle, one) for one in readings)
                text = next(
                    (constant_text(*one) for found in no_constants for one in found.items()),
                    "an operand that stands twice in it would hold different values",
                )
            return Misfit(9, text)
        text = f"it does '{needle.reduction}', the statement does '{statement.reduction}'"
        return Misfit(8, text)
    if not agreed:
        text = f"it does '{needle.reduction}', the statement does '{statement.reduction}'"
        return Misfit(body.depth, f"{text}; {body.text}")
    return Misfit(body.depth + agreed, body.text)


def constant_text(operand: str, expr: Expr) -> str:
    """Return that something stands where an instruction has a constant."""
    return f"its operand {operand} is a constant in the instruction, {print_expr(expr)} is not"


def _ranked(misfit: Misfit, needle: Needle) -> Misfit:
    """Return a misfit that is behind all others if the needle only moves something or sets it."""
    if needle.reduction == "=" and isinstance(needle.value, Access | Literal):
        return replace(misfit, depth=-1)
    return misfit


def _difference(pattern: Expr, expr: Expr) -> Misfit | None:
    """Return where an expression differs from a pattern, None if it is an instance of it.

    Which operand stands twice for different things is not looked at.
    """
    here = print_expr(expr)
    match pattern:
        case Access(operand, _, dtype):
            if dtype != expr.dtype:
                return Misfit(0, f"its operand {operand} is {dtype}, {here} is {expr.dtype}")
            return None
        case Literal():
            same = pattern == expr
            return None if same else Misfit(0, f"its {pattern.text} is not {here}")
        case Coordinate():
            return Misfit(0, POSITION)
        case Reduce(reduction, _, inner, _):
            if isinstance(expr, Reduce) and expr.reduction != reduction:
                return Misfit(0, f"it does '{reduction}', {here} does '{expr.reduction}'")
            return _difference(inner, expr.body if isinstance(expr, Reduce) else expr)
        case Op("cast" | "sat" as op, (Access(operand, _, inner),), dtype) if not isinstance(
            expr, Op
        ):
            text = f"its operand {operand} is {inner}, converted to {dtype} inside"
            text += f"; {here} is {expr.dtype}"
            if dtype != expr.dtype or not inner.holds(dtype):
                return Misfit(0, text)
            # The same value, said as the instruction says it.
            written = print_expr(Op(op, (Op("cast", (expr,), inner),), dtype))
            return Misfit(1, f"{text}, write {written} for it")
        case Op(op, args, dtype):
            if not isinstance(expr, Op):
                return Misfit(0, f"it computes {_name(pattern)}, {here} is no operation")
            if expr.op != op:
                return Misfit(0, f"it computes {_name(pattern)}, {here} is {_name(expr)}")
            found = [
                _arguments(args, order)
                for order in (
                    permutations(expr.args) if OPERATIONS[op].commutative else (expr.args,)
                )
            ]
            if None in found:
                if dtype == expr.dtype:
                    return None
                return Misfit(1, f"its {_name(pattern)} is of {dtype}, {here} of {expr.dtype}")
            worst = max((f for f in found if f is not None), key=lambda misfit: misfit.depth)
            return Misfit(worst.depth + 1, worst.text)


def _arguments(patterns: tuple[Expr, ...], exprs: tuple[Expr, ...]) -> Misfit | None:
    agreed = 0
    first: Misfit | None = None
    for pattern, expr in zip(patterns, exprs, strict=True):
        found = _difference(pattern, expr)
        agreed += found is None
        first = first or found
    return None if first is None else Misfit(first.depth + agreed, first.text)


def _name(op: Op) -> str:
    return f"{op.op}[{op.dtype}]" if op.op in ("cast", "sat") else f"'{op.op}'"
