"""Why an instruction whose body fits has no legal matching at all."""

from dataclasses import replace

from isamap.explain.explanation import Kind, Reason
from isamap.explain.places import axis_span
from isamap.ir.nodes import Access, Literal, Permissions, Statement
from isamap.ir.printer import print_expr
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import Bindings, Needles, not_constant, roots
from isamap.mapping.needles.pattern import bindings
from isamap.mapping.reasons import constant_text
from isamap.mapping.refused import MOST, why_refused
from isamap.mapping.tied import conflicts


def closed(
    statement: Statement, needle: Needle, index: Needles, permissions: Permissions
) -> tuple[Reason, ...]:
    """Return what keeps a needle with a fitting body from computing a statement.

    ``statement`` starts its variables at 0 and has its extents bound.
    """
    for candidate, operands in roots(statement, index):
        if candidate == needle:
            return _refused(statement, needle, operands, permissions) or unplaced(
                statement, needle, operands, permissions
            )
    return _constants(statement, needle, index)


def _refused(
    statement: Statement, needle: Needle, operands: Bindings, permissions: Permissions
) -> tuple[Reason, ...]:
    """Return what a table, a constraint or a whole reduction of the instruction does not allow."""
    matchings, _, _ = enumerate_matchings(
        statement, needle, operands, MOST, permissions=permissions
    )
    text = why_refused(statement, needle, matchings, permissions)
    if not text:
        return ()
    for name, expr in operands:
        operand = needle.operand(name)
        if operand.contents is not None and text.startswith(f"its table {name} "):
            return (Reason("literal", text, expr.span, operand.span),)
    return (Reason("extent", text, statement.span, needle.entry.span),)


def _constants(statement: Statement, needle: Needle, index: Needles) -> tuple[Reason, ...]:
    """Return the operands that the instruction takes only as constants, or as one register."""
    for bound in bindings(needle.value, statement.value):
        reasons = []
        shared = {name: bound[name] for name in needle.entry.same if name in bound}
        if len(set(shared.values())) > 1:
            names, texts = " and ".join(shared), " and ".join(map(print_expr, shared.values()))
            text = f"its operands {names} must be one register; here they are {texts}"
            last = list(shared)[-1]
            span = needle.operand(last).span
            reasons.append(Reason("operand", text, shared[last].span, span))
        for name, expr in bound.items():
            if needle.operand(name).contents is not None:
                known = isinstance(expr, Literal) or (
                    isinstance(expr, Access) and expr.contents is not None
                )
                if not known:
                    operand = needle.operand(name)
                    text = f"its table {name} is built in; {print_expr(expr)} is not known before "
                    text += "the code runs"
                    reasons.append(Reason("operand", text, expr.span, operand.span))
        for name, expr in not_constant(index, needle, bound).items():
            span = needle.operand(name).span
            reasons.append(Reason("operand", constant_text(name, expr), expr.span, span))
        if reasons:
            return tuple(reasons)
    text = "the matcher passes it over for a form of it that does the same"
    return (Reason("limit", text, statement.span, needle.entry.span),)


def unplaced(
    statement: Statement, needle: Needle, operands: Bindings, permissions: Permissions
) -> tuple[Reason, ...]:
    """Return what keeps a needle whose operands are bound from having any placement."""
    whole = problem(statement, needle, operands, permissions)
    if found := conflicts(statement, needle, operands, permissions):
        place = needle.value.span or needle.target.span
        return tuple(Reason(_law(v.law), v.message, statement.span, place) for v in found)
    if any(whole.is_open(filling) for filling in whole.fillings):
        text = "no placement of its axes was found within the limits"
        return (Reason("limit", text, statement.span, needle.entry.span),)
    filling = whole.fillings[0]
    open_axes = [
        name
        for n, name in enumerate(whole.axes)
        if all(any(n in whole.alone(t) for t in w) for w in whole.witnesses(filling))
    ]
    barred = [name for name in whole.axes if name not in open_axes]
    text = (
        f"law 4: it always does all of its axes, and padding {', '.join(barred)} would repeat "
        f"work: no constant in unused elements keeps '{needle.reduction}' silent"
    )
    span, place = statement.value.span, axis_span(needle, barred[0])
    reasons = [Reason("law 4", text, span, place)]
    if not permissions.finite:
        trusting = problem(statement, needle, operands, replace(permissions, finite=True))
        if any(trusting.is_open(f) for f in trusting.fillings):
            text = "the kernel says 'no finite': 0 times an unknown value may be NaN"
            span = dict(permissions.spans).get("finite", statement.span)
            reasons = [Reason("permission", text, span, place), *reasons]
    return tuple(reasons)


def _law(number: int) -> Kind:
    """Return the kind of reason that a broken law is."""
    match number:
        case 0:
            return "permission"
        case 1:
            return "law 1"
        case 2:
            return "law 2"
        case 5:
            return "law 5"
        case _:
            return "law 4"
