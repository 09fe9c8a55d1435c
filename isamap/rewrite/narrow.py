"""Arithmetic whose every result fits a narrower integer type is done in that type.

Ranges come from declared ``values``, padding, and intervals through earlier statements
(:mod:`isamap.ir.ranges`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from isamap.ir.dtype import DType
from isamap.ir.literal import value
from isamap.ir.nodes import Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Interval, Intervals, exact_interval_of, interval_of, intervals_before
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.copies import converted, narrow_types, with_part
from isamap.rewrite.polynomial import integer, literal, symbol
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

_ARITHMETIC = frozenset({"+", "-", "*", "neg", "min", "max", "abs", "select"})


def narrow_arithmetic(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with each region of integer arithmetic in each narrower type it fits.

    A region is a largest expression of one type made of ``+ - *``, ``min``, ``max``, ``abs``,
    negation and ``select``.  It fits if no operation in it leaves either type.
    """
    statement = kernel.statements[number]
    known = intervals_before(kernel, number)
    for region in dict.fromkeys(_regions(statement.value)):
        for dtype in _narrower(region.dtype, statement):
            narrowed = _Narrowed(statement, known, dtype)
            inner = narrowed.of(region)
            if inner is None:
                continue
            changed = with_part(statement.value, region, inner)
            draft = Draft(statement.target, statement.reduction, changed, extents(statement))
            old, new = print_expr(region), print_expr(inner)
            note = f"{old} in {dtype}: no result leaves {dtype} for {narrowed.given}"
            lemma = narrowed.lemma(f"no operation of {new} leaves {dtype} for {narrowed.given}")
            yield Rewriting(
                "narrow-arithmetic", number, replaced(kernel, number, [draft]), (lemma,), note
            )


# --- arithmetic -----------------------------------------------------------------------------------
def _regions(expr: Expr) -> Iterator[Op]:
    match expr:
        case Op(op, args, dtype) if op in _ARITHMETIC and dtype.is_integer:
            yield expr
            for leaf in _leaves(expr):
                yield from _regions(leaf)
        case Op(_, args, _):
            for arg in args:
                yield from _regions(arg)
        case _:
            pass


def _leaves(expr: Op) -> Iterator[Expr]:
    args = expr.args[1:] if expr.op == "select" else expr.args
    if expr.op == "select":
        yield expr.args[0]
    for arg in args:
        if isinstance(arg, Op) and arg.op in _ARITHMETIC:
            yield from _leaves(arg)
        else:
            yield arg


def _narrower(wide: DType, statement: Statement) -> Iterator[DType]:
    return (dtype for dtype in narrow_types(statement) if dtype.bits < wide.bits)


@dataclass(slots=True)
class _Narrowed:
    """A region in a narrower type, and the claim that nothing in it leaves that type."""

    statement: Statement
    known: Intervals
    dtype: DType
    unknown: dict[Expr, Interval] = field(default_factory=dict)
    conditions: dict[Expr, str] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def of(self, expr: Expr) -> Expr | None:
        """Return an expression in the narrower type; None if it does not fit."""
        match expr:
            case Op(op, args, wide) if op in _ARITHMETIC:
                exact = exact_interval_of(expr, self.statement, self.known)
                if exact is None or not (exact.fits(wide) and exact.fits(self.dtype)):
                    return None
                head = args[:1] if op == "select" else ()
                found = [self.of(arg) for arg in args[len(head) :]]
                inner = tuple(part for part in found if part is not None)
                if len(inner) < len(found):
                    return None
                self.results.append(self._term(expr))
                return Op(op, (*head, *inner), self.dtype)
            case _:
                return self._leaf(expr)

    @property
    def given(self) -> str:
        """The ranges of what the region reads."""
        parts = (f"{print_expr(e)} in {i}" for e, i in self.unknown.items())
        return ", ".join(parts) or "its literals"

    def lemma(self, claim: str) -> Lemma:
        """Return the lemma that every operation of the region stays in the narrower type."""
        lines = [f"(declare-const {name} Bool)" for name in self.conditions.values()]
        for leaf, interval in self.unknown.items():
            name = symbol(leaf)
            lines.append(f"(declare-const {name} Int)")
            lines.append(f"(assert (<= {integer(interval.low)} {name} {integer(interval.high)}))")
        low, high = integer(self.dtype.lowest), integer(self.dtype.highest)
        outside = [f"(not (<= {low} {result} {high}))" for result in self.results]
        lines.append(f"(assert (or false {' '.join(outside)}))")
        return Lemma("narrower type", claim, "\n".join(lines) + "\n")

    def _leaf(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Literal):
            number = int(value(expr))
            fits = self.dtype.lowest <= number <= self.dtype.highest
            return literal(number, self.dtype) if fits else None
        interval = interval_of(expr, self.statement, self.known)
        if interval is None or not interval.fits(self.dtype):
            return None
        self.unknown[expr] = interval
        return converted(expr, self.dtype)

    def _term(self, expr: Expr) -> str:
        match expr:
            case Literal():
                return integer(int(value(expr)))
            case Op("select", (condition, a, b), _):
                self.conditions.setdefault(condition, symbol(condition))
                return f"(ite {symbol(condition)} {self._term(a)} {self._term(b)})"
            case Op("neg", (a,), _):
                return f"(- {self._term(a)})"
            case Op("abs", (a,), _):
                return f"(abs {self._term(a)})"
            case Op("min" | "max", (a, b), _):
                x, y = self._term(a), self._term(b)
                return f"(ite ({'<=' if expr.op == 'min' else '>='} {x} {y}) {x} {y})"
            case Op("+" | "-" | "*", (a, b), _):
                return f"({expr.op} {self._term(a)} {self._term(b)})"
            case _:
                return symbol(expr)
