"""Where floats round: the steps of an iteration, and how far a sum may lie from the exact one."""

from collections.abc import Iterator

from isamap.ir.dtype import DType
from isamap.ir.index import Index
from isamap.ir.nodes import Access, Expr, Op, Reduce, Statement
from isamap.proof.claim import Claim

_EXACT = frozenset({"neg", "abs", "max", "min", "select", "round", "floor", "ceil", "trunc"})
"""Operations whose result is a value of their type whatever the arguments are."""


def rounding_steps(statement: Statement, name: str) -> Iterator[Claim]:
    """Yield which operations of one iteration round, if there are operations on floats."""
    steps = [op for op in _operations(statement.value) if op.dtype.is_float]
    if not steps:
        return
    rounding = [op for op in steps if _rounds(op)]
    told = ", ".join(dict.fromkeys(map(_text, rounding)))
    text = f"an iteration rounds at: {told}" if told else "no step of an iteration rounds"
    fused = statement.reduction == "+=" and any(op.op == "*" for op in rounding)
    detail = "a fused multiply-add does not round the product" if fused else ""
    yield Claim(name, "floats", text, "none", "noted", detail=detail)


def sum_bound(dtype: DType, terms: Index) -> str:
    """Return how far the sum of some terms, in any order, lies from their exact sum.

    Each of ``terms`` additions rounds by at most a factor within 1 +- u, u the unit roundoff: with
    g = terms*u the error is at most g/(1 - g) times the magnitudes of what is added.
    """
    count = str(terms) if terms.constant is not None or terms.name else f"({terms})"
    return (
        f"off by at most g/(1 - g) of the terms' magnitudes, g = {count} * 2^-{dtype.precision}, "
        "where nothing underflows"
    )


def _operations(expr: Expr) -> Iterator[Op]:
    if isinstance(expr, Op):
        for arg in expr.args:
            yield from _operations(arg)
        yield expr
    elif isinstance(expr, Reduce):
        yield from _operations(expr.body)


def _text(op: Op) -> str:
    return f"{'conversion' if op.op == 'cast' else op.op} to {op.dtype}"


def _rounds(op: Op) -> bool:
    """Return whether the result of an operation may be no value of its type."""
    if op.op in _EXACT:
        return False
    held = [_significant(arg) for arg in op.args]
    match op.op:
        case "cast":
            return _is_narrower(op.dtype, op.args[0].dtype)
        case "*":
            return None in held or sum(h for h in held if h) > op.dtype.precision
        case _:
            return True


def _significant(expr: Expr) -> int | None:
    """Return how many significant bits a value has at most, None if that is not known."""
    match expr:
        case Op("cast", (inner,), dtype) if not _is_narrower(dtype, inner.dtype):
            return _significant(inner)
        case Access(_, _, dtype):
            return dtype.precision if dtype.is_float else dtype.bits
        case _:
            return None


def _is_narrower(dtype: DType, source: DType) -> bool:
    """Return whether some value of ``source`` is none of the float ``dtype``."""
    if not source.is_float:
        return source.bits > dtype.precision
    return source.precision > dtype.precision or source.max_exponent > dtype.max_exponent
