"""The claims of a composition, about the operands of one statement: proved, or a reason to refuse.

A sum of at most n numbers that all lie in an interval with 0, each at most 1/n of what a type
holds, fits the type.  So a claim is a lemma about one term: for all operands within their ranges,
n times the term is a value of the type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from isamap.ir.nodes import Access, Expr, Literal, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Interval, Intervals, full, interval_of
from isamap.ir.statements import accesses
from isamap.mapping.compose.composed import Condition, claims_of
from isamap.mapping.compose.sums import RING, Claim, holds, sum_bounds
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import Bindings
from isamap.mapping.needles.pieces import Apply, Leaf, Value, leaves
from isamap.solver.lemma import Lemma, Verdict, prove


@dataclass(frozen=True, slots=True)
class Refused:
    """A composition that computes a statement for some values of its operands, but not for all."""

    instruction: str
    reason: str
    needle: Needle = field(compare=False, repr=False)
    operands: Bindings = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.instruction}: {self.reason}"


def conditions(
    needle: Needle, bound: Bindings, statement: Statement, known: Intervals
) -> tuple[Condition, ...] | Refused:
    """Return the claims of a composition for one binding, each proved, or why one is not.

    ``known`` are the values of the kernel's buffers when the statement begins.
    """
    operands = dict(bound)
    proved = []
    for claim in claims_of(needle):
        ranges = _values(claim, operands, statement, known)
        text = _text(claim, operands)
        lemma = _lemma(claim, ranges, text)
        verdict = _verdict(lemma)
        if verdict.verdict != "proved":
            reason = _reason(claim, text, ranges, operands, known, verdict)
            return Refused(needle.name, reason, needle, bound)
        proved.append(Condition(f"{text} ({_ranges(ranges, operands)})", lemma))
    return tuple(proved)


def hold(needle: Needle, bound: Bindings, statement: Statement, known: Intervals) -> bool:
    """Return whether the claims of a composition follow from the ends of its operands; cheap."""
    operands = dict(bound)
    for claim in claims_of(needle):
        ranges = _values(claim, operands, statement, known)
        if not holds(claim, {name: (r.low, r.high) for name, r in ranges.items()}):
            return False
    return True


def _values(
    claim: Claim, operands: Mapping[str, Expr], statement: Statement, known: Intervals
) -> dict[str, Interval]:
    return {
        name: interval_of(operands[name], statement, known) or full(leaf.dtype)
        for name, leaf in leaves(claim.body).items()
    }


@lru_cache(maxsize=1024)
def _verdict(lemma: Lemma) -> Verdict:
    return prove(lemma)


def _lemma(claim: Claim, ranges: Mapping[str, Interval], text: str) -> Lemma:
    lines = [f"(declare-const |{name}| Int)" for name in ranges]
    lines += [f"(assert (<= {_int(r.low)} |{n}| {_int(r.high)}))" for n, r in ranges.items()]
    others: list[str] = []
    term = _term(claim.body, others)
    lines += others
    total = f"(* {claim.count} {term})"
    # A place that no iteration uses adds 0, which every type has.
    lines.append(f"(assert (not (<= {_int(claim.low)} {total} {_int(claim.high)})))")
    return Lemma("a sum in sequence fits its type", text, "\n".join(lines))


def _term(value: Value, others: list[str]) -> str:
    """Return a whole number as a term; what has no term is any value of its type."""
    match value:
        case Leaf(operand, _, _):
            return f"|{operand}|"
        case Literal(text, _):
            return _int(int(text))
        case Apply("neg", (inner,), _):
            return f"(- {_term(inner, others)})"
        case Apply(op, (first, second), _) if op in RING:
            return f"({op} {_term(first, others)} {_term(second, others)})"
        case _:
            name, ends = f"other {len(others)}", full(value.dtype)
            others.append(
                f"(declare-const |{name}| Int)"
                f" (assert (<= {_int(ends.low)} |{name}| {_int(ends.high)}))"
            )
            return f"|{name}|"


def _int(number: int) -> str:
    return str(number) if number >= 0 else f"(- {-number})"


def _text(claim: Claim, operands: Mapping[str, Expr]) -> str:
    """Return a claim in the kernel's own names."""
    term = _shown(claim.body, operands)
    what = f"{claim.count} terms {term} sum to" if claim.count > 1 else f"{term} is"
    return f"{what} a value of {claim.dtype}, {claim.low} .. {claim.high}"


def _shown(value: Value, operands: Mapping[str, Expr]) -> str:
    match value:
        case Leaf(operand, _, _):
            return print_expr(operands[operand])
        case Literal(text, _):
            return text
        case Apply("neg", (inner,), _):
            return f"-({_shown(inner, operands)})"
        case Apply(op, (first, second), _) if op in RING:
            return f"{_shown(first, operands)} {op} {_shown(second, operands)}"
        case Apply(op, args, _):
            return f"{op}({', '.join(_shown(arg, operands) for arg in args)})"
        case _:
            raise AssertionError("claims hold no reductions")


def _ranges(ranges: Mapping[str, Interval], operands: Mapping[str, Expr]) -> str:
    found = dict.fromkeys(f"{print_expr(operands[name])} in {r}" for name, r in ranges.items())
    return ", ".join(found)


def _reason(
    claim: Claim,
    text: str,
    ranges: Mapping[str, Interval],
    operands: Mapping[str, Expr],
    known: Intervals,
    verdict: Verdict,
) -> str:
    ends = sum_bounds(claim, {name: (r.low, r.high) for name, r in ranges.items()})
    open_ = dict.fromkeys(
        access.buffer
        for name in ranges
        for access in accesses(operands[name])
        if isinstance(access, Access) and access.buffer not in known
    )
    found = f"with {_ranges(ranges, operands)} they reach {ends[0]} .. {ends[1]}" if ends else ""
    if verdict.verdict == "unknown":
        found = f"the solver left that open ({verdict.reason})"
    hint = f"; declared 'values' of {', '.join(open_)} may exclude that" if open_ else ""
    return f"it needs that {text}; {found}{hint}"
