"""The rule that computes a sigmoid by an exponential, which vectors of more machines have."""

from collections.abc import Iterator
from fractions import Fraction

from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.build import Draft, extents, remade, replaced
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import real
from isamap.solver.lemma import Lemma

NAME = "sigmoid-by-exp"

REPLACED = "sigmoid"
"""The operation that it replaces."""

EXP = 4
"""What an exponential may be off by, in units of the roundoff of its type (docs/meaning.md)."""


def sigmoid_by_exp(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``1 / (1 + exp(-x))`` for ``sigmoid(x)``.

    Its error must be permitted, and values be finite.  Nothing is said of an ``x`` so low that the
    exponential overflows: the result is 0 then, where a sigmoid is no normal number.
    """
    statement = kernel.statements[number]
    found = tuple(dict.fromkeys(_sigmoids(statement.value)))
    permitted = kernel.permissions.approximate
    if not found or permitted is None or not kernel.permissions.finite:
        return
    errors = [_error(one.dtype.precision) for one in found]
    if max(errors) > permitted:
        return
    own = remade(statement.value, _by_exp)
    draft = Draft(statement.target, statement.reduction, own, extents(statement))
    digits = dict.fromkeys(one.dtype.precision for one in found)
    lemmas = tuple(lemma for one in digits for lemma in _lemmas(one))
    told = ", ".join(print_expr(one) for one in found)
    note = (
        f"{told} by exponentials: relative error at most {float(max(errors)):.2g}, where it is a "
        f"normal number; the kernel permits {float(permitted):.2g}"
    )
    yield Rewriting(NAME, number, replaced(kernel, number, [draft]), lemmas, note)


def _sigmoids(expr: Expr) -> Iterator[Op]:
    if isinstance(expr, Op):
        for arg in expr.args:
            yield from _sigmoids(arg)
        if expr.op == REPLACED:
            yield expr


def _by_exp(expr: Op) -> Expr | None:
    if expr.op != REPLACED:
        return None
    kind = expr.dtype
    one = Literal(canonical("1", kind), kind)
    power = Op("exp", (Op("neg", expr.args, kind),), kind)
    return Op("/", (one, Op("+", (one, power), kind)), kind)


def _error(digits: int) -> Fraction:
    """Return the relative error of 1 / (1 + t) where t is an exponential and all is rounded."""
    unit = Fraction(1, 1 << digits)
    return (1 + unit) / ((1 - EXP * unit) * (1 - unit)) - 1


def _lemmas(digits: int) -> Iterator[Lemma]:
    """Yield the lemmas that the roundings leave the error that is told.

    With w = t / (1 + t), which is between 0 and 1, an error a of t is one of w a in 1 + t.
    """
    unit, bound = Fraction(1, 1 << digits), _error(digits)
    size = f"2^-{digits}"
    lines = [f"(declare-const {name} Real)" for name in "taw"]
    lines.append("(assert (and (> t 0.0) (= (* w (+ 1.0 t)) t)))")
    share = "(= (+ 1.0 (* t (+ 1.0 a))) (* (+ 1.0 t) (+ 1.0 (* w a))))"
    lines.append(f"(assert (not (and (< 0.0 w) (< w 1.0) {share})))")
    claim = "an error a of t is one of w a in 1 + t, for w = t / (1 + t) between 0 and 1"
    yield Lemma(NAME, claim, "\n".join(lines) + "\n")
    lines = [f"(declare-const {name} Real)" for name in ("d", "b", "c")]
    lines.append(f"(assert (<= (abs d) {real(EXP * unit)}))")
    lines += [f"(assert (<= (abs {name}) {real(unit)}))" for name in "bc"]
    # The result over the sigmoid is (1 + c) / ((1 + d) (1 + b)), with d = w a.
    below = "(* (+ 1.0 d) (+ 1.0 b))"
    most, least = real(1 + bound), real(1 - bound)
    inside = f"(and (<= (+ 1.0 c) (* {most} {below})) (>= (+ 1.0 c) (* {least} {below})))"
    lines.append(f"(assert (not {inside}))")
    claim = (
        f"1 / (1 + t), with t off by {EXP} {size} and two roundings by {size}, is off by at most "
        f"{float(bound):.3g}"
    )
    yield Lemma(NAME, claim, "\n".join(lines) + "\n")
