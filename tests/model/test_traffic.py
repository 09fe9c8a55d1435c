from itertools import permutations, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.model.exact import transfers
from isamap.model.footprint import distinct, enumerated, summed
from isamap.model.nest import Machine, Memory, Nest, Operand
from isamap.model.traffic import bound, cycles, held
from tests.model.brute import elements, fetched
from tests.profiles import examples

GEMM = (
    Operand("A", (((0, 1),), ((2, 1),)), 1),
    Operand("B", (((2, 1),), ((1, 1),)), 1),
    Operand("C", (((0, 1),), ((1, 1),)), 1, written=True),
)


def conv(stride: int, dilation: int) -> tuple[Operand, ...]:
    """A one-dimensional convolution over k, c, p, r."""
    return (
        Operand("X", (((1, 1),), ((2, stride), (3, dilation))), 1),
        Operand("W", (((0, 1),), ((1, 1),), ((3, 1),)), 1),
        Operand("Y", (((0, 1),), ((2, 1),)), 1, written=True),
    )


_COEFFICIENTS = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(_COEFFICIENTS, st.data())
def test_footprints_are_what_one_counts(coefficients: list[int], data: st.DataObject) -> None:
    ranges = [data.draw(st.integers(1, 9)) for _ in coefficients]
    counted = {0}
    for coefficient, count in zip(coefficients, ranges, strict=True):
        counted = {v + coefficient * i for v in counted for i in range(count)}
    columns = [np.array([float(r)]) for r in ranges]
    assert distinct(coefficients, columns)[0] == len(counted)
    assert enumerated(tuple(coefficients), tuple(ranges)) == len(counted)


@given(_COEFFICIENTS.filter(lambda c: len(c) < 4), st.data())
def test_their_sums_over_all_tiles_are_too(coefficients: list[int], data: st.DataObject) -> None:
    extents = [data.draw(st.integers(1, 13)) for _ in coefficients]
    tiles = [data.draw(st.integers(1, extent)) for extent in extents]
    total = 0
    for begins in product(*(range(0, e, t) for e, t in zip(extents, tiles, strict=True))):
        values = {0}
        for c, begin, t, e in zip(coefficients, begins, tiles, extents, strict=True):
            values = {v + c * i for v in values for i in range(begin, min(begin + t, e))}
        total += len(values)
    columns = [np.array([float(t)]) for t in tiles]
    assert np.atleast_1d(summed(coefficients, extents, columns))[0] == total


def _loops(data: st.DataObject, extents: tuple[int, ...], levels: int) -> list[tuple[int, int]]:
    loops, sizes = [], list(extents)
    for _ in range(levels):
        for dim in data.draw(st.permutations(range(len(extents)))):
            sizes[dim] = data.draw(st.integers(1, sizes[dim]))
            loops.append((dim, sizes[dim]))
    return loops


@examples(4.0)
@given(st.data(), st.sampled_from([1, 2]))
def test_transfers_of_any_loops_are_those_of_executing_them(
    data: st.DataObject, levels: int
) -> None:
    gemm = data.draw(st.booleans())
    operands = GEMM if gemm else conv(data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))
    extents = tuple(data.draw(st.integers(1, 5)) for _ in range(3 if gemm else 4))
    loops = _loops(data, extents, levels)
    for operand in operands:
        assert transfers(operand, extents, loops)[0] == fetched(operand, extents, loops)


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _chain(data: st.DataObject, extents: tuple[int, ...], levels: int) -> list[tuple[int, ...]]:
    """Tiles, innermost first, each dividing the next and the last the extents."""
    tiles, outer = [], extents
    for _ in range(levels):
        outer = tuple(data.draw(st.sampled_from(_divisors(size))) for size in outer)
        tiles.append(outer)
    return tiles[::-1]


def _moved(operand: Operand, extents: tuple[int, ...], loops: list[tuple[int, int]]) -> int:
    count = fetched(operand, extents, loops)
    whole = elements(operand, [(0, extent) for extent in extents])
    return 2 * count - whole if operand.written else count


