"""Aligning the leaves of an instruction's body: operands and constants."""

from dataclasses import replace
from fractions import Fraction

from isamap.explain.alignment import Alignment, conversion_effect
from isamap.explain.explanation import Reason
from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.ir.printer import print_expr
from isamap.ir.statements import reduces


def leaf(name: str, dtype: DType, pattern: Access, expr: Expr) -> Alignment:
    """Align an operand with an expression, which may be of another type."""
    if reduces(expr):
        text = f"its operand {name} would be {print_expr(expr)}, which is half computed"
        reason = Reason("operand", text, expr.span, pattern.span)
        return Alignment(3, (reason,), None, ((name, expr),))
    if dtype == expr.dtype:
        return Alignment(0, (), expr, ((name, expr),))
    text = f"its operand {name} is {dtype}, {print_expr(expr)} is {expr.dtype}"
    if {dtype.kind, expr.dtype.kind} == {"signed", "unsigned"} and dtype.bits == expr.dtype.bits:
        text += ": one is signed, the other is not"
    changed: Expr = Op("cast", (expr,), dtype)
    if isinstance(expr, Literal):
        changed = _retyped(expr, dtype) or changed
    reason = Reason("type", text, expr.span, pattern.span)
    effect = conversion_effect(expr.dtype, dtype)
    step = f"convert {print_expr(expr)} to {dtype}"
    return Alignment(1, (reason,), changed, ((name, changed),), effect, (step,))


def constant(pattern: Literal, expr: Expr) -> Alignment:
    """Align a constant of the instruction with what stands in its place."""
    if pattern == expr:
        return Alignment(0, (), expr)
    text = f"its {pattern.text} is {print_expr(expr)} here"
    reason = Reason("literal", text, expr.span, pattern.span)
    alike = isinstance(expr, Literal) and expr.dtype == pattern.dtype
    changed = replace(pattern, span=None) if alike else None
    step = f"write {pattern.text} for {print_expr(expr)}"
    return Alignment(1 if alike else 2, (reason,), changed, (), "different", (step,))


def neutral_operand(pattern: Expr, value: Literal) -> tuple[str, Expr, Expr] | None:
    """Return the operand of ``pattern`` and the constant in it that makes it worth ``value``."""
    match pattern:
        case Access(name, _, dtype) if dtype == value.dtype:
            return name, value, value
        case Op("cast", (Access(name, _, dtype),), target) if target == value.dtype:
            inner = _retyped(value, dtype)
            return None if inner is None else (name, inner, Op("cast", (inner,), target))
    return None


def _retyped(literal: Literal, dtype: DType) -> Literal | None:
    """Return the same small number as a literal of another type, None if it has none."""
    try:
        number = Fraction(literal.text)
    except ValueError:
        return None
    if number.denominator != 1 or dtype.kind == "bool":
        return None
    if dtype.is_integer:
        return Literal(str(number), dtype) if dtype.lowest <= number <= dtype.highest else None
    return Literal(f"{number}.0", dtype) if abs(number) <= 4 else None
