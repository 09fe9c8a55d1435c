"""What a mapping does to numbers: integers that cannot wrap, floats that round in another order."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, product
from isamap.ir.nodes import Expr, Kernel, Op, Permissions, Reduce, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import (
    Interval,
    Intervals,
    exact_interval_of,
    full,
    interval_of,
    intervals_before,
)
from isamap.ir.statements import reduction_variables
from isamap.mapping.checks.legal import violations
from isamap.mapping.matching import Matching
from isamap.proof.claim import Claim, Obligation, Open
from isamap.proof.roundings import rounding_steps, sum_bound
from isamap.proof.walk import number
from isamap.solver.lemma import Lemma


def integer_obligations(kernel: Kernel, at: int, name: str) -> Iterator[Obligation]:
    """Yield what is claimed of the integers of one statement of a kernel with bound extents.

    Integers wrap in the kernel's own meaning, too: where they may, equality modulo a power of two
    is what is claimed.
    """
    statement = kernel.statements[at]
    known = intervals_before(kernel, at)
    wrapping = [op for op in _operations(statement.value) if _may_wrap(op, statement, known)]
    if any(not op.dtype.is_float for op in _operations(statement.value)):
        if wrapping:
            told = ", ".join(dict.fromkeys(print_expr(op) for op in wrapping))
            claim = f"{told} may wrap or saturate, as in the kernel itself"
            yield Claim(name, "integers", claim, "intervals", "noted")
        else:
            claim = "no operation on the values of one iteration wraps or saturates"
            yield Claim(name, "integers", claim, "intervals", "proved")
    if not statement.target.dtype.is_float and statement.reduction == "+=":
        yield from _sum(statement, known, name)


def _operations(expr: Expr) -> Iterator[Op]:
    if isinstance(expr, Op):
        yield expr
        for arg in expr.args:
            yield from _operations(arg)
    elif isinstance(expr, Reduce):
        yield from _operations(expr.body)


def _may_wrap(op: Op, statement: Statement, known: Intervals) -> bool:
    if op.dtype.is_float or op.dtype.kind == "bool":
        return False
    if op.op == "sat":
        inner = interval_of(op.args[0], statement, known)
        return inner is None or not inner.fits(op.dtype)
    exact = exact_interval_of(op, statement, known)
    return exact is None or not exact.fits(op.dtype)


def _sum(statement: Statement, known: Intervals, name: str) -> Iterator[Obligation]:
    """Yield that no partial sum wraps, whatever the order, under a condition on their number."""
    dtype = statement.target.dtype
    term = interval_of(statement.value, statement, known)
    assert term is not None, "the value has the type of the target"
    count = _terms(statement)
    start = known.get(statement.target.buffer, full(dtype)) if _resumes(statement, known) else None
    limit = _longest(term, start or Interval(0, 0), dtype)
    target = statement.target.buffer
    if limit is None or (count.constant is not None and count.constant <= limit):
        claim = f"no partial sum of {target} leaves {dtype}, in any order"
        yield Open(name, _in_range(claim, term, start, dtype, count, None))
        return
    if count.constant is None and limit > 0:
        claim = f"no partial sum of {target} leaves {dtype} while {count} <= {limit}"
        yield Open(name, _in_range(claim, term, start, dtype, count, limit))
    claim = f"sums in {dtype} do not depend on their order, wrapped ones included"
    yield Open(name, _any_order(claim, dtype))
    note = f"sums of {target} may wrap, as in the kernel itself"
    yield Claim(name, "integers", note, "intervals", "noted", detail=f"terms are in {term}")


def _terms(statement: Statement) -> Index:
    """Return how many terms an element of a sum has at most."""
    # Several iterations of the target's own variables may reach one element, too.
    plain = all(index.name is not None for index in statement.target.indices)
    inner = reduction_variables(statement) if plain else [v.name for v in statement.variables]
    return product(v.extent for v in statement.variables if v.name in inner)


def _resumes(statement: Statement, known: Intervals) -> bool:
    """Return whether the target may hold something when the statement begins."""
    return statement.target.buffer in known


def _longest(term: Interval, start: Interval, dtype: DType) -> int | None:
    """Return how many terms can be added without leaving the type; None: any number."""
    limits = []
    if term.high > 0:
        limits.append((dtype.highest - start.high) // term.high)
    if term.low < 0:
        limits.append((start.low - dtype.lowest) // -term.low)
    return min(limits) if limits else None


def _in_range(
    claim: str,
    term: Interval,
    start: Interval | None,
    dtype: DType,
    count: Index,
    limit: int | None,
) -> Lemma:
    most = limit if limit is not None else count.constant
    begin = start or Interval(0, 0)
    lines = ["(declare-const terms Int)", "(declare-const start Int)", "(declare-const sum Int)"]
    lines.append("(assert (<= 0 terms))")
    if most is not None:
        lines.append(f"(assert (<= terms {most}))")
    lines += [
        # A partial sum may begin from nothing, or from what was there.
        f"(assert (or (= start 0) (and (<= {number(begin.low)} start) "
        f"(<= start {number(begin.high)}))))",
        f"(assert (and (<= (* {number(term.low)} terms) sum) "
        f"(<= sum (* {number(term.high)} terms))))",
        f"(assert (not (and (<= {number(dtype.lowest)} (+ start sum)) "
        f"(<= (+ start sum) {number(dtype.highest)}))))",
    ]
    return Lemma("integers", claim, "\n".join(lines))


def _any_order(claim: str, dtype: DType) -> Lemma:
    lines = [f"(declare-const {name} (_ BitVec {dtype.bits}))" for name in "abc"]
    grouped = "(= (bvadd (bvadd a b) c) (bvadd a (bvadd b c)))"
    lines.append(f"(assert (not (and {grouped} (= (bvadd a b) (bvadd b a)))))")
    return Lemma("integers", claim, "\n".join(lines))


# --- floats -------------------------------------------------------------------------------------
def float_notes(matching: Matching, permissions: Permissions, name: str) -> Iterator[Claim]:
    """Yield what a mapping does to the rounding of a statement, and by which permission."""
    statement = matching.statement
    yield from rounding_steps(statement, name)
    if statement.target.dtype.is_float and statement.reduction in ("+=", "*="):
        inner = reduction_variables(statement)
        moving = [v.name for v in statement.variables if v.name in inner and v.extent != const(1)]
        kind = "sum" if statement.reduction == "+=" else "product"
        if not moving:
            pass
        elif permissions.reassociate:
            text = f"the {kind} over {', '.join(moving)} may be taken in another order"
            detail = f"every step rounds to {statement.target.dtype}"
            if kind == "sum":
                bound = sum_bound(statement.target.dtype, _terms(statement))
                detail += f": {bound}"
            detail += "; permission: reassociate"
            yield Claim(name, "floats", text, "none", "noted", detail=detail)
        else:
            text = f"the {kind} over {', '.join(moving)} is taken in the kernel's order"
            yield Claim(name, "floats", text, "none", "noted")
    if permissions.finite and violations(matching, replace(permissions, finite=False)):
        text = "zero times an element that pads is taken for zero"
        detail = "inputs are neither infinite nor NaN; permission: finite"
        yield Claim(name, "floats", text, "none", "assumed", detail=detail)
