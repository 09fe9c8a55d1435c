"""The rule that computes a product of several factors step by step, through local buffers."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import prod

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op, Reduction, Statement
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, identity, names, read_indices, used_names
from isamap.rewrite.arithmetic import NoTermError, equal
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.shape import chain
from isamap.solver.lemma import Lemma

NAME = "contract"

MOST_FACTORS = 5
"""Factors of a product whose orders are all tried."""

ASSUMED_EXTENT = 256
"""What a symbolic extent is taken for."""

_ORDERED = ("max=", "min=")


@dataclass(frozen=True, slots=True)
class _Term:
    """A factor, or the product of some, reduced over all variables that no other factor has.

    ``names`` are the variables that are left; ``operations`` are what computing it takes, with its
    parts; ``parts`` are what it is the product of, none for a factor as it is.
    """

    factors: frozenset[int]
    names: frozenset[str]
    operations: int
    parts: tuple["_Term", ...] = ()


def contract(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement as several, in the order with the fewest operations.

    ``Y[i, l] += A[i, j] * B[j, k] * C[k, l]`` becomes ``T[i, k] += A[i, j] * B[j, k]`` and
    ``Y[i, l] += T[i, k] * C[k, l]``; likewise for every product that distributes over its
    reduction.  Nothing is yielded where no order needs fewer operations than the statement.
    Sums of floats are taken out of products only with the permission to distribute.
    """
    statement = kernel.statements[number]
    split = _split(statement)
    if split is None:
        return
    op, factors = split
    permissions = kernel.permissions
    floats = statement.value.dtype.is_float
    if floats and not permissions.reassociate:
        return
    # Rounding keeps order, so that a maximum is the same before it and after it.
    exact = not floats or statement.reduction in _ORDERED
    best = _best(statement, factors, exact or permissions.distribute)
    drafts, buffers = _drafts(kernel, statement, op, factors, best)
    if not buffers:
        return
    reduced = any(draft.reduction != "=" for draft in drafts[:-1])
    with suppress(NoTermError):
        lemmas = _lemmas(statement, op, permissions.finite, reduced)
        steps = "; ".join(
            f"{print_expr(d.target)} {d.reduction} {print_expr(d.value)}" for d in drafts
        )
        before = (len(factors) - 1) * prod(_number(e) for e in extents(statement).values())
        permission = "distribute" if reduced and not exact else "reassociate"
        why = f"the kernel permits to {permission}" if floats else "the same value in any order"
        note = f"{steps}: {best.operations} multiplications for {before}; {why}"
        yield Rewriting(NAME, number, replaced(kernel, number, drafts, buffers), lemmas, note)


def _split(statement: Statement) -> tuple[str, tuple[Expr, ...]] | None:
    """Return the operation and the factors of a product that is reduced, or None."""
    value = statement.value
    if statement.reduction == "=" or not isinstance(value, Op):
        return None
    if (
        not OPERATIONS[value.op].associative
        or value.op == REDUCTION_OPERATIONS[statement.reduction]
    ):
        return None
    factors = chain(value, value.op)
    if len(factors) > MOST_FACTORS or any(f.dtype != value.dtype for f in factors):
        return None
    if any(access.buffer == statement.target.buffer for access in accesses(value)):
        return None
    if any(index.reads for f in factors for index in read_indices(f)):
        return None
    return value.op, factors


def _best(statement: Statement, factors: tuple[Expr, ...], reduce: bool) -> _Term:
    """Return the product of all factors in the order that takes the fewest operations.

    Unless ``reduce``, only the last step reduces.
    """
    sizes = {v.name: _number(v.extent) for v in statement.variables}
    used = {n: names(factor) & sizes.keys() for n, factor in enumerate(factors)}
    target = names(statement.target) & sizes.keys()
    every = frozenset(used)

    def kept(group: frozenset[int], own: frozenset[str]) -> frozenset[str]:
        others = frozenset().union(*(used[n] for n in every - group))
        return own & (target | others) if reduce else own

    def cost(over: frozenset[str]) -> int:
        return prod(sizes[name] for name in over)

    def terms(group: frozenset[int]) -> tuple[_Term, ...]:
        """Return what a part of a product can be: a factor as it is, or what is computed first."""
        if len(group) > 1:
            return (best(group),)
        (factor,) = group
        plain = _Term(group, frozenset(used[factor]), 0)
        left = kept(group, plain.names)
        if left == plain.names:
            return (plain,)
        return plain, _Term(group, left, cost(plain.names), (plain,))

    @cache
    def best(group: frozenset[int]) -> _Term:
        """Return the cheapest way to have the product of some factors."""
        options: list[_Term] = []
        for parts in _partitions(group):
            for chosen in product(*map(terms, parts)):
                over = frozenset().union(*(term.names for term in chosen))
                if group == every:
                    over |= target
                steps = cost(over) * max(1, len(chosen) - 1) + sum(
                    term.operations for term in chosen
                )
                options.append(_Term(group, kept(group, over), steps, chosen))
        return min(options, key=lambda term: (term.operations, -len(term.parts)))

    return best(every)


