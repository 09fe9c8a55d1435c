"""A region of integer arithmetic in another type, where no result in it leaves either type."""

from dataclasses import dataclass, field

from isamap.ir.dtype import DType
from isamap.ir.literal import value
from isamap.ir.nodes import Expr, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Interval, Intervals, exact_interval_of, interval_of
from isamap.rewrite.copies import converted
from isamap.rewrite.polynomial import integer, literal, symbol
from isamap.solver.lemma import Lemma

ARITHMETIC = frozenset({"+", "-", "*", "neg", "min", "max", "abs", "select"})
"""Operations that give the same integer in every type that holds their results."""


@dataclass(slots=True)
class Retyped:
    """Makes an expression of the type ``source`` one of the type ``dtype``, and the lemma for it.

    Made for one expression.
    """

    statement: Statement
    known: Intervals
    source: DType
    dtype: DType
    unknown: dict[Expr, Interval] = field(default_factory=dict)
    conditions: dict[Expr, str] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def of(self, expr: Expr) -> Expr | None:
        """Return an expression in the other type; None if it does not fit."""
        match expr:
            case Op(op, args, _) if op in ARITHMETIC:
                exact = exact_interval_of(expr, self.statement, self.known)
                if exact is None or not (exact.fits(self.source) and exact.fits(self.dtype)):
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

    def part(self, expr: Expr) -> Expr | None:
        """Return an expression in the other type, None if its values do not fit; literals stay."""
        if isinstance(expr, Literal):
            return None
        before = dict(self.unknown), dict(self.conditions), list(self.results)
        found = self.of(expr)
        if found is None:
            self.unknown, self.conditions, self.results = before
        else:
            self.results.append(self._term(expr))
        return found

    @property
    def given(self) -> str:
        """The ranges of what the region reads."""
        parts = (f"{print_expr(e)} in {i}" for e, i in self.unknown.items())
        return ", ".join(parts) or "its literals"

    def lemma(self, claim: str) -> Lemma:
        """Return the lemma that every operation of the region stays in both types."""
        lines = [f"(declare-const {name} Bool)" for name in self.conditions.values()]
        for leaf, interval in self.unknown.items():
            name = symbol(leaf)
            lines.append(f"(declare-const {name} Int)")
            lines.append(f"(assert (<= {integer(interval.low)} {name} {integer(interval.high)}))")
        low = integer(max(self.source.lowest, self.dtype.lowest))
        high = integer(min(self.source.highest, self.dtype.highest))
        outside = [f"(not (<= {low} {result} {high}))" for result in self.results]
        lines.append(f"(assert (or false {' '.join(outside)}))")
        return Lemma("no result leaves its type", claim, "\n".join(lines) + "\n")

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
