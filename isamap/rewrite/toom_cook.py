"""Short convolutions by few products: the matrices of Toom and Cook's algorithm, transposed.

For m outputs of r taps and n = m + r - 1 points (n - 1 numbers and infinity) matrices give

    y[i] = sum_j w[j] x[i + j] = sum_k A[i][k] (sum_j G[k][j] w[j]) (sum_l B[k][l] x[l])

that is n products for m*r (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and
S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).  Interpolation gives them: with
points a[k], N_k(x) the product of (x - a[l]) over l != k, and f[k] = N_k(a[k]),

    A[i][k] = a[k]**i,   G[k][j] = a[k]**j / f[k],   B[k] = the coefficients of N_k

and for infinity A[m-1] = 1, G[r-1] = 1, B = the coefficients of the product of all (x - a[l]):
x**d is the sum of a[k]**d N_k(x) / f[k] for d < n - 1, and that plus the product for d = n - 1.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

Matrix = tuple[tuple[Fraction, ...], ...]

_POINTS = tuple(Fraction(*p) for p in ((0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2)))

MOST = len(_POINTS) + 1
"""Products of the longest convolution for which there are points of small error."""


@dataclass(frozen=True, slots=True)
class Transforms:
    """Matrices for ``outputs`` outputs of ``taps`` taps, by their products k: ``output[i][k]``,
    ``window[k][j]``, ``data[k][l]``.
    """

    outputs: int
    taps: int
    output: Matrix
    window: Matrix
    data: Matrix

    @property
    def products(self) -> int:
        """How many products there are, which is how many inputs a tile reads."""
        return self.outputs + self.taps - 1

    @property
    def amplification(self) -> Fraction:
        """The greatest sum of magnitudes of an output, for data and windows of magnitude 1."""
        inner = [
            sum(map(abs, w), Fraction(0)) * sum(map(abs, d), Fraction(0))
            for w, d in zip(self.window, self.data, strict=True)
        ]
        return max(
            sum((abs(a) * size for a, size in zip(row, inner, strict=True)), Fraction(0))
            for row in self.output
        )


@lru_cache(maxsize=64)
def transforms(outputs: int, taps: int) -> Transforms:
    """Return the matrices for at most :data:`MOST` products."""
    count = outputs + taps - 1
    assert 1 < count <= MOST, "there is a point for each product"
    points = _POINTS[: count - 1]
    output = [[point**i for point in points] + [Fraction(i == outputs - 1)] for i in range(outputs)]
    window: list[list[Fraction]] = []
    data: list[list[Fraction]] = []
    for k, point in enumerate(points):
        others = points[:k] + points[k + 1 :]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        # The sign goes to the data, so that the window's transform has none in front.
        sign = 1 if scale > 0 else -1
        window.append([point**j / abs(scale) for j in range(taps)])
        data.append([sign * c for c in _product(others)] + [Fraction(0)])
    window.append([Fraction(j == taps - 1) for j in range(taps)])
    data.append(_product(points))
    return Transforms(outputs, taps, _frozen(output), _frozen(window), _frozen(data))


def _product(roots: tuple[Fraction, ...]) -> list[Fraction]:
    """Return the coefficients of the product of all (x - root), the lowest power first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        scaled = [*(-root * c for c in found), Fraction(0)]
        found = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return found


def _frozen(rows: list[list[Fraction]]) -> Matrix:
    return tuple(tuple(row) for row in rows)
