from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.pipeline.points import RANDOM_POINTS, TAIL_POINTS, sample_points

SHAPES = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def _set(points: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(map(int, point)) for point in points}


@given(SHAPES, st.integers(1, 17))
def test_points_are_inside_and_distinct(shape: list[int], step: int) -> None:
    points = sample_points(shape, {0: {step}}, seed=0)
    assert (points >= 0).all()
    assert (points < np.array(shape)).all()
    assert len(_set(points)) == len(points)


@given(SHAPES)
def test_all_corners_are_among_them(shape: list[int]) -> None:
    corners = set(product(*({0, size - 1} for size in shape)))
    assert corners <= _set(sample_points(shape, {}, seed=0))


def test_all_tails_are_among_them() -> None:
    points = _set(sample_points((200, 30), {0: {24}, 1: {16}}, seed=0))
    assert {(r, c) for r in range(200 - 200 % 24, 200) for c in range(30)} <= points
    assert {(r, c) for r in range(200) for c in range(16, 30)} <= points


def test_large_tails_are_sampled() -> None:
    points = sample_points((10_000, 20_000), {0: {3}, 1: {16, 4096}}, seed=0)
    assert (points[:, 0] == 9999).sum() > TAIL_POINTS * 0.4
    assert (points[:, 1] >= 20_000 - 20_000 % 4096).sum() > TAIL_POINTS * 0.4
    assert len(points) < RANDOM_POINTS + TAIL_POINTS + 100


def test_borders_of_tiles_are_among_them() -> None:
    points = _set(sample_points((1000, 2000), {0: {24}}, seed=0))
    assert {(23, 0), (24, 1999), (1000 - 1000 % 24 - 1, 0), (1000 - 1000 % 24, 0)} <= points


def test_random_elements_are_among_them() -> None:
    assert len(sample_points((10**6,), {0: {16}}, seed=0)) > RANDOM_POINTS * 0.98


def test_corners_of_many_dimensions_are_never_left_out() -> None:
    shape = (33,) * 6
    points = _set(sample_points(shape, {axis: {17} for axis in range(6)}, seed=0))
    assert set(product((0, 32), repeat=6)) <= points
    assert len(points) < 30_000


def test_a_scalar_has_one_element() -> None:
    assert sample_points((), {}, seed=0).shape == (1, 0)


def test_the_same_seed_gives_the_same_elements() -> None:
    first, second, other = (sample_points((500, 500), {}, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
