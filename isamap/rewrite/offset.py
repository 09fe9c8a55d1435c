"""Integer products of other signedness, and products of values with zero points, by corrections.

Signed a is unsigned ``a + 2**(b - 1)``, less that constant; so a sum of products of signed values
is one of mixed products and a correction that depends on the other factor alone.  A sum of products
of differences from zero points is the sum of plain products and corrections.  Both hold modulo the
size of the type that sums, whatever wraps.
"""

from collections.abc import Iterator
from dataclasses import replace

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import Intervals, intervals_before
from isamap.ir.statements import reduction_variables
from isamap.rewrite.apart import is_plain_sum, main_of, summed_apart
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.build import fresh, replaced
from isamap.rewrite.copies import copied
from isamap.rewrite.polynomial import (
    literal,
    monomials,
    product_of,
    same_polynomial,
    sum_of,
)
from isamap.rewrite.retype import ARITHMETIC, Retyped
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma


def flip_sign(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with each narrow factor of its integer product in the other signedness.

    The statement is ``T += f * g * ...`` in an integer type, a factor a widening cast of an access.
    The buffer is copied, shifted by half the size of its type, its padding value too.
    """
    statement = kernel.statements[number]
    if not is_plain_sum(statement) or not reduction_variables(statement):
        return
    factors = _factors(statement.value)
    for at, factor in enumerate(factors):
        source = _source(factor)
        if len(factors) < 2 or source is None or _is_shifted(kernel, source.buffer):
            continue
        yield _flipped(kernel, number, factors, at, source)


def zero_points(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with its product of sums expanded and each part summed apart.

    The statement is ``T += value`` in an integer type, and the expansion has a product of two
    factors that use all the reduced variables between them; what does not use them is taken out of
    the sums.
    """
    statement = kernel.statements[number]
    reduced = reduction_variables(statement)
    if not is_plain_sum(statement) or not reduced:
        return
    whole, lemmas = _widened(statement.value, statement, intervals_before(kernel, number))
    found = monomials(whole)
    if found is None or len(found) < 2 or (main := main_of(found, reduced)) is None:
        return
    apart = summed_apart(kernel, number, found)
    changed = replaced(kernel, number, apart.drafts, apart.locals)
    terms = [(m.coefficient, m.factors) for m in found]
    expanded = print_expr(sum_of(terms, statement.target.dtype))
    claim = f"{print_expr(whole)} = {expanded}, as integers"
    rest = "the other product of the expansion is a correction"
    if len(found) > 2:
        rest = f"the other {len(found) - 1} products of the expansion are corrections"
    note = (
        f"{statement.target.buffer} sums {print_expr(product_of(main.factors))}; "
        f"{rest}, exact in integers that wrap"
    )
    lemma = same_polynomial("expansion", claim, whole, found)
    yield Rewriting("zero-points", number, changed, (*lemmas, lemma), note)


def _widened(expr: Expr, statement: Statement, known: Intervals) -> tuple[Expr, tuple[Lemma, ...]]:
    """Return an expression with casts moved into arithmetic that does not wrap in its own type."""
    match expr:
        case Op("cast", (Op(op, _, source) as inner,), dtype) if (
            op in ARITHMETIC and source.is_integer and dtype.is_integer
        ):
            retyped = Retyped(statement, known, source, dtype)
            if (moved := retyped.of(inner)) is None:
                return expr, ()
            claim = f"no operation of {print_expr(inner)} leaves {source} for {retyped.given}"
            return moved, (retyped.lemma(claim),)
        case Op("+" | "-" | "*" | "neg", args, _):
            found = [_widened(arg, statement, known) for arg in args]
            lemmas = tuple(lemma for _, own in found for lemma in own)
            return replace(expr, args=tuple(part for part, _ in found)), lemmas
        case _:
            return expr, ()


def _flipped(
    kernel: Kernel, number: int, factors: tuple[Expr, ...], at: int, source: Access
) -> Rewriting:
    statement = kernel.statements[number]
    dtype, factor = statement.target.dtype, factors[at]
    buffer = kernel.buffer(source.buffer)
    other = _opposite(source.dtype)
    half = 1 << (source.dtype.bits - 1)
    name = fresh(kernel, f"{buffer.name}_{other}")
    pad = None if buffer.pad is None else literal(int(value(buffer.pad)) + half, other)
    copy = copied(kernel, buffer.name, name, lambda source: _shift(source, other), pad)
    moved = Op("cast", (Access(name, source.indices, other),), dtype)
    sign = "-" if source.dtype.kind == "signed" else "+"
    shifted = Op(sign, (moved, literal(half, dtype)), dtype)
    whole = product_of([*factors[:at], shifted, *factors[at + 1 :]])
    found = monomials(whole)
    assert found is not None, "a product with one sum of two has two monomials"
    apart = summed_apart(kernel, number, found, (name,))
    changed = replaced(kernel, number, [copy.draft, *apart.drafts], [copy.buffer, *apart.locals])
    old, new = print_expr(factor), print_expr(shifted)
    expanded = print_expr(sum_of([(m.coefficient, m.factors) for m in found], dtype))
    # What the copy holds, in the place of an access to it.
    seen = Op(sign, (Op("cast", (_shift(source, other),), dtype), literal(half, dtype)), dtype)
    pairs: list[tuple[Expr, Expr]] = [(factor, seen)]
    if buffer.pad is not None and pad is not None:
        pairs.append((_shift(buffer.pad, other), pad))
    lemmas = (
        equal("shift", f"{old} = {new}, {name} holding {print_expr(_shift(source, other))}", pairs),
        same_polynomial("distribution", f"{print_expr(whole)} = {expanded}", whole, found),
    )
    note = (
        f"{buffer.name} as {other}, shifted by {half}: {old} is {new}; "
        f"{half} times the sum of the other factor corrects it, exact in integers that wrap"
    )
    return Rewriting("flip-sign", number, changed, lemmas, note)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Op("*", (left, right), _):
            return (*_factors(left), *_factors(right))
        case _:
            return (expr,)


def _source(factor: Expr) -> Access | None:
    """Return the access of integers that a factor widens; None if it is none."""
    inner, cast = factor, False
    while isinstance(inner, Op) and inner.op == "cast" and inner.dtype.is_integer:
        (arg,) = inner.args
        kept = arg.dtype.is_integer and (
            inner.dtype.lowest <= arg.dtype.lowest and arg.dtype.highest <= inner.dtype.highest
        )
        if not kept:
            return None
        inner, cast = arg, True
    return inner if cast and isinstance(inner, Access) and inner.dtype.is_integer else None


def _opposite(dtype: DType) -> DType:
    return DTYPES[f"{'u' if dtype.kind == 'signed' else 's'}{dtype.bits}"]


def _shift(source: Expr, other: DType) -> Op:
    """Return a value in the other signedness, half the size of its type away."""
    half = literal(1 << (other.bits - 1), other)
    return Op("+", (Op("cast", (source,), other), half), other)


def _is_shifted(kernel: Kernel, name: str) -> bool:
    """Return whether a buffer is a shifted copy already, which nothing needs to shift back."""
    writers = [s for s in kernel.statements if s.target.buffer == name]
    return len(writers) == 1 and kernel.buffer(name).role == "local" and _is_shift(writers[0])


def _is_shift(statement: Statement) -> bool:
    match statement.value:
        case Op("+", (Op("cast", (Access(_, _, source),), dtype), Literal() as half), _):
            same = source.is_integer and source.bits == dtype.bits
            return same and half == literal(1 << (dtype.bits - 1), dtype)
        case _:
            return False
