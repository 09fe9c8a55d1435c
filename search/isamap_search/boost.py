"""Gradient-boosted regression trees, without chance: the same data, the same trees."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

TREES, DEPTH, RATE, LEAF = 80, 3, 0.15, 4
"""Trees, their depth, the share of one's answer that is believed, and a leaf's least samples."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree in arrays: inner nodes send a sample left where feature <= threshold.

    ``feature`` is -1 in a leaf, whose answer is ``value``; the children of node n are ``left[n]``
    and ``left[n] + 1``.
    """

    feature: NDArray[np.int64]
    threshold: _Floats
    left: NDArray[np.int64]
    value: _Floats

    def __call__(self, samples: _Floats) -> _Floats:
        """Return the answer for each row of ``samples``."""
        at = np.zeros(len(samples), np.int64)
        rows = np.arange(len(samples))
        for _ in range(DEPTH):
            feature = self.feature[at]
            inner = feature >= 0
            right = samples[rows, np.maximum(feature, 0)] > self.threshold[at]
            at = np.where(inner, self.left[at] + right, at)
        return self.value[at]


@dataclass(frozen=True, slots=True)
class Boosted:
    """The sum of a mean and many small trees."""

    mean: float
    trees: tuple[Tree, ...]

    def __call__(self, samples: _Floats) -> _Floats:
        """Return the prediction for each row of ``samples``."""
        total = np.full(len(samples), self.mean)
        for tree in self.trees:
            total += RATE * tree(samples)
        return total


def fit(samples: _Floats, targets: _Floats) -> Boosted:
    """Return trees that predict ``targets`` (one a row of ``samples``) with least squares."""
    mean = float(targets.mean())
    rest = targets - mean
    order = np.argsort(samples, axis=0, kind="stable")
    trees = []
    for _ in range(TREES):
        tree = _grow(samples, rest, order)
        rest = rest - RATE * tree(samples)
        trees.append(tree)
    return Boosted(mean, tuple(trees))


def _grow(samples: _Floats, targets: _Floats, order: NDArray[np.int64]) -> Tree:
    feature, threshold, left, value = [-1], [0.0], [0], [float(targets.mean())]
    level = [(0, np.ones(len(samples), bool))]
    for _ in range(DEPTH):
        below = []
        for node, mask in level:
            best = _split(samples, targets, order, mask)
            if best is None:
                continue
            feature[node], threshold[node] = best
            left[node] = len(feature)
            goes_right = samples[:, best[0]] > best[1]
            for own in (mask & ~goes_right, mask & goes_right):
                below.append((len(feature), own))
                feature.append(-1)
                threshold.append(0.0)
                left.append(0)
                value.append(float(targets[own].mean()))
        level = below
    return Tree(np.array(feature), np.array(threshold), np.array(left), np.array(value))


def _split(
    samples: _Floats, targets: _Floats, order: NDArray[np.int64], mask: NDArray[np.bool_]
) -> tuple[int, float] | None:
    """Return the feature and threshold that explain most of a node's variance, if any do."""
    count = int(mask.sum())
    if count < 2 * LEAF:
        return None
    width = samples.shape[1]
    # The node's samples in the order of each feature, a column each.
    inside = mask[order]
    sorted_rows = order.T[inside.T].reshape(width, count).T
    values = np.take_along_axis(samples, sorted_rows, axis=0)
    sums = np.cumsum(targets[sorted_rows], axis=0)
    lefts = np.arange(1, count + 1)[:, None]
    total = sums[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = sums**2 / lefts + (total - sums) ** 2 / (count - lefts) - total**2 / count
    usable = np.zeros_like(gain, bool)
    inner = slice(LEAF - 1, count - LEAF)
    usable[inner] = values[inner] < values[LEAF : count - LEAF + 1]
    gain = np.where(usable, gain, 0.0)
    # Rounding must not decide between equal gains: features that say the same are common.
    best = gain.max()
    if best <= 1e-12:
        return None
    at, column = np.argwhere(gain >= best * (1 - 1e-9))[0]
    return int(column), float((values[at, column] + values[at + 1, column]) / 2)
