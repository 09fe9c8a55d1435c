"""The rule that computes in a wider type what a machine computes in no narrower one."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

from isamap.ir.dtype import DType
from isamap.ir.index import var
from isamap.ir.literal import canonical, value
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, names
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, fresh, is_sole_writer, local, replaced
from isamap.rewrite.copies import converted
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.shape import Shapes
from isamap.solver.lemma import Lemma

NAME = "widen-arithmetic"

_SAME = frozenset({"+", "-", "*", "neg", "min", "max", "abs", "select", "&", "|", "^"})
"""Operations that are done in the wider type; what else a value has is converted."""

_EXACT = frozenset({"neg", "min", "max", "abs", "select"})
"""Those of floats: they round nothing, so that a wider type makes no difference."""


def widening(shapes: Shapes) -> Rule:
    """Return the rule that widens arithmetic, for a machine's instructions.

    ``Y[p, c] max= X[p + r, c]`` of bytes becomes, where maxima are those of s32,

        Y_wide[p, c] max= s32(X[p + r, c])
        Y[p, c] = sat[s8](Y_wide[p, c])

    or the same with a conversion that wraps, and ``Y[i] = max(X[i], 0)`` likewise.  Of floats those
    operations are done so that round nothing: maxima of bf16 where there are those of f32.  A
    reduction must begin with nothing: the statement alone writes its target.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        narrow = statement.target.dtype
        if narrow.kind == "bool" or not _may_widen(kernel, number):
            return
        ways = ("sat", "cast") if narrow.is_integer else ("cast",)
        for wide, back in product(_wider(shapes, statement), ways):
            with suppress(NoTermError):
                yield _widened(kernel, number, wide, back)

    return rule


def _may_widen(kernel: Kernel, number: int) -> bool:
    """Return whether a statement does something in its type that could be done in another one."""
    statement = kernel.statements[number]
    target = statement.target
    if any(access.buffer == target.buffer for access in accesses(statement.value)):
        return False
    narrow = target.dtype
    if narrow.is_float and statement.reduction not in ("=", "min=", "max="):
        return False
    if statement.reduction == "=":
        return isinstance(statement.value, Op) and statement.value.op in _done_in(narrow)
    return statement.reduction != "*=" and is_sole_writer(kernel, number)


def _done_in(narrow: DType) -> frozenset[str]:
    return _EXACT if narrow.is_float else _SAME


def _holds(wide: DType, narrow: DType) -> bool:
    """Return whether a type has all values of another one, and more."""
    if wide.is_float != narrow.is_float or wide.kind == "bool":
        return False
    if narrow.is_float:
        more = wide.precision > narrow.precision
        return more and wide.max_exponent >= narrow.max_exponent
    return wide.lowest <= narrow.lowest and wide.highest > narrow.highest


def _wider(shapes: Shapes, statement: Statement) -> tuple[DType, ...]:
    """Return the wider types in which the machine has instructions, the narrowest first."""
    narrow = statement.target.dtype
    every = {one.target.dtype for one in shapes.statements}
    found = {dtype for dtype in every if _holds(dtype, narrow)}
    return tuple(sorted(found, key=lambda dtype: (dtype.bits, dtype.name)))


def _widened(kernel: Kernel, number: int, wide: DType, back: str) -> Rewriting:
    statement = kernel.statements[number]
    target, sizes = statement.target, extents(statement)
    narrow = target.dtype
    kept = [v.name for v in statement.variables if v.name in names(target)]
    name = fresh(kernel, f"{target.buffer}_wide")
    place = Access(name, tuple(map(var, kept)), wide)
    inner = _in(statement.value, narrow, wide)
    drafts = [
        Draft(place, statement.reduction, inner, sizes),
        Draft(target, "=", Op(back, (place,), narrow), {v: sizes[v] for v in kept}),
    ]
    buffer = local(name, wide, tuple(sizes[v] for v in kept))
    note = (
        f"{print_expr(statement.value)} in {wide}: what is {narrow} in the end is the same, as "
        + _why(narrow, back)
    )
    changed = replaced(kernel, number, drafts, [buffer])
    return Rewriting(NAME, number, changed, _lemmas(statement, inner, wide, back), note)


def _why(narrow: DType, back: str) -> str:
    if narrow.is_float:
        return "nothing is rounded"
    return "nothing in between leaves it" if back == "sat" else "the low bits are"


def _in(expr: Expr, narrow: DType, wide: DType) -> Expr:
    """Return an expression of the narrow type in the wide one, its operations done there."""
    match expr:
        case Op(op, args, dtype) if op in _done_in(narrow) and dtype == narrow:
            head = args[:1] if op == "select" else ()
            rest = (_in(arg, narrow, wide) for arg in args[len(head) :])
            return Op(op, (*head, *rest), wide)
        case Literal(text):
            exact = text if narrow.is_float else str(int(value(expr)))
            return Literal(canonical(exact, wide), wide)
        case _:
            return converted(expr, wide)


def _lemmas(statement: Statement, inner: Expr, wide: DType, back: str) -> tuple[Lemma, ...]:
    """Return what must hold: of the value, and of each step of a reduction.

    With ``sat``, and of floats, each value in between is one of the narrow type, widened; of
    integers with ``cast`` it is congruent to the right one.
    """
    narrow, own = statement.target.dtype, statement.value
    if statement.reduction == "=":
        whole = Op(back, (inner,), narrow)
        claim = f"{print_expr(whole)} = {print_expr(own)}"
        return (equal(NAME, claim, [(whole, own)], "bits"),)
    operation = REDUCTION_OPERATIONS[statement.reduction]
    a, b, t = (Access(n, (), dtype) for n, dtype in (("a", narrow), ("b", narrow), ("t", wide)))
    wide_b = Op("cast", (b,), wide)
    step: tuple[Expr, Expr]
    term: tuple[Expr, Expr]
    if back == "sat" or narrow.is_float:
        wide_a = Op("cast", (a,), wide)
        step = (
            Op(operation, (wide_a, wide_b), wide),
            Op("cast", (Op(operation, (a, b), narrow),), wide),
        )
        term = (inner, Op("cast", (own,), wide))
        done = (Op(back, (wide_a,), narrow), a)
    else:
        step = (
            Op(back, (Op(operation, (t, wide_b), wide),), narrow),
            Op(operation, (Op(back, (t,), narrow), b), narrow),
        )
        term = (Op(back, (inner,), narrow), own)
        done = (Op(back, (wide_b,), narrow), b)
    claim = f"{print_expr(step[0])} = {print_expr(step[1])}, and so for each term"
    return (equal(NAME, claim, [step, term, done], "bits"),)
