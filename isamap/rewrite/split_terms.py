"""Products of wide floats as products of narrow terms: ``x`` is about ``hi + lo``, each narrow.

With ``h[0] = narrow(x)`` and ``h[k] = narrow(x - h[0] - ... - h[k-1])``, u the unit roundoff of the
narrow type, every difference is exact in the wide type, ``|x - sum h| <= u**t |x|`` for t terms and
``|h[k]| <= u**k (1 + u) |x|``.  Of the products ``h[i]*g[j]`` those with ``i + j < t`` are kept.
The leading ones are summed on the target as the original products were; the others, which are
small, in a buffer of their own, so that its roundings are small too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import var
from isamap.ir.literal import canonical, exact, nearest
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Literal, Op, Statement
from isamap.ir.statements import accesses, reduction_variables
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.copies import copied
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import dropped_products, product_bound, remainder


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of the product: an access of the wide type, or of a narrow one that is widened."""

    access: Access
    wide: bool

    def sizes(self, terms: int, unit: Fraction) -> list[Fraction]:
        """Return bounds of the terms relative to the factor, and of the remainder at the end."""
        if not self.wide:
            return [Fraction(1), *[Fraction(0)] * terms]
        return [unit**k * (1 + unit) for k in range(terms)] + [unit**terms]


