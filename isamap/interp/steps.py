"""Sums as an instruction takes them, step by step, where its description says how."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from isamap.interp.declared import Declared
from isamap.interp.exact import exact_sum, sticky, two_sum
from isamap.interp.rounding import F32, F64, Values, to_f32_odd
from isamap.interp.setup import box_of, split
from isamap.ir.dtype import DType
from isamap.ir.nodes import Expr, Instruction, Literal, Op, Statement
from isamap.ir.numeric import Numeric
from isamap.ir.statements import substitute_expr

_STEPS = frozenset({"+", "-", "*", "/", "fma", "sqrt"})
_SIGNS = frozenset({"neg", "abs", "select"})  # they look at no number
_ONCE = "sum of products"  # of pairs of arguments, rounded once
_LEAST = 2.0**-126  # of the f32 that are not subnormal


def spelled_out(
    instruction: Instruction, numeric: Numeric, symbols: Mapping[str, int]
) -> Instruction:
    """Return an instruction whose sums of floats are written term by term, as they are taken."""
    values = {e.name: e.value for e in instruction.extents if e.value is not None} | dict(symbols)
    written: set[str] = set()
    statements = []
    for statement in instruction.statements:
        fresh = statement.target.buffer not in written
        fresh &= instruction.operand(statement.target.buffer).role in ("out", "local")
        written.add(statement.target.buffer)
        statements.append(_spelled(statement, numeric, values, fresh))
    return replace(instruction, statements=tuple(statements))


def _spelled(
    statement: Statement, numeric: Numeric, symbols: Mapping[str, int], fresh: bool
) -> Statement:
    target, dtype = statement.target, statement.target.dtype
    if not dtype.is_float or statement.reduction not in ("=", "+="):
        return statement
    if statement.reduction == "=":
        return replace(statement, value=_fused(statement.value)) if numeric.fused else statement
    box = box_of(statement, symbols)
    outer, reduced = split(statement, box)
    ranges = {name: range(low, low + count) for name, low, count in reduced}
    listed = [(name, order) for name, order in numeric.sums if name in ranges]
    others = [name for name in ranges if name not in dict(listed)]
    plan = [(name, "ascending") for name in others] + listed
    begin: Expr | None = None if fresh else target
    total = _sum(statement.value, plan, ranges, numeric, begin)
    kept = {name for name, _, _ in outer}
    variables = tuple(v for v in statement.variables if v.name in kept)
    assert total is not None
    return replace(statement, reduction="=", value=total, variables=variables)


def _sum(
    term: Expr,
    plan: Sequence[tuple[str, str]],
    ranges: Mapping[str, range],
    numeric: Numeric,
    total: Expr | None,
) -> Expr | None:
    """Return ``total`` and the terms over the variables of a plan; no total begins with a term."""
    if not plan:
        return _plus(total, term, numeric)
    (name, order), rest = plan[0], plan[1:]
    if (size := dict(numeric.groups).get(name)) is not None and order != "apart":
        for start in range(ranges[name].start, ranges[name].stop, size):
            part = range(start, min(start + size, ranges[name].stop))
            group = {**ranges, name: part}
            total = _sum(term, [(name, "apart"), *rest], group, numeric, total)
        return total
    values: Iterable[int] = ranges[name]
    if order in ("ascending", "descending"):
        for value in values if order == "ascending" else reversed(ranges[name]):
            total = _sum(substitute_expr(term, {name: value}), rest, ranges, numeric, total)
        return total
    begin = Literal("0", term.dtype) if numeric.zero and not rest else None
    if order == "once":
        # Whatever is summed inside of it is a part of the one sum.
        names = [name, *(inner for inner, _ in rest)]
        points = product(*(ranges[inner] for inner in names))
        terms = [substitute_expr(term, dict(zip(names, point, strict=True))) for point in points]
        own: Expr | None = Op(_ONCE, tuple(f for t in terms for f in _pair(t)), term.dtype)
    elif order == "apart":
        own = begin
        for value in values:
            own = _sum(substitute_expr(term, {name: value}), rest, ranges, numeric, own)
    else:
        own = _tree(
            [_sum(substitute_expr(term, {name: v}), rest, ranges, numeric, begin) for v in values],
            order,
        )
    return own if total is None or own is None else Op("+", (total, own), total.dtype)


def _tree(parts: list[Expr | None], order: str) -> Expr | None:
    while len(parts) > 1:
        half = len(parts) // 2
        first = parts[:half] if order == "halves" else parts[0 : 2 * half : 2]
        second = parts[half : 2 * half] if order == "halves" else parts[1 : 2 * half : 2]
        rest = parts[2 * half :]
        pairs = zip(first, second, strict=True)
        parts = [Op("+", (a, b), a.dtype) for a, b in pairs if a is not None and b is not None]
        parts += rest
    return parts[0] if parts else None


def _plus(total: Expr | None, term: Expr, numeric: Numeric) -> Expr:
    if total is None:
        return term
    added = Op("+", (total, term), total.dtype)
    return _fused(added) if numeric.fused else added


def _fused(expr: Expr) -> Expr:
    """Return an expression whose products are not rounded before they are added."""
    match expr:
        case Op("+" | "-" as op, (a, b), dtype):
            a, b = _fused(a), _fused(b)
            if (factors := _factors(b, op == "-")) is not None:
                return Op("fma", (*factors, a), dtype)
            if (factors := _factors(a, False)) is not None:
                return Op("fma", (*factors, b if op == "+" else Op("neg", (b,), dtype)), dtype)
            return replace(expr, args=(a, b))
        case Op(args=args):
            return replace(expr, args=tuple(_fused(a) for a in args))
        case _:
            return expr


def _factors(expr: Expr, negative: bool) -> tuple[Expr, Expr] | None:
    match expr:
        case Op("*", (a, b), dtype):
            return (Op("neg", (a,), dtype), b) if negative else (a, b)
        case Op("neg", (inner,), _):
            return _factors(inner, not negative)
        case _:
            return None


def _pair(term: Expr) -> tuple[Expr, Expr]:
    """Return two expressions whose product a term is."""
    return _factors(term, False) or (term, Literal("1", term.dtype))


@dataclass(frozen=True, slots=True)
class Stepped(Declared):
    """The declared types, with steps in f32 rounded or flushed as described."""

    numeric: Numeric = field(default_factory=Numeric)

    def operation(
        self, op: str, arguments: tuple[DType, ...], result: DType
    ) -> Callable[..., Values]:
        """Return the function that computes an operation, rounded once."""
        if op == _ONCE:
            assert result.bits == 32, "only sums in f32 are exact"
            return lambda *values: self._step(op, *values)
        plain = super(Stepped, self).operation(op, arguments, result)
        if op not in _STEPS or not result.is_float:
            widens = op == "cast" and not (result.is_float and result.bits < 32)
            if op in _SIGNS or widens or arguments[0].name != "f32":
                return plain
            return lambda *values: plain(*(self._taken(np.asarray(v)) for v in values))
        if self.numeric.rounding == "nearest" and self.numeric.flush == "never":
            return plain
        assert result.bits == 32, "only steps in f32 are rounded otherwise"
        return lambda *values: self._step(op, *values)

    def _step(self, op: str, *values: Values) -> Values:
        wide = [self._taken(np.asarray(v)).astype(F64) for v in values]
        match op:
            case "*":
                exact = wide[0] * wide[1]  # two significands of 24 bits
            case "fma":
                exact = sticky(*two_sum(wide[0] * wide[1], wide[2]))
            # Ratios and roots of 24 bits are never as near to 25 bits as f64 rounds.
            case "/":
                exact = wide[0] / wide[1]
            case "sqrt":
                exact = np.sqrt(wide[0])
            case "sum of products":
                exact = exact_sum([a * b for a, b in zip(wide[::2], wide[1::2], strict=True)])
            case _:
                exact = sticky(*two_sum(wide[0], -wide[1] if op == "-" else wide[1]))
        return self._given(np.asarray(exact))

    def _taken(self, x: Values) -> Values:
        return x if self.numeric.flush == "never" else _flushed(x, np.abs(x) < _LEAST)

    def _given(self, exact: Values) -> Values:
        if self.numeric.rounding == "odd":
            found = to_f32_odd(exact)
            # Truncation stays below infinity, but what is too large for any exponent does not.
            found = np.where(np.abs(exact) >= 2.0**128, exact.astype(F32), found)
        else:
            found = exact.astype(F32)
        if self.numeric.flush != "never":
            scaled = np.abs(exact) * 2.0**64  # far from the ends of exponents
            rounds = self.numeric.flush == "after" and self.numeric.rounding == "nearest"
            near = scaled.astype(F32) if rounds else scaled
            found = _flushed(found, near < _LEAST * 2.0**64)
        return np.asarray(found, F32)


def _flushed(x: Values, tiny: Values) -> Values:
    return np.asarray(np.where(tiny, np.copysign(np.zeros_like(x), x), x))
