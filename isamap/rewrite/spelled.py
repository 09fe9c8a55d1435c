"""Rules that spell an operation out in others, which vectors of more machines have."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from isamap.ir.dtype import DTYPES
from isamap.ir.literal import canonical
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, remade, replaced
from isamap.rewrite.ordered import chain_of
from isamap.rewrite.rule import Rewriting, Rule
from isamap.solver.lemma import Lemma

BY_SELECT, BY_MAX, BY_SUB = "bool-by-select", "abs-by-max", "neg-by-sub"
BY_LIMITS, BY_SAT, BY_SUM = "sat-by-limits", "limits-by-sat", "sub-by-add"
IN_STEPS = "sat-in-steps"


def _selected(expr: Op) -> Expr | None:
    """Return ``select(b, 1, 0)`` for a truth value ``b`` that is converted to a number."""
    if expr.op != "cast" or expr.args[0].dtype.kind != "bool" or expr.dtype.kind == "bool":
        return None
    one, zero = (Literal(canonical(text, expr.dtype), expr.dtype) for text in "10")
    return Op("select", (expr.args[0], one, zero), expr.dtype)


def _larger(expr: Op) -> Expr | None:
    """Return ``max(x, 0 - x)`` for the size of an integer, the least of which has none."""
    if expr.op != "abs" or expr.dtype.kind != "signed":
        return None
    (signed,) = expr.args
    return Op("max", (signed, _negative(signed)), expr.dtype)


def _subtracted(expr: Op) -> Expr | None:
    """Return ``0 - x`` for the negative of an integer."""
    return _negative(expr.args[0]) if expr.op == "neg" and expr.dtype.is_integer else None


def _added(expr: Op) -> Expr | None:
    """Return ``x + (0 - c)`` for ``x - c`` where ``c`` is a number: its negative is one, too."""
    first, *rest = expr.args
    if expr.op != "-" or not rest or not isinstance(rest[0], Literal):
        return None
    number, own = rest[0], expr.dtype
    if own.is_float:
        text = number.text.removeprefix("-") if number.text.startswith("-") else f"-{number.text}"
        if number.text == "nan":
            return None
        return Op("+", (first, Literal(text, own)), own)
    wrapped = -int(number.text) % (1 << own.bits)
    wrapped -= (1 << own.bits) * (wrapped > own.highest)
    return Op("+", (first, Literal(canonical(str(wrapped), own), own)), own)


def _limited(expr: Op) -> Expr | None:
    """Return ``T(min(max(x, low), high))`` for an integer that saturates to T."""
    found = expr.args[0]
    own, to = found.dtype, expr.dtype
    if expr.op != "sat" or not own.is_integer:
        return None
    for op, limit, matters in (
        ("max", to.lowest, own.lowest < to.lowest),
        ("min", to.highest, own.highest > to.highest),
    ):
        if matters:
            found = Op(op, (found, Literal(canonical(str(limit), own), own)), own)
    return Op("cast", (found,), to)


def _saturated(expr: Op) -> Expr | None:
    """Return ``sat[T](x)`` for ``T(min(max(x, low), high))`` of integers with the limits of T.

    Limits that leave less come after it.
    """
    inner, to = expr.args[0], expr.dtype
    if expr.op != "cast" or not (to.is_integer and inner.dtype.is_integer):
        return None
    chain = chain_of(inner)
    limits = tuple(takewhile(lambda step: step.is_limit, chain.steps))
    found: Expr = Op("sat", (chain.value(len(limits)),), to)
    ends = inner.dtype.lowest, inner.dtype.highest
    for step in reversed(limits):
        pick, number = (max if step.op.op == "max" else min), int(step.number)
        ends = pick(ends[0], number), pick(ends[1], number)
        if pick(to.lowest, number) != to.lowest or pick(to.highest, number) != to.highest:
            if not to.lowest <= number <= to.highest:
                return None
            found = Op(step.op.op, (found, Literal(canonical(str(number), to), to)), to)
    fits = to.lowest <= ends[0] and ends[1] <= to.highest
    return found if fits and limits else None


def _by_steps(expr: Op) -> Expr | None:
    """Return ``sat[s8](sat[s32](x))`` for ``sat[s8](x)`` of a float."""
    (inner, to), wide = (expr.args[0], expr.dtype), DTYPES["s32"]
    if (
        expr.op != "sat"
        or not inner.dtype.is_float
        or not to.is_integer
        or to.highest >= wide.highest
    ):
        return None
    return Op("sat", (Op("sat", (inner,), wide),), to)


def _negative(expr: Expr) -> Expr:
    return Op("-", (Literal(canonical("0", expr.dtype), expr.dtype), expr), expr.dtype)


def _spelling(name: str, spell: Callable[[Op], Expr | None], note: str) -> tuple[str, Rule]:
    """Return the rule that spells out each operation of a statement for which ``spell`` knows how.

    The solver is asked whether each has the same value, bit for bit, whatever it is applied to.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        found: dict[Op, Expr] = {}

        def spelled(expr: Op) -> Expr | None:
            other = spell(expr)
            if other is not None:
                found[expr] = other
            return other

        own = remade(statement.value, spelled)
        if not found:
            return
        draft = Draft(statement.target, statement.reduction, own, extents(statement))
        with suppress(NoTermError):
            lemmas = [_lemma(name, one, other) for one, other in found.items()]
            rewritten = replaced(kernel, number, [draft])
            yield Rewriting(name, number, rewritten, tuple(dict.fromkeys(lemmas)), note)

    return name, rule


def _lemma(name: str, one: Op, other: Expr) -> Lemma:
    """Return the lemma that two expressions are the same, what both hold being unknown."""
    unknown: dict[Expr, Access] = {}

    def look(expr: Expr) -> None:
        if isinstance(expr, Literal):
            return
        if _holds(other, expr):
            place = Access(f"x{len(unknown)}:{expr.dtype}", (), expr.dtype)
            unknown.setdefault(expr, place)
        elif isinstance(expr, Op):
            for arg in expr.args:
                look(arg)

    def bare(expr: Expr) -> Expr:
        if expr in unknown or not isinstance(expr, Op):
            return unknown.get(expr, expr)
        return replace(expr, args=tuple(map(bare, expr.args)))

    for arg in one.args:
        look(arg)
    claim = f"{print_expr(one)} = {print_expr(other)}"
    return equal(name, claim, [(bare(one), bare(other))], "bits", signed_zeros=True)


def _holds(expr: Expr, part: Expr) -> bool:
    """Return whether an expression is, or has in it, another one."""
    args = expr.args if isinstance(expr, Op) else ()
    return expr == part or any(_holds(arg, part) for arg in args)


SPELLED = (
    _spelling(
        BY_SELECT, _selected, "1 where something is true and 0 where it is not: the same number"
    ),
    _spelling(BY_MAX, _larger, "the larger one of an integer and of zero less it"),
    _spelling(BY_SUB, _subtracted, "zero less an integer is its negative"),
    _spelling(BY_SUM, _added, "less a number is as much as plus its negative"),
    _spelling(
        BY_SAT, _saturated, "a number between the limits of its type is what saturates to it"
    ),
    _spelling(
        IN_STEPS, _by_steps, "what saturates to a type saturates to one that holds more before"
    ),
    _spelling(BY_LIMITS, _limited, "between the limits of its type a number is converted as it is"),
)
"""The rules, each with its name."""
