"""How far the result of a convolution in transformed tiles may be from the exact one.

Every result is a sum of products of elements and coefficients, each with a factor
``(1 + d1)...(1 + dk)``, ``|d| <= u``; so its error is at most gamma(k) = k u / (1 - k u) times the
sum of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), which over a
tile is at most max_i sum_k |A[i][k]| (sum_j |G[k][j]|) (sum_l |B[k][l]|) for each slide.  Numbers
that overflow, or are so small that they are rounded to a multiple of the least one, are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, product
from isamap.ir.literal import nearest
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.statements import reduction_variables
from isamap.rewrite.build import extents, is_sole_writer
from isamap.rewrite.combine import common_factor
from isamap.rewrite.tiles import Tiled
from isamap.rewrite.toom_cook import Transforms
from isamap.rewrite.windows import Convolution

_FEW, _SLACK = Fraction(1, 100), Fraction(102, 100)
"""Where k is a symbol, gamma(k) is taken for ``_SLACK * k u``, while k u is at most ``_FEW``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An absolute error of at most ``relative * terms * max|data| * max|window|``.

    ``terms`` is how many products the exact sum has.  On a way from an element to a result lie
    ``length + roundings`` errors of at most the unit roundoff ``unit``; ``length`` is what depends
    on sizes.  ``amplification`` is the sum of magnitudes of the transformed products of one tile
    by those of its ``taps`` terms, the data and the window being of magnitude 1.  ``carried`` are
    the roundings of what the target held before, 0 where that is nothing.
    """

    terms: Index
    length: Index
    taps: int
    roundings: int
    amplification: Fraction
    unit: Fraction
    carried: Index

    @property
    def relative(self) -> Fraction | None:
        """The error by ``terms * max|data| * max|window|``; None where none is known."""
        loss = None if self.terms.constant is None else self._gamma(self.length + self.roundings)
        return None if loss is None else loss * self.amplification / self.taps

    @property
    def is_useful(self) -> bool:
        """Whether the error is less than the greatest result, at some sizes if they are symbols."""
        if self.terms.constant is None:
            return self._slope * (self.roundings + 1) < 1 and self._longest > 0
        return self.relative is not None and self.relative < 1

    def text(self, target: str, data: str, window: str) -> str:
        """Return the bound in the kernel's names."""
        sizes = f"max|{data}| max|{window}|"
        way = self.length + self.roundings
        if (relative := self.relative) is not None:
            text = (
                f"error of {target} at most {_at_most(relative)} of {self.terms} {sizes}, "
                f"{way} roundings amplified {float(self.amplification):.4g} times"
            )
        else:
            text = (
                f"error of {target} at most {_at_most(self._slope)} ({way}) of {self.terms} "
                f"{sizes}, where {self.length} is at most {self._longest}"
            )
        if (share := self._gamma(self.carried)) is None:
            text += f", and {_at_most(_SLACK * self.unit)} {self.carried} of what it held before"
        elif share:
            text += f", and {_at_most(share)} of what it held before"
        return text

    @property
    def _slope(self) -> Fraction:
        """The relative error by the number of roundings, while these are few."""
        return _SLACK * self.unit * self.amplification / self.taps

    @property
    def _longest(self) -> int:
        """Lengths up to which the relative error is that, and below 1."""
        return int(min(_FEW / self.unit, 1 / self._slope)) - self.roundings

    def _gamma(self, roundings: Index) -> Fraction | None:
        """Return what so many roundings amount to; None where they are unknown, or too many."""
        if (number := roundings.constant) is None or number * self.unit >= 1:
            return None
        return number * self.unit / (1 - number * self.unit)


def error_bound(
    kernel: Kernel, number: int, convolution: Convolution, tiled: tuple[Tiled, ...]
) -> Bound:
    """Return how far what a statement adds to an element of its target is from the exact sum."""
    statement = kernel.statements[number]
    sizes, dtype = extents(statement), statement.target.dtype
    slid = {slide.tap for slide in convolution.slides}
    summed = product(sizes[v] for v in reduction_variables(statement) if v not in slid)
    points = points_of_an_element(statement)
    taps = prod(tile.slide.taps for tile in tiled)
    amplification = Fraction(1)
    for tile in tiled:
        amplification *= tile.transforms.amplification
    # Each point adds so many terms to its element, one after the other or summed before.
    added = max(sum(map(bool, row)) for row in tiled[-1].transforms.output)
    return Bound(
        summed * points * taps,
        summed + added * (points - 1),
        taps,
        2 + sum(_roundings(tile.transforms, dtype) for tile in tiled),
        amplification,
        dtype.epsilon,
        const(0) if is_sole_writer(kernel, number) else added * points,
    )


def points_of_an_element(statement: Statement) -> Index:
    """Return to how many points of the target's variables one of its elements belongs, at most."""
    sizes = extents(statement)
    indices = statement.target.indices
    unknown = {v for index in indices for v in index.names if v in sizes}
    points = const(1)
    while unknown:
        # An index gives the only one of its variables that the others do not give.
        given = {
            v
            for index in indices
            if len(left := index.names & unknown) == 1 and index.is_linear_in(left)
            for v in left
            if index.coefficient(v).constant
        }
        if not given:
            given = {min(unknown, key=lambda v: (sizes[v].constant is None, sizes[v].constant, v))}
            points *= product(sizes[v] for v in given)
        unknown -= given
    return points


def _roundings(found: Transforms, dtype: DType) -> int:
    """Return the roundings on the longest way through the three transforms of a slide."""
    every = (found.output, found.window, found.data)
    return sum(max(_of_row(row, dtype) for row in rows) for rows in every)


def _of_row(row: Sequence[Fraction], dtype: DType) -> int:
    """Return the roundings of a term of a combination: of sums, products and coefficients."""
    factor = common_factor(row)
    shares = [c / factor for c in row if c]
    return (
        len(shares)
        - 1
        + _of_coefficient(factor, dtype)
        + max(_of_coefficient(share, dtype) for share in shares)
    )


def _of_coefficient(number: Fraction, dtype: DType) -> int:
    """Return the roundings of a product with a number: none with a power of two."""
    size = abs(number)
    if (
        size.numerator & (size.numerator - 1) == 0
        and size.denominator & (size.denominator - 1) == 0
    ):
        return 0
    return 1 if nearest(number, dtype) == number else 2


def _at_most(number: Fraction) -> str:
    """Return two digits of a number, rounded up."""
    with localcontext(Context(prec=2, rounding=ROUND_CEILING)):
        return f"{float(Decimal(number.numerator) / Decimal(number.denominator)):.2g}"
