"""What records of a kernel family teach: where the cost model is wrong, and by how much.

Boosted trees learn the logarithm of measured over modelled time, less its mean for each size, from
a candidate's features.  They correct the model's order for other sizes of the same family.  They
are used only where they have shown on sizes that they had not seen that they order better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from isamap_search.boost import Boosted, fit
from isamap_search.records import Key, Record

NEEDED = 32
"""Records of a family below which nothing is learned."""

GAIN = 0.01
"""The share of pairs that must be ordered better than by the model."""

_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Learned:
    """A correction of the cost model for one family; ``names`` are the features' columns."""

    names: tuple[str, ...]
    trees: Boosted

    def scores(
        self, cycles: Sequence[float], features: Sequence[Mapping[str, float]]
    ) -> list[float]:
        """Return numbers that order candidates of one size as their times should."""
        if not cycles:
            return []
        rows = np.array([[own.get(name, 0.0) for name in self.names] for own in features])
        return [float(score) for score in np.log(cycles) + self.trees(rows)]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was learned, or None and in ``told`` the reason; ``told`` is for the report."""

    learned: Learned | None
    told: str


def learn(records: Sequence[tuple[Key, Record]]) -> Lesson:
    """Return what records of one family teach.

    A function of the set of records: their order does not count.
    """
    ordered = sorted(records, key=lambda pair: (pair[0].kernel, pair[0].sizes, _text(pair[1])))
    if len(ordered) < NEEDED:
        count = f"{len(ordered)} record{'s' * (len(ordered) != 1)}"
        return Lesson(None, f"not used: {count} of this kernel family, {NEEDED} are needed")
    groups = [list(own) for _, own in groupby(ordered, key=lambda p: (p[0].kernel, p[0].sizes))]
    names = tuple(sorted({name for _, record in ordered for name in record.features}))
    rows = [np.array([[r.features.get(n, 0.0) for n in names] for _, r in own]) for own in groups]
    model = [np.log([record.cycles for _, record in own]) for own in groups]
    truth = [np.log([record.ratio for _, record in own]) for own in groups]
    targets = [_centred(t - m) for t, m in zip(truth, model, strict=True)]
    by_model, by_trees = _judged(rows, model, truth, targets)
    sizes = f"{len(groups)} size{'s' * (len(groups) != 1)}"
    shares = f"{by_trees:.0%} of pairs against the model's {by_model:.0%}"
    if by_trees < by_model + GAIN:
        text = f"not used: on held-out records it orders {shares}, no better"
        return Lesson(None, text)
    trees = fit(np.concatenate(rows), np.concatenate(targets))
    text = f"used: {len(ordered)} records of {sizes}; held out, it orders {shares}"
    return Lesson(Learned(names, trees), text)


def _text(record: Record) -> str:
    return repr((record.choices, record.seconds, record.rounds))


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = values - values.mean()
    return centred


def _judged(
    rows: Sequence[NDArray[np.float64]],
    model: Sequence[NDArray[np.float64]],
    truth: Sequence[NDArray[np.float64]],
    targets: Sequence[NDArray[np.float64]],
) -> tuple[float, float]:
    """Return the shares of pairs that the model and the trees order right on held-out records.

    Whole sizes are held out; where all records are of one size, every fifth record is.
    """
    whole = len(rows) > 1
    right_model = right_trees = pairs = 0.0
    for fold in range(min(_FOLDS, len(rows)) if whole else _FOLDS):
        masks = [
            np.full(len(own), number % _FOLDS == fold)
            if whole
            else np.arange(len(own)) % _FOLDS == fold
            for number, own in enumerate(rows)
        ]
        kept = np.concatenate([own[~m] for own, m in zip(rows, masks, strict=True)])
        wanted = np.concatenate([own[~m] for own, m in zip(targets, masks, strict=True)])
        trees = fit(kept, wanted)
        for own, base, true, mask in zip(rows, model, truth, masks, strict=True):
            if mask.sum() < 2:
                continue
            corrected = base[mask] + trees(own[mask])
            pairs += _agreeing(true[mask], true[mask])
            right_model += _agreeing(base[mask], true[mask])
            right_trees += _agreeing(corrected, true[mask])
    return right_model / max(1.0, pairs), right_trees / max(1.0, pairs)


def _agreeing(guess: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return how many of the pairs that differ are in the true order; a guessed tie is half one."""
    signs = np.sign(guess[:, None] - guess[None, :]) * np.sign(truth[:, None] - truth[None, :])
    differing = np.triu(truth[:, None] != truth[None, :], 1)
    return float((1 + signs[differing]).sum() / 2)