def _model(
    operands: tuple[Operand, ...],
    extents: tuple[int, ...],
    tiles: list[tuple[int, ...]],
    classes: tuple[int, ...],
) -> float:
    """Cycles on a machine that computes in no time and moves an element a cycle everywhere."""
    machine = Machine(tuple(Memory(1e9, 1.0) for _ in tiles), 1e30)
    arrays = [[np.array([float(size)]) for size in tile] for tile in tiles]
    numbers = [np.array([number]) for number in classes]
    return float(cycles(Nest(extents, operands), machine, arrays, numbers)[0])


def _executed(
    operands: tuple[Operand, ...],
    extents: tuple[int, ...],
    tiles: list[tuple[int, ...]],
    orders: tuple[tuple[int, ...], ...],
) -> int:
    """The same by executing the loops of each memory and of all outside it."""
    total = 0
    for level in range(len(tiles)):
        loops = [
            (dim, tiles[outer][dim])
            for outer in reversed(range(level, len(tiles)))
            for dim in orders[outer]
        ]
        total += sum(_moved(operand, extents, loops) for operand in operands)
    return total


@examples(0.5)
@given(st.data(), st.sampled_from([1, 2]))
def test_the_best_class_of_each_level_is_the_best_of_all_orders(
    data: st.DataObject, levels: int
) -> None:
    _check_classes(data, levels)


@examples(0.1)
@given(st.data())
def test_so_it_is_with_three_memories(data: st.DataObject) -> None:
    _check_classes(data, 3)


def _check_classes(data: st.DataObject, levels: int) -> None:
    extents = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 6])) for _ in range(3))
    tiles = _chain(data, extents, levels)
    by_model = min(
        _model(GEMM, extents, tiles, classes) for classes in product(range(3), repeat=levels)
    )
    orders = product(permutations(range(3)), repeat=levels)
    assert by_model == min(_executed(GEMM, extents, tiles, own) for own in orders)


@given(st.data())
def test_partial_tiles_are_never_undercounted(data: st.DataObject) -> None:
    extents = tuple(data.draw(st.integers(1, 9)) for _ in range(3))
    inner = tuple(data.draw(st.integers(1, extent)) for extent in extents)
    outer = tuple(size * data.draw(st.integers(1, 3)) for size in inner)
    tiles = [inner, tuple(min(o, e) if o >= e else o for o, e in zip(outer, extents, strict=True))]
    best = min(
        _executed(GEMM, extents, tiles, orders)
        for orders in product(permutations(range(3)), repeat=2)
    )
    assert min(_model(GEMM, extents, tiles, c) for c in product(range(3), repeat=2)) >= best


@given(st.data())
def test_no_chain_is_below_the_bound(data: st.DataObject) -> None:
    operands = conv(data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))
    extents = tuple(data.draw(st.integers(1, 8)) for _ in range(4))
    tiles = _chain(data, extents, 2)
    machine = Machine((Memory(1e9, 3.0), Memory(1e9, 0.7)), 2.0)
    nest = Nest(extents, operands)
    arrays = [[np.array([float(size)]) for size in tile] for tile in tiles]
    for classes in product(range(3), repeat=2):
        found = cycles(nest, machine, arrays, [np.array([c]) for c in classes])[0]
        assert found >= bound(nest, machine) * (1 - 1e-12)


def test_what_does_not_fit_costs_infinitely_much() -> None:
    nest = Nest((8, 8, 8), GEMM)
    tile = [np.array([2.0, 4.0])] * 3
    assert list(held(nest, tile)) == [12.0, 48.0]
    machine = Machine((Memory(20.0, 1.0),), 1.0)
    assert list(np.isinf(cycles(nest, machine, [tile], [np.array([0, 0])]))) == [False, True]


def test_results_are_read_back_once_less_than_they_are_written() -> None:
    # A is stationary, so that C changes with every step of k: written four times, read thrice.
    assert _model(GEMM, (4, 4, 4), [(1, 1, 1)], (0,)) == 16 + 64 + 16 * 7
    assert _model(GEMM, (4, 4, 4), [(4, 4, 1)], (2,)) == 16 + 16 + 16
