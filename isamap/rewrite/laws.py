"""What lets the terms of a reduction be taken in any order."""

from isamap.ir.nodes import Access, Expr, Kernel, Op, Statement
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, identity
from isamap.rewrite.arithmetic import Model, equal
from isamap.solver.lemma import Lemma


def may_reorder(kernel: Kernel, statement: Statement) -> bool:
    """Return whether the terms of a reduction may be taken in any order and grouping."""
    if statement.reduction == "=":
        return False
    operation = REDUCTION_OPERATIONS[statement.reduction]
    floats = statement.target.dtype.is_float and operation in "+*"
    if floats and not kernel.permissions.reassociate:
        return False
    target = statement.target
    if any(access.buffer == target.buffer for access in accesses(statement.value)):
        return False
    return not any(index.reads for index in target.indices)


def laws(kernel: Kernel, statement: Statement) -> tuple[Lemma, ...]:
    """Return what lets terms be taken in any order, in groups that begin with the identity."""
    dtype, reduction = statement.target.dtype, statement.reduction
    operation = REDUCTION_OPERATIONS[reduction]
    assert OPERATIONS[operation].associative
    x, y, z = (Access(name, (), dtype) for name in "xyz")
    start = identity(reduction, dtype)

    def both(a: Expr, b: Expr) -> Expr:
        return Op(operation, (a, b), dtype)

    found: tuple[tuple[str, Expr, Expr], ...] = (
        ("associative", both(both(x, y), z), both(x, both(y, z))),
        ("commutative", both(x, y), both(y, x)),
        ("identity", both(start, x), x),
    )
    # Where nothing rounds, the laws hold of the very bits.
    model: Model = "reals" if operation in "+*" else "bits"
    finite = kernel.permissions.finite
    return tuple(equal(law, _claim(a, b), [(a, b)], model, finite) for law, a, b in found)


def repeated(kernel: Kernel, statement: Statement) -> Lemma:
    """Return the lemma that a term of a reduction may be taken more than once."""
    operation = REDUCTION_OPERATIONS[statement.reduction]
    assert OPERATIONS[operation].idempotent
    x = Access("x", (), statement.target.dtype)
    twice = Op(operation, (x, x), x.dtype)
    finite = kernel.permissions.finite
    return equal("idempotent", _claim(twice, x), [(twice, x)], "bits", finite)


def _claim(a: Expr, b: Expr) -> str:
    return f"{print_expr(a)} = {print_expr(b)} for all {a.dtype}".replace("[]", "")
