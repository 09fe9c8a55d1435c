"""Factors of integer products that fit a narrower type are computed in it, and multiplied wide.

There are instructions that take factors narrow and give products wide; a product that fits the
narrower type itself is for :mod:`isamap.rewrite.narrow`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isamap.ir.dtype import DType
from isamap.ir.index import var
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import intervals_before
from isamap.ir.statements import accesses, read_indices
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.copies import copied, elements, with_part
from isamap.rewrite.narrow import narrower
from isamap.rewrite.polynomial import literal
from isamap.rewrite.retype import Retyped
from isamap.rewrite.rule import Rewriting


def narrow_factors(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield each product with its factors in each narrower type that they fit.

    They are converted where they are read, and, where that is not all that they are, computed
    beforehand in buffers of their own.
    """
    statement = kernel.statements[number]
    known = intervals_before(kernel, number)
    for product in dict.fromkeys(_products(statement.value)):
        for dtype in narrower(product.dtype, statement):
            narrowed = Retyped(statement, known, product.dtype, dtype)
            found = [narrowed.part(factor) for factor in product.args]
            whole = _product(product, found)
            if whole == product:
                continue
            names = " and ".join(print_expr(inner) for inner in found if inner is not None)
            lemma = narrowed.lemma(f"no value of {names} leaves {dtype} for {narrowed.given}")
            note = f"{names} of {print_expr(product)} in {dtype}, for {narrowed.given}"
            draft = _changed(statement, product, whole)
            yield Rewriting(
                "narrow-factors", number, replaced(kernel, number, [draft]), (lemma,), note
            )
            held = _Held.of(kernel, statement, found, dtype)
            if held is None:
                continue
            draft = _changed(statement, product, _product(product, held.factors))
            after = replaced(kernel, number, [*held.drafts, draft], held.buffers)
            stored = " and ".join(buffer.name for buffer in held.buffers)
            yield Rewriting("narrow-factors", number, after, (lemma,), f"{note}; {stored} first")


@dataclass(frozen=True, slots=True)
class _Held:
    """Factors in buffers of their own, and the statements that fill these."""

    factors: Sequence[Expr | None]
    buffers: Sequence[Buffer]
    drafts: Sequence[Draft]

    @classmethod
    def of(
        cls, kernel: Kernel, statement: Statement, found: Sequence[Expr | None], dtype: DType
    ) -> "_Held | None":
        """Return factors that are more than an access in buffers, None where that gains nothing.

        What is only converted is a copy of its buffer, what is computed has the factor's variables.
        """
        factors: list[Expr | None] = []
        buffers: list[Buffer] = []
        drafts: list[Draft] = []
        for inner in found:
            taken = [buffer.name for buffer in buffers]
            match inner:
                case None | Access():
                    factors.append(inner)
                case Op("cast", (Access(name, indices, _),), _):
                    copy = fresh(kernel, f"{name}_{dtype}", taken)
                    pad = kernel.buffer(name).pad
                    same = None if pad is None else literal(int(value(pad)), dtype)
                    made = copied(kernel, name, copy, lambda a: Op("cast", (a,), dtype), same)
                    factors.append(Access(copy, indices, dtype))
                    buffers.append(made.buffer)
                    drafts.append(made.draft)
                case _:
                    names = _variables(statement, inner)
                    if names is None:
                        return None
                    sizes = {name: extents(statement)[name] for name in names}
                    name = fresh(kernel, f"{statement.target.buffer}_{dtype}", taken)
                    place = Access(name, tuple(map(var, names)), dtype)
                    factors.append(place)
                    buffers.append(local(name, dtype, tuple(sizes.values())))
                    drafts.append(Draft(place, "=", inner, sizes))
        if not buffers:
            return None
        # Only what is straight before the statement may be computed in its rounds: the largest.
        order = sorted(range(len(buffers)), key=lambda n: elements(buffers[n]))
        return cls(factors, [buffers[n] for n in order], [drafts[n] for n in order])


def _variables(statement: Statement, factor: Expr) -> list[str] | None:
    """Return the variables of a factor; None where it is computed no less often beforehand.

    That is so if it has all of the statement's variables, or sums of them as indices.
    """
    read = read_indices(factor)
    own = [v.name for v in statement.variables if any(v.name in index.names for index in read)]
    places = [index for access in accesses(factor) for index in access.indices]
    plain = all(index.name is not None or not index.names for index in places)
    return own if plain and 0 < len(own) < len(statement.variables) else None


def _product(product: Op, found: Sequence[Expr | None]) -> Op:
    """Return a product with its factors in another type, widened before it."""
    args = [
        factor if inner is None else Op("cast", (inner,), product.dtype)
        for factor, inner in zip(product.args, found, strict=True)
    ]
    return Op("*", tuple(args), product.dtype)


def _changed(statement: Statement, product: Op, whole: Op) -> Draft:
    changed = with_part(statement.value, product, whole)
    return Draft(statement.target, statement.reduction, changed, extents(statement))


def _products(expr: Expr) -> Iterator[Op]:
    if isinstance(expr, Op):
        if expr.op == "*" and expr.dtype.is_integer:
            yield expr
        for arg in expr.args:
            yield from _products(arg)