def _partitions(group: frozenset[int]) -> Iterator[tuple[frozenset[int], ...]]:
    """Yield the ways to have a product: of two products, or of all its factors at once."""
    if len(group) > 2:
        yield tuple(frozenset((n,)) for n in sorted(group))
    first, *others = sorted(group)
    for size in range(len(others)):
        for chosen in combinations(others, size):
            part = frozenset((first, *chosen))
            yield part, group - part


def _drafts(
    kernel: Kernel, statement: Statement, op: str, factors: tuple[Expr, ...], best: _Term
) -> tuple[list[Draft], list[Buffer]]:
    """Return the statements that compute a product, inner ones first, and their buffers."""
    sizes = extents(statement)
    dtype = statement.value.dtype
    buffers: list[Buffer] = []
    drafts: list[Draft] = []

    def operand(term: _Term) -> Expr:
        if not term.parts:
            (factor,) = term.factors
            return factors[factor]
        wanted = f"{statement.target.buffer}_{len(buffers) + 1}"
        name = fresh(kernel, wanted, [b.name for b in buffers])
        at = len(buffers)
        buffers.append(local(name, dtype, ()))
        value, own = product_of(term)
        # In the order in which the factors have them, as someone would write it.
        kept = [n for n in used_names(Access(name, (), dtype), value) if n in term.names]
        target = Access(name, tuple(var(n) for n in kept), dtype)
        buffers[at] = local(name, dtype, [sizes[n] for n in kept])
        reduction: Reduction = statement.reduction if set(own) - set(kept) else "="
        drafts.append(Draft(target, reduction, value, own))
        return target

    def product_of(term: _Term) -> tuple[Expr, Mapping[str, Index]]:
        # Factors stand in the order in which the kernel has them.
        parts = sorted(term.parts, key=lambda part: min(part.factors))
        value = operand(parts[0])
        for part in parts[1:]:
            value = Op(op, (value, operand(part)), dtype)
        over = frozenset().union(*(part.names for part in parts))
        return value, {n: e for n, e in sizes.items() if n in over}

    value, own = product_of(best)
    target = names(statement.target)
    own = {n: e for n, e in sizes.items() if n in own or n in target}
    drafts.append(Draft(statement.target, statement.reduction, value, own))
    return drafts, buffers


def _lemmas(statement: Statement, op: str, finite: bool, reduced: bool) -> tuple[Lemma, ...]:
    """Return what lets factors be taken in any order, and a reduction be taken out of a product.

    Where a step is ``reduced``: its start is absorbed, each of its terms is distributed, and the
    terms of the whole may be taken in any order.
    """
    dtype, reduction = statement.value.dtype, statement.reduction
    add = REDUCTION_OPERATIONS[reduction]
    start = identity(reduction, dtype)
    x, y, z = (Access(name, (), dtype) for name in "xyz")

    def both(one: str, a: Expr, b: Expr) -> Expr:
        return Op(one, (a, b), dtype)

    laws: list[tuple[str, Expr, Expr]] = []
    for one in (op, add) if reduced else (op,):
        laws.append(("associative", both(one, both(one, x, y), z), both(one, x, both(one, y, z))))
        laws.append(("commutative", both(one, x, y), both(one, y, x)))
    if reduced:
        outside, inside = both(op, both(add, x, y), z), both(add, both(op, x, z), both(op, y, z))
        laws += [("distributive", outside, inside), ("absorbing", both(op, start, z), start)]
    return tuple(equal(name, _claim(a, b), [(a, b)], "reals", finite) for name, a, b in laws)


def _claim(a: Expr, b: Expr) -> str:
    text = f"{print_expr(a)} = {print_expr(b)} for all {a.dtype}"
    return text.replace("[]", "")


def _number(extent: Index) -> int:
    sized = extent.substitute(dict.fromkeys(extent.names, ASSUMED_EXTENT))
    return max(1, sized.constant or ASSUMED_EXTENT)
