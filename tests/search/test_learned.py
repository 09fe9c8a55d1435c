import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from isamap_search import boost
from isamap_search.learned import NEEDED, learn
from isamap_search.records import Key, Record
from tests.search.test_records import KEY

Sample = tuple[Key, Record]


def _sample(size: int, block: int, packed: bool, noise: float) -> Sample:
    """A machine on which the model is right but for one thing: rows of 4 KiB, unless packed."""
    cycles = size * size * (1 + 0.1 * block)
    aliased = size % 1024 == 0 and not packed
    seconds = cycles * 1e-9 * (3.0 if aliased else 1.0) * (1.1 if packed else 1.0) * noise
    features = {
        "block": float(block),
        "packed": float(packed),
        "pitch": 12.0 if size % 1024 == 0 else 6.0,
        "extent": float(np.log2(size)),
    }
    key = replace(KEY, kernel=f"k{size}", sizes=(("N", size),))
    return key, Record((("block", str(block)),), seconds, seconds / size**2, 7, cycles, features)


def _samples(sizes: Sequence[int], seed: int = 0) -> list[Sample]:
    generator = random.Random(seed)
    return [
        _sample(size, block, packed, generator.uniform(0.99, 1.01))
        for size in sizes
        for block in range(8)
        for packed in (False, True)
    ]


def _agreeing(scores: Sequence[float], samples: Sequence[Sample]) -> float:
    """The share of pairs of samples whose scores are in the order of their times."""
    pairs = list(combinations(range(len(samples)), 2))
    right = sum(
        (scores[a] < scores[b]) == (samples[a][1].seconds < samples[b][1].seconds) for a, b in pairs
    )
    return right / len(pairs)


def test_a_hidden_effect_is_learned_and_orders_sizes_that_were_not_seen() -> None:
    lesson = learn(_samples([512, 768, 1024, 1536, 2048]))
    assert lesson.learned is not None
    assert lesson.told.startswith("used: 80 records of 5 sizes; held out, it orders ")
    for size in (3072, 4096, 640):
        held_out = _samples([size], seed=1)
        cycles = [record.cycles for _, record in held_out]
        scores = lesson.learned.scores(cycles, [record.features for _, record in held_out])
        assert _agreeing(scores, held_out) > 0.9
        if size % 1024 == 0:
            assert _agreeing(cycles, held_out) < 0.8


def test_few_records_are_not_learned_from() -> None:
    lesson = learn(_samples([1024, 2048])[: NEEDED - 1])
    assert lesson.learned is None
    assert lesson.told == "not used: 31 records of this kernel family, 32 are needed"
    assert learn([]).told == "not used: 0 records of this kernel family, 32 are needed"


def test_what_orders_no_better_than_the_model_is_not_used() -> None:
    samples = _samples([512, 768, 1536, 1280])  # none of them is aliased
    exact = [(key, replace(record, ratio=record.cycles)) for key, record in samples]
    lesson = learn(exact)
    assert lesson.learned is None
    assert lesson.told.endswith("no better")


def test_noise_alone_is_not_used() -> None:
    generator = random.Random(5)
    noisy = [
        (key, replace(record, ratio=record.cycles * generator.lognormvariate(0, 0.01)))
        for key, record in _samples([512, 768, 1536, 1280])
    ]
    assert learn(noisy).learned is None


def test_records_of_one_size_teach_that_size() -> None:
    assert learn(_samples([1024]) * 3).learned is not None


def test_the_order_of_the_records_does_not_count() -> None:
    samples = _samples([512, 768, 1024, 1536, 2048])
    shuffled = samples.copy()
    random.Random(1).shuffle(shuffled)
    one, other = learn(samples), learn(shuffled)
    assert one.learned is not None
    assert other.learned is not None
    features = [record.features for _, record in samples]
    cycles = [record.cycles for _, record in samples]
    assert one.told == other.told
    assert one.learned.scores(cycles, features) == other.learned.scores(cycles, features)


def test_trees_fit_steps_and_leave_noise_to_the_mean() -> None:
    generator = np.random.default_rng(0)
    samples = generator.uniform(0, 1, (200, 3))
    steps = np.where(samples[:, 1] > 0.5, 2.0, -1.0)
    assert boost.fit(samples, steps)(samples) == pytest.approx(steps, abs=1e-3)
    assert boost.fit(samples[:4], steps[:4])(samples) == pytest.approx(steps[:4].mean())


@pytest.mark.parametrize("count", [1, 7, 8, 9, 50])
def test_a_split_is_the_best_one_there_is(count: int) -> None:
    generator = np.random.default_rng(count)
    samples = generator.integers(0, 5, (count, 2)).astype(float)
    targets = generator.normal(size=count)
    order = np.argsort(samples, axis=0, kind="stable")
    found = boost._split(samples, targets, order, np.ones(count, bool))
    best = 0.0
    for column in range(2):
        for threshold in np.arange(-0.5, 5.5):
            left = samples[:, column] <= threshold
            if min(left.sum(), (~left).sum()) >= boost.LEAF:
                parts = sum(((t - t.mean()) ** 2).sum() for t in (targets[left], targets[~left]))
                best = max(best, float(((targets - targets.mean()) ** 2).sum() - parts))
    if found is None:
        assert best <= 1e-9
        return
    left = samples[:, found[0]] <= found[1]
    parts = sum(((t - t.mean()) ** 2).sum() for t in (targets[left], targets[~left]))
    assert float(((targets - targets.mean()) ** 2).sum() - parts) == pytest.approx(best)
