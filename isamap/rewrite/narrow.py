"""Arithmetic whose every result fits a narrower integer type is done in that type.

Ranges come from declared ``values``, padding, and intervals through earlier statements
(:mod:`isamap.ir.ranges`).
"""

from collections.abc import Iterator

from isamap.ir.dtype import DType
from isamap.ir.nodes import Expr, Kernel, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import intervals_before
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.copies import narrow_types, with_part
from isamap.rewrite.retype import ARITHMETIC, Retyped
from isamap.rewrite.rule import Rewriting


def narrow_arithmetic(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with each region of integer arithmetic in each narrower type it fits.

    A region is a largest expression of one type made of ``+ - *``, ``min``, ``max``, ``abs``,
    negation and ``select``.  It fits if no operation in it leaves either type.
    """
    statement = kernel.statements[number]
    known = intervals_before(kernel, number)
    for region in dict.fromkeys(_regions(statement.value)):
        for dtype in narrower(region.dtype, statement):
            narrowed = Retyped(statement, known, region.dtype, dtype)
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
        case Op(op, args, dtype) if op in ARITHMETIC and dtype.is_integer:
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
        if isinstance(arg, Op) and arg.op in ARITHMETIC:
            yield from _leaves(arg)
        else:
            yield arg


def narrower(wide: DType, statement: Statement) -> Iterator[DType]:
    """Yield the narrower integer types that are tried in a statement."""
    return (dtype for dtype in narrow_types(statement) if dtype.bits < wide.bits)
