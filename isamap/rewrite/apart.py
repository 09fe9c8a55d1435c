"""A sum of several monomials, summed apart: the terms of each over the variables that it has."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Kernel, Op, Statement
from isamap.ir.statements import accesses, names, read_indices, reduction_variables
from isamap.rewrite.build import Draft, extents, fresh, local
from isamap.rewrite.polynomial import Monomial, product_of, sum_of


@dataclass(frozen=True, slots=True)
class Apart:
    """Statements, and the local buffers that they write, in the place of one statement."""

    drafts: tuple[Draft, ...]
    locals: tuple[Buffer, ...]
    sums: tuple[str, ...]
    """The names of the locals that hold sums of their own."""


def is_plain_sum(statement: Statement) -> bool:
    """Return whether a statement adds integers to a target that its value does not read."""
    read = {access.buffer for access in accesses(statement.value)}
    for index in (*read_indices(statement.value), *statement.target.indices):
        read |= {inner.buffer for inner in index.reads}
    whole = statement.reduction == "+=" and statement.target.dtype.is_integer
    return whole and statement.target.buffer not in read


def summed_apart(
    kernel: Kernel, number: int, found: Sequence[Monomial], taken: Sequence[str] = ()
) -> Apart:
    """Return the statements that add a sum of monomials to the target of a ``+=`` of integers.

    A factor moves if it uses reduced variables, of which there is at least one.  The monomial of
    :func:`main_of` stays a statement on the target.  Of each other one, the factors that move are
    summed into a local buffer of the target's variables that they use; the factors that do not
    move, the coefficients, and for factors that lack reduced variables the number of their points,
    multiply that sum in one statement.  All of this is the linearity of sums in the integers modulo
    the type's size.
    """
    statement = kernel.statements[number]
    dtype, sizes = statement.target.dtype, extents(statement)
    reduced = set(reduction_variables(statement))
    groups: dict[tuple[Expr, ...], list[tuple[int, tuple[Expr, ...]]]] = {}
    for monomial in found:
        moving = _moving(monomial, reduced)
        still = tuple(f for f in monomial.factors if not names(f) & reduced)
        groups.setdefault(moving, []).append((monomial.coefficient, still))
    main = main_of(found, reduced)
    drafts: list[Draft] = []
    buffers: list[Buffer] = []
    terms: list[tuple[int, tuple[Expr, ...]]] = []
    for moving, parts in groups.items():
        if main is not None and moving == main.factors:
            continue
        used = frozenset().union(*(names(f) for f in moving)) & sizes.keys()
        repeats = [sizes[v] for v in sizes if v in reduced and v not in used]
        if moving:
            name = fresh(kernel, "Sum", [*taken, *(b.name for b in buffers)])
            own = [v for v in sizes if v in used and v not in reduced]
            place = Access(name, tuple(map(var, own)), dtype)
            buffers.append(local(name, dtype, [sizes[v] for v in own]))
            drafts.append(
                Draft(place, "+=", product_of(moving), {v: sizes[v] for v in sizes if v in used})
            )
            counted: tuple[Expr, ...] = (place,)
        else:
            counted = ()
        times, symbols = _count(repeats, dtype)
        terms += [(c * times, (*still, *counted, *symbols)) for c, still in parts]
    if terms:
        own_sizes = {v: size for v, size in sizes.items() if v not in reduced}
        drafts.append(Draft(statement.target, "+=", sum_of(terms, dtype), own_sizes))
    if main is not None:
        drafts.append(Draft(statement.target, "+=", product_of(main.factors), sizes))
    return Apart(tuple(drafts), tuple(buffers), tuple(b.name for b in buffers))


def main_of(found: Sequence[Monomial], reduced: Collection[str]) -> Monomial | None:
    """Return the product that the machine's instructions are for; None if there is none.

    It has most factors, two at least that move, no coefficient, and uses all reduced variables.
    """
    best: Monomial | None = None
    for monomial in found:
        moving = [names(f) & set(reduced) for f in monomial.factors]
        whole = frozenset().union(*moving) == frozenset(reduced)
        alone = [m for m in found if _moving(m, reduced) == _moving(monomial, reduced)]
        if monomial.coefficient == 1 and all(moving) and whole and len(alone) == 1:
            larger = best is None or len(moving) > len(best.factors)
            best = monomial if len(moving) > 1 and larger else best
    return best


def _moving(monomial: Monomial, reduced: Collection[str]) -> tuple[Expr, ...]:
    return tuple(f for f in monomial.factors if names(f) & set(reduced))


def _count(repeats: Sequence[Index], dtype: DType) -> tuple[int, tuple[Expr, ...]]:
    """Return a number of points as a number and, for symbols, factors."""
    numbers = [size.constant for size in repeats if size.constant is not None]
    rest = product(size for size in repeats if size.constant is None)
    if rest == const(1):
        return prod(numbers), ()
    return prod(numbers), (Op("cast", (Coordinate(rest, DTYPES["s64"]),), dtype),)
