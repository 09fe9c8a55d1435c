"""Rules that compute a value in several statements: one for each operation, or the last one as
large as an instruction.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, names, operations
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.shape import Shapes, operands
from isamap.rewrite.shaped import generalised

NAME = "in-steps"
LAST = "last-step"


def in_steps(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a statement as several, with a local buffer for the result of each operation.

    ``Y[i, j] = max(X[i, j] * a[i] + b[j], 0)`` becomes

        Y_step[i, j] = X[i, j] * a[i]
        Y_step2[i, j] = Y_step[i, j] + b[j]
        Y[i, j] = max(Y_step2[i, j], 0)

    for machines whose instructions leave their results in memory, and so cannot follow each other
    in registers.  A reduction takes the last operation with it, or has it as a step, too.
    """
    statement = kernel.statements[number]
    root = statement.value
    if not isinstance(root, Op):
        return
    reduces = statement.reduction != "="
    for apart in (False, True) if reduces else (False,):
        if operations(root) > 1 or apart:
            with suppress(NoTermError):
                yield _stepwise(kernel, number, root, apart)


def _stepwise(kernel: Kernel, number: int, root: Op, apart: bool) -> Rewriting:
    """Return the steps; where ``apart``, the whole value is one."""
    statement = kernel.statements[number]
    steps = _Steps(kernel, statement.target.buffer, extents(statement))
    value = steps.result(root) if apart else steps.last(root)
    drafts = [
        *steps.drafts,
        Draft(statement.target, statement.reduction, value, extents(statement)),
    ]
    whole = steps.inlined(value)
    claim = f"{print_expr(root)} = {print_expr(whole)}, put together again"
    lemma = equal(NAME, claim, [generalised(root, whole)], "bits", kernel.permissions.finite)
    count = len(steps.drafts)
    note = (
        f"{print_expr(root)} in {count + 1} statements, each of one operation: the same operations "
        "on the same values"
    )
    return Rewriting(NAME, number, replaced(kernel, number, drafts, steps.buffers), (lemma,), note)


def last_step(shapes: Shapes) -> Rule:
    """Return the rule that leaves of a value what an instruction does; its operands come before.

    With an instruction of the shape ``sat[s8](f32(c) * scale)``,
    ``Y[i, j] = sat[s8](f32(X[i, j] + b[j]) * 0.5)`` becomes

        Y_step[i, j] = X[i, j] + b[j]
        Y[i, j] = sat[s8](f32(Y_step[i, j]) * 0.5)

    for machines on which registers of the one do not reach the other, but memory does.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        seen: set[frozenset[Expr]] = set()
        for shape in shapes.of(statement.target.dtype):
            if shape.reduction != statement.reduction or not isinstance(shape.value, Op):
                continue
            for bound in operands(shape.value, statement.value):
                values = [v for v in bound.values() if isinstance(v, Op) and accesses(v)]
                if values and frozenset(values) not in seen:
                    seen.add(frozenset(values))
                    with suppress(NoTermError):
                        yield _before(kernel, number, values)

    return rule


def _before(kernel: Kernel, number: int, values: Sequence[Op]) -> Rewriting:
    """Return a statement with some parts of its value computed beforehand."""
    statement = kernel.statements[number]
    steps = _Steps(kernel, statement.target.buffer, extents(statement))
    for value in dict.fromkeys(values):
        steps.add(value, value)
    last = steps.put(statement.value)
    drafts = [*steps.drafts, Draft(statement.target, statement.reduction, last, steps.sizes)]
    whole = steps.inlined(last)
    claim = f"{print_expr(statement.value)} = {print_expr(whole)}, put together again"
    terms = [generalised(statement.value, whole)]
    lemma = equal(LAST, claim, terms, "bits", kernel.permissions.finite)
    told = " and ".join(print_expr(value) for value in dict.fromkeys(values))
    note = f"{told} before the rest: the same operations on the same values"
    return Rewriting(LAST, number, replaced(kernel, number, drafts, steps.buffers), (lemma,), note)


class _Steps:
    """The statements before the last one, an operation each; the same operation is done once."""

    def __init__(self, kernel: Kernel, stem: str, sizes: Mapping[str, Index]) -> None:
        self.kernel = kernel
        self.stem = f"{stem}_step"
        self.sizes = sizes
        self.drafts: list[Draft] = []
        self.buffers: list[Buffer] = []
        self.known: dict[Expr, Access] = {}
        self.values: dict[str, Expr] = {}

    def last(self, expr: Op) -> Expr:
        """Return an operation on results of steps."""
        return replace(expr, args=tuple(map(self.result, expr.args)))

    def result(self, expr: Expr) -> Expr:
        """Return where the value of an expression is: a step's result, or what it reads."""
        if not isinstance(expr, Op) or not accesses(expr):
            return expr
        if expr not in self.known:
            self.add(expr, self.last(expr))
        return self.known[expr]

    def add(self, expr: Expr, value: Expr) -> None:
        """Add a statement for an expression, of a value that may have results of steps in it."""
        name = fresh(self.kernel, self.stem, [b.name for b in self.buffers])
        own = {v: size for v, size in self.sizes.items() if v in names(expr)}
        place = Access(name, tuple(map(var, own)), expr.dtype)
        self.buffers.append(local(name, expr.dtype, tuple(own.values())))
        self.drafts.append(Draft(place, "=", value, own))
        self.known[expr], self.values[name] = place, value

    def put(self, expr: Expr) -> Expr:
        """Return an expression with the results of the steps that there are put in."""
        if expr in self.known:
            return self.known[expr]
        if isinstance(expr, Op):
            return replace(expr, args=tuple(map(self.put, expr.args)))
        return expr

    def inlined(self, expr: Expr) -> Expr:
        """Return an expression with the steps' values in the place of their results."""
        match expr:
            case Access(buffer) if buffer in self.values:
                return self.inlined(self.values[buffer])
            case Op(_, args, _):
                return replace(expr, args=tuple(map(self.inlined, args)))
            case _:
                return expr
