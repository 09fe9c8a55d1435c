"""Sums that are written out: ``a[2*i]*b[2*i] + a[2*i + 1]*b[2*i + 1]`` is a sum over k < 2."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.ir.index import var
from isamap.ir.nodes import Access, Coordinate, Expr, Op
from isamap.ir.statements import accesses


def rolled(expr: Expr, axis: str) -> tuple[Expr, int] | None:
    """Return a term over a new axis and the number of terms of which ``expr`` is the sum.

    None unless all terms are one, at places that are equally far apart.
    """
    terms = list(_terms(expr))
    if len(terms) < 2:
        return None
    steps = _steps(terms[0], terms[1])
    if steps and min((s for step in steps for s in step), default=0) < 0:
        terms.reverse()
        steps = _steps(terms[0], terms[1])
    if not steps or not any(s for step in steps for s in step):
        return None
    for number, term in enumerate(terms):
        apart = _steps(terms[0], term)
        if apart != [tuple(number * s for s in step) for step in steps]:
            return None
    return _moved(terms[0], iter(steps), axis), len(terms)


def is_unrolled(expr: Expr) -> bool:
    """Return whether an expression may be a sum that is written out; cheap."""
    while isinstance(expr, Op) and expr.op in ("cast", "sat"):
        (expr,) = expr.args
    if not isinstance(expr, Op) or expr.op != "+":
        return False
    names = [access.buffer for access in accesses(expr)]
    return len(set(names)) < len(names)


def _terms(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Op("+", (first, second), _):
            yield from _terms(first)
            yield from _terms(second)
        case _:
            yield expr


def _steps(first: Expr, other: Expr) -> list[tuple[int, ...]] | None:
    """Return how far apart the indices of each access are; None if the terms are not alike."""
    match first, other:
        case Access(name, indices, dtype), Access(own, others, own_dtype):
            if name != own or dtype != own_dtype or len(indices) != len(others):
                return None
            apart = [(b - a).constant for a, b in zip(indices, others, strict=True)]
            known = tuple(step for step in apart if step is not None)
            return [known] if len(known) == len(apart) else None
        case Op(op, args, dtype), Op(own, own_args, own_dtype):
            if op != own or dtype != own_dtype or len(args) != len(own_args):
                return None
            found: list[tuple[int, ...]] = []
            for a, b in zip(args, own_args, strict=True):
                inner = _steps(a, b)
                if inner is None:
                    return None
                found += inner
            return found
        case _:
            same = first == other and not isinstance(first, Coordinate)
            return [] if same else None


def _moved(expr: Expr, steps: Iterator[tuple[int, ...]], axis: str) -> Expr:
    match expr:
        case Access(_, indices, _):
            apart = next(steps)
            moved = (index + var(axis) * s for index, s in zip(indices, apart, strict=True))
            return replace(expr, indices=tuple(moved))
        case Op(_, args, _):
            return replace(expr, args=tuple(_moved(arg, steps, axis) for arg in args))
        case _:
            return expr
