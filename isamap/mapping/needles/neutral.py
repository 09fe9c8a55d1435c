"""What an instruction computes while some of its operands hold constants that change nothing.

A unit that multiplies, adds a bias and clamps is a plain multiplier where the bias is 0 and the
bounds are infinite.
"""

from dataclasses import replace

from isamap.ir.nodes import Access, Expr, Literal, Op, Reduce
from isamap.ir.statements import accesses, identity

MOST_FORMS = 64
"""Forms of one instruction at most."""

Fixed = tuple[tuple[Access, Literal], ...]
"""Operands that hold constants."""

_RIGHT_ONLY = frozenset(("-", "/", "<<", ">>"))


def neutral_forms(value: Expr) -> tuple[tuple[Expr, Fixed], ...]:
    """Return the body and what is left of it as operands become neutral, the body itself first.

    An operand that occurs at several places is left alone, and so is one inside a reduction.
    """
    found: dict[Expr, Fixed] = {value: ()}
    pending = [value]
    while pending and len(found) < MOST_FORMS:
        expr = pending.pop(0)
        names = [access.buffer for access in accesses(expr)]
        for smaller, access, literal in _smaller(expr):
            if names.count(access.buffer) == 1 and smaller not in found:
                found[smaller] = (*found[expr], (access, literal))
                pending.append(smaller)
    return tuple(found.items())


def _smaller(expr: Expr) -> list[tuple[Expr, Access, Literal]]:
    """Return what an expression becomes as one operand becomes neutral, with its constant."""
    if not isinstance(expr, Op):
        return []
    found: list[tuple[Expr, Access, Literal]] = []
    if len(expr.args) == 2:
        left, right = expr.args
        for kept, given, second in ((left, right, True), (right, left, False)):
            if not isinstance(given, Access) or isinstance(kept, Literal):
                continue
            literal = _neutral(expr.op, given, kept, second)
            if literal is not None and kept.dtype == expr.dtype:
                found.append((kept, given, literal))
    for n, arg in enumerate(expr.args):
        for smaller, access, literal in _smaller(arg):
            args = (*expr.args[:n], smaller, *expr.args[n + 1 :])
            found.append((replace(expr, args=args), access, literal))
    return found


def _neutral(op: str, given: Access, kept: Expr, second: bool) -> Literal | None:
    """Return the constant with which an operation gives its other argument, bit for bit."""
    dtype = given.dtype
    if op in _RIGHT_ONLY and not second:
        return None
    match op:
        case "+" | "-" if dtype.is_float:
            # x + 0 makes 0 of -0, which x + -0 does not; a sum that begins with 0 is never -0.
            positive = op == "-" or (isinstance(kept, Reduce) and kept.reduction == "+=")
            return Literal("0.0" if positive else "-0.0", dtype)
        case "+" | "-" | "<<" | ">>" | "|" | "^":
            return identity("or=", dtype)
        case "*" | "/":
            return identity("*=", dtype)
        case "&":
            return identity("and=", dtype)
        case "max" | "min":
            return identity("max=" if op == "max" else "min=", dtype)
        case _:
            return None
