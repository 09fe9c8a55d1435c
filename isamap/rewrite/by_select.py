"""The rule that makes numbers of truth values by selecting, which vectors of more machines do."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from isamap.ir.literal import canonical
from isamap.ir.nodes import Expr, Kernel, Literal, Op
from isamap.ir.printer import print_expr
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.rule import Rewriting

NAME = "bool-by-select"


def bool_by_select(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``select(b, 1, 0)`` for each truth value ``b`` that is converted to a number."""
    statement = kernel.statements[number]
    value = _by_select(statement.value)
    if value == statement.value:
        return
    draft = Draft(statement.target, statement.reduction, value, extents(statement))
    claim = f"{print_expr(statement.value)} = {print_expr(value)}"
    with suppress(NoTermError):
        lemma = equal(NAME, claim, [(statement.value, value)], "bits")
        note = "1 where something is true and 0 where it is not: the same number"
        yield Rewriting(NAME, number, replaced(kernel, number, [draft]), (lemma,), note)


def _by_select(expr: Expr) -> Expr:
    match expr:
        case Op("cast", (truth,), dtype) if truth.dtype.kind == "bool" and dtype.kind != "bool":
            one, zero = (Literal(canonical(text, dtype), dtype) for text in "10")
            return Op("select", (_by_select(truth), one, zero), dtype)
        case Op(args=args):
            return replace(expr, args=tuple(map(_by_select, args)))
        case _:
            return expr
