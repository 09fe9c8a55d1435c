"""Linear combinations with rational coefficients as expressions."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

from isamap.ir.dtype import DType
from isamap.ir.literal import canonical, nearest
from isamap.ir.nodes import Expr, Literal, Op


def combination(coefficients: Sequence[Fraction], terms: Sequence[Expr]) -> Expr:
    """Return the sum of float terms times coefficients, of which one at least is not 0.

    Their greatest common factor is taken out, so that most coefficients are whole numbers.
    """
    pairs = [(c, t) for c, t in zip(coefficients, terms, strict=True) if c]
    assert pairs, "a row of a transform is not 0"
    factor = common_factor(coefficients)
    dtype = pairs[0][1].dtype
    result: Expr | None = None
    for coefficient, term in sorted(pairs, key=lambda pair: pair[0] / factor < 0):
        share = coefficient / factor
        size = abs(share)
        scaled = term if size == 1 else Op("*", (term, rounded(size, dtype)), dtype)
        if result is None:
            result = scaled
        else:
            result = Op("+" if share > 0 else "-", (result, scaled), dtype)
    assert result is not None
    return result if factor == 1 else Op("*", (result, rounded(factor, dtype)), dtype)


def common_factor(coefficients: Sequence[Fraction]) -> Fraction:
    """Return the greatest factor that leaves whole numbers, negative if all coefficients are."""
    kept = [c for c in coefficients if c]
    size = Fraction(gcd(*(c.numerator for c in kept)), lcm(*(c.denominator for c in kept)))
    return -size if all(c < 0 for c in kept) else size


def rounded(number: Fraction, dtype: DType) -> Literal:
    """Return the value of a float type nearest to a number within its range."""
    value = nearest(number, dtype)
    assert value is not None, "coefficients are small"
    return Literal(canonical(repr(float(value)), dtype), dtype)


def is_exact(coefficients: Sequence[Fraction], dtype: DType) -> bool:
    """Return whether every number that :func:`combination` writes is exact in a type."""
    factor = common_factor(coefficients)
    numbers = [factor, *(c / factor for c in coefficients)]
    return all(nearest(number, dtype) == number for number in numbers)
