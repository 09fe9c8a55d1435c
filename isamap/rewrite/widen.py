"""The rule that computes in a wider type what a machine computes in no narrower one."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product

from isamap.ir.constraint import COMPARISONS
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
"""Those of floats that round nothing, so that a wider type makes no difference."""

_ROUNDED = frozenset({"+", "-", "*"})
"""Those of floats that are rounded to a wider type then, and their result once in the end."""


def widening(shapes: Shapes) -> Rule:
    """Return the rule that widens arithmetic, for a machine's instructions.

    ``Y[p, c] max= X[p + r, c]`` of bytes becomes, where maxima are those of s32,

        Y_wide[p, c] max= s32(X[p + r, c])
        Y[p, c] = sat[s8](Y_wide[p, c])

    or the same with a conversion that wraps, and ``Y[i] = max(X[i], 0)`` likewise.  So are floats
    of less than 32 bits: maxima of bf16 where there are those of f32, and where the kernel permits
    to reassociate, sums and products, which are rounded to bf16 in the end only.  A reduction must
    begin with nothing: the statement alone writes its target.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        narrow = statement.target.dtype
        if narrow.kind == "bool" or (narrow.is_float and narrow.bits >= 32):
            return
        if not _may_widen(kernel, number):
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
    if statement.reduction == "=":
        done = _done_in(kernel, target.dtype)
        return isinstance(statement.value, Op) and statement.value.op in done
    if target.dtype.is_float and statement.reduction == "+=" and not _may_round(kernel):
        return False
    return statement.reduction != "*=" and is_sole_writer(kernel, number)


def _done_in(kernel: Kernel, narrow: DType) -> frozenset[str]:
    if not narrow.is_float:
        return _SAME
    return _EXACT | _ROUNDED if _may_round(kernel) else _EXACT


def _may_round(kernel: Kernel) -> bool:
    """Return whether floats may be rounded otherwise than each operation says."""
    return kernel.permissions.reassociate and kernel.permissions.finite


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
    order = sorted(found, key=lambda dtype: (dtype.bits, dtype.name))
    return tuple(order[:1] if narrow.is_float else order)


def _widened(kernel: Kernel, number: int, wide: DType, back: str) -> Rewriting:
    statement = kernel.statements[number]
    target, sizes = statement.target, extents(statement)
    narrow = target.dtype
    kept = [v.name for v in statement.variables if v.name in names(target)]
    name = fresh(kernel, f"{target.buffer}_wide")
    place = Access(name, tuple(map(var, kept)), wide)
    done = _done_in(kernel, narrow)
    inner = _in(statement.value, narrow, wide, done)
    drafts = [
        Draft(place, statement.reduction, inner, sizes),
        Draft(target, "=", Op(back, (place,), narrow), {v: sizes[v] for v in kept}),
    ]
    buffer = local(name, wide, tuple(sizes[v] for v in kept))
    note = (
        f"{print_expr(statement.value)} in {wide}: what is {narrow} in the end is the same, as "
        + _why(statement, back)
    )
    changed = replaced(kernel, number, drafts, [buffer])
    return Rewriting(NAME, number, changed, _lemmas(statement, inner, wide, back), note)


def _rounds(statement: Statement) -> bool:
    """Return whether a statement in floats rounds something on the way to its result."""
    return statement.reduction == "+=" or bool(_ROUNDED & set(_operations(statement.value)))


def _operations(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Op):
        yield expr.op
        for arg in expr.args:
            yield from _operations(arg)


def _why(statement: Statement, back: str) -> str:
    if statement.target.dtype.is_float:
        return "but for roundings on the way" if _rounds(statement) else "nothing is rounded"
    return "nothing in between leaves it" if back == "sat" else "the low bits are"


def _in(expr: Expr, narrow: DType, wide: DType, done: frozenset[str]) -> Expr:
    """Return an expression of the narrow type in the wide one, its operations done there."""
    match expr:
        case Op("select", (condition, *args), dtype) if "select" in done and dtype == narrow:
            head = _decided(condition, narrow, wide)
            return Op("select", (head, *(_in(arg, narrow, wide, done) for arg in args)), wide)
        case Op(op, args, dtype) if op in done and dtype == narrow:
            return Op(op, tuple(_in(arg, narrow, wide, done) for arg in args), wide)
        case Literal(text):
            number = text if narrow.is_float else str(int(value(expr)))
            return Literal(canonical(number, wide), wide)
        case _:
            return converted(expr, wide)


def _decided(condition: Expr, narrow: DType, wide: DType) -> Expr:
    """Return a condition whose comparisons of the narrow type are those of the wide one.

    What is compared has its own value: a sum that wraps or is rounded is not computed there.
    """
    same = _EXACT if narrow.is_float else frozenset[str]()
    match condition:
        case Op(op, args, dtype) if op in COMPARISONS and args[0].dtype == narrow:
            return Op(op, tuple(_in(arg, narrow, wide, same) for arg in args), dtype)
        case Op(op, args, dtype) if dtype.kind == "bool":
            return Op(op, tuple(_decided(arg, narrow, wide) for arg in args), dtype)
        case _:
            return condition


def _lemmas(statement: Statement, inner: Expr, wide: DType, back: str) -> tuple[Lemma, ...]:
    """Return what must hold: of the value, and of each step of a reduction.

    With ``sat``, and of floats, each value in between is one of the narrow type, widened; of
    integers with ``cast`` it is congruent to the right one.
    """
    narrow, own = statement.target.dtype, statement.value
    if narrow.is_float and _rounds(statement):
        return _rounded(statement, _spelled(inner, narrow), wide)
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


def _spelled(expr: Expr, narrow: DType) -> Expr:
    """Return an expression whose literals are those of the narrow type, converted: each type
    contains them, but the shortest text of one in f32 is another number than that in bf16."""
    match expr:
        case Literal(text, dtype) if dtype.is_float:
            return Op("cast", (Literal(canonical(text, narrow), narrow),), dtype)
        case Op(args=args):
            return replace(expr, args=tuple(_spelled(arg, narrow) for arg in args))
        case _:
            return expr


def _rounded(statement: Statement, inner: Expr, wide: DType) -> tuple[Lemma, ...]:
    """Return that a value, and each step of a reduction, is the same if nothing is rounded."""
    narrow, own = statement.target.dtype, Op("cast", (statement.value,), wide)
    pairs: list[tuple[Expr, Expr]] = [(inner, own)]
    if statement.reduction != "=":
        operation = REDUCTION_OPERATIONS[statement.reduction]
        a, b = (Access(name, (), narrow) for name in "ab")
        each = (Op("cast", (a,), wide), Op("cast", (b,), wide))
        whole = Op("cast", (Op(operation, (a, b), narrow),), wide)
        pairs.append((Op(operation, each, wide), whole))
    claim = f"{print_expr(inner)} = {print_expr(own)}, of real numbers"
    return (equal(NAME, claim, pairs, "reals"),)
