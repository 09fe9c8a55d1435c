from math import ceil, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.model.nest import Nest
from isamap.model.sizes import balanced, divided, divisors, even
from tests.model.test_traffic import GEMM

NUMBERS = st.integers(1, 400)


@given(NUMBERS)
def test_divisors_are_all_that_divide(number: int) -> None:
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


@given(NUMBERS, st.integers(1, 400))
def test_no_size_is_smaller_than_the_balanced_one_with_as_few_tiles(number: int, size: int) -> None:
    size = min(size, number)
    tiles = ceil(number / size)
    chosen = max(s for s in balanced(number) if s <= size)
    assert ceil(number / chosen) == tiles


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.integers(1, 9), st.sampled_from([30, 500, 10**6]))
def test_even_sizes_are_few_and_have_both_ends(
    extents: tuple[int, int, int], unit: int, most: int
) -> None:
    nest = Nest(extents, GEMM, (unit, 1, 2))
    found = even(nest, most)
    assert prod(map(len, found)) <= most
    for sizes, step, whole in zip(found, nest.steps, nest.whole, strict=True):
        assert sizes == sorted(set(sizes))
        assert (sizes[0], sizes[-1]) == (step, whole)
        assert all(size % step == 0 for size in sizes)


@pytest.mark.parametrize("count", [110, 167, 220])
def test_all_balanced_sizes_and_divisors_are_there_if_they_are_few(count: int) -> None:
    (sizes, _, _) = even(Nest((count, 1, 1), GEMM), 10**6)
    assert set(sizes) == {*balanced(count), *divisors(count)}


def test_sizes_divide_the_extents_rounded_up_to_units() -> None:
    assert divided(Nest((700, 5, 1), GEMM, (16, 1, 1))) == [
        [16 * d for d in (1, 2, 4, 11, 22, 44)],
        [1, 5],
        [1],
    ]


@given(st.integers(1 << 22, 1 << 40), st.sampled_from([30, 500]))
def test_of_many_iterations_some_sizes_are_found_at_once(count: int, most: int) -> None:
    (sizes, _, _) = even(Nest((count, 1, 1), GEMM), most)
    assert len(sizes) <= most
    assert (sizes[0], sizes[-1]) == (1, count)
    assert all(size == ceil(count / ceil(count / size)) for size in sizes if count % size)


@given(NUMBERS)
def test_balanced_sizes_are_those_of_every_number_of_tiles(number: int) -> None:
    assert balanced(number) == sorted({ceil(number / tiles) for tiles in range(1, number + 1)})