def split_terms(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield a float sum of products with its factors split into terms of each narrower type.

    Offered for one term, two, and so on up to the precision of the wide type, where the kernel's
    ``approximate(e)`` permits the error that is derived.  The narrow type has the exponents of the
    wide one: bf16 for f32.
    """
    statement = kernel.statements[number]
    permitted = kernel.permissions
    if permitted.approximate is None or not (permitted.reassociate and permitted.finite):
        return
    wide, factors = statement.target.dtype, _factors(statement)
    count = _terms_of_sum(statement)
    if factors is None or count is None:
        return
    for narrow in DTYPES.values():
        if not _is_narrower(narrow, wide):
            continue
        if any(not f.wide and f.access.dtype != narrow for f in factors):
            continue
        for terms in range(1, -(-wide.precision // narrow.precision) + 1):
            error = _error(factors, terms, narrow, wide, count)
            if error <= permitted.approximate:
                found = _split(kernel, number, factors, terms, narrow, error)
                if found is not None:
                    yield found


def _factors(statement: Statement) -> tuple[_Factor, _Factor] | None:
    dtype, target = statement.target.dtype, statement.target.buffer
    if statement.reduction != "+=" or not dtype.is_float:
        return None
    match statement.value:
        case Op("*", (left, right), _):
            found = [_factor(part, dtype) for part in (left, right)]
        case _:
            return None
    one, other = found
    if one is None or other is None or not (one.wide or other.wide):
        return None
    read = {a.buffer for a in accesses(statement.value)}
    return None if target in read else (one, other)


def _factor(expr: Expr, wide: DType) -> _Factor | None:
    match expr:
        case Access(_, _, dtype) if dtype == wide:
            return _Factor(expr, True)
        case Op("cast", (Access(_, _, dtype) as access,), _) if _is_narrower(dtype, wide):
            return _Factor(access, False)
        case _:
            return None


def _is_narrower(narrow: DType, wide: DType) -> bool:
    """Return whether a type has fewer digits and all exponents, and its products fit the wide."""
    if not (narrow.is_float and wide.is_float) or narrow.max_exponent < wide.max_exponent:
        return False
    return narrow.precision < wide.precision and 2 * narrow.precision <= wide.precision


def _terms_of_sum(statement: Statement) -> int | None:
    """Return how many products reach an element of the target at most; None for symbols."""
    sizes, names = extents(statement), [index.name for index in statement.target.indices]
    plain = None not in names and len(set(names)) == len(names)
    counted = [s for v, s in sizes.items() if not plain or v in reduction_variables(statement)]
    numbers = [size.constant for size in counted if size.constant is not None]
    return prod(numbers) if len(numbers) == len(counted) else None


# --- the error ------------------------------------------------------------------------------------
def _kept(terms: int) -> list[tuple[int, int]]:
    """Return the products that are kept, the smallest first."""
    pairs = [(i, j) for i in range(terms) for j in range(terms) if i + j < terms]
    return sorted(pairs, key=lambda pair: (-sum(pair), pair))


def _small(factors: Sequence[_Factor], terms: int) -> list[tuple[int, int]]:
    """Return the products that are kept besides the leading one; the terms that are 0 have none."""
    a, b = factors
    return [(i, j) for i, j in _kept(terms) if i + j and (a.wide or not i) and (b.wide or not j)]


def _error(
    factors: Sequence[_Factor], terms: int, narrow: DType, wide: DType, count: int
) -> Fraction:
    """Return the error relative to the sum of the magnitudes of the products.

    Products that are dropped, the leading sum's roundings beyond those of a sum of ``count``
    products, those of the small products' sum, and of adding it: gamma(n) = n U / (1 - n U) bounds
    a sum of n terms, U the wide type's unit roundoff (Higham, Accuracy and Stability, 4.2).
    """
    one, other = (f.sizes(terms, narrow.epsilon) for f in factors)
    pairs = [(i, j) for i in range(terms + 1) for j in range(terms + 1)]
    dropped = sum((one[i] * other[j] for i, j in pairs if i + j >= terms), Fraction(0))
    leading = one[0] * other[0]
    small = _small(factors, terms)
    rest = sum((one[i] * other[j] for i, j in small), Fraction(0))
    unit = wide.epsilon
    if (steps := max(1, len(small)) * count) * unit >= 1:
        return Fraction(1)
    main = _gamma(count, unit) * leading - count * unit
    if not small:
        return dropped + main
    low = _gamma(steps, unit) * rest
    return dropped + main + low + unit * (leading + rest) * (1 + _gamma(steps, unit))


def _gamma(count: int, unit: Fraction) -> Fraction:
    return count * unit / (1 - count * unit)


# --- the statements -------------------------------------------------------------------------------
def _split(
    kernel: Kernel,
    number: int,
    factors: tuple[_Factor, _Factor],
    terms: int,
    narrow: DType,
    error: Fraction,
) -> Rewriting | None:
    statement = kernel.statements[number]
    wide, sizes = statement.target.dtype, extents(statement)
    parts: dict[str, list[str]] = {}
    drafts: list[Draft] = []
    buffers: list[Buffer] = []
    for factor in factors:
        name = factor.access.buffer
        if not factor.wide or name in parts:
            continue
        pads = _pads(kernel.buffer(name).pad, terms, narrow)
        if pads is None:
            return None
        parts[name] = []
        for place, pad in enumerate(pads, 1):
            copy = fresh(kernel, f"{name}_{narrow}_{place}", [b.name for b in buffers])
            earlier = tuple(parts[name])

            def term(source: Access, earlier: tuple[str, ...] = earlier) -> Expr:
                return _rounded(source, earlier, narrow)

            made = copied(kernel, name, copy, term, pad)
            buffers.append(made.buffer)
            drafts.append(made.draft)
            parts[name].append(copy)

    def product(i: int, j: int) -> Expr:
        found = []
        for factor, k in zip(factors, (i, j), strict=True):
            own = factor.access
            name = parts[own.buffer][k] if factor.wide else own.buffer
            found.append(Op("cast", (Access(name, own.indices, narrow),), wide))
        return Op("*", tuple(found), wide)

    small = _small(factors, terms)
    reduced = set(reduction_variables(statement))
    own = {v: size for v, size in sizes.items() if v not in reduced}
    if small:
        rest = fresh(kernel, "Rest", [b.name for b in buffers])
        summed = Access(rest, tuple(map(var, own)), wide)
        buffers.append(local(rest, wide, list(own.values())))
        drafts += [Draft(summed, "+=", product(i, j), sizes) for i, j in small]
    drafts.append(Draft(statement.target, "+=", product(0, 0), sizes))
    if small:
        drafts.append(Draft(statement.target, "+=", summed, own))
    plural = "s" if terms > 1 else ""
    note = (
        f"{' and '.join(parts)} as {terms} {narrow} term{plural}, {len(small) + 1} products: "
        f"relative error {float(error):.2g} of the sum of their magnitudes, of the permitted "
        f"{float(kernel.permissions.approximate or 0):.2g}"
    )
    bounds = [f.sizes(terms, narrow.epsilon) for f in factors]
    kept = [(0, 0), *small]
    lemmas = (
        remainder(terms, narrow.epsilon),
        dropped_products([sum(map(bool, b)) for b in bounds], kept),
        product_bound(),
    )
    changed = replaced(kernel, number, drafts, buffers)
    return Rewriting("split-terms", number, changed, lemmas, note, error)


def _rounded(source: Access, earlier: Sequence[str], narrow: DType) -> Expr:
    rest: Expr = source
    for name in earlier:
        known = Op("cast", (Access(name, source.indices, narrow),), source.dtype)
        rest = Op("-", (rest, known), source.dtype)
    return Op("cast", (rest,), narrow)


def _pads(pad: Literal | None, terms: int, narrow: DType) -> list[Literal | None] | None:
    """Return the padding values of the terms; None if the value has no terms."""
    if pad is None:
        return [None] * terms
    if pad.text in ("inf", "-inf", "nan"):
        return None
    found: list[Literal | None] = []
    rest = exact(pad.text)
    for _ in range(terms):
        term = nearest(rest, narrow)
        if term is None:
            return None
        found.append(Literal(canonical(repr(float(term)), narrow), narrow))
        rest -= term
    return found
