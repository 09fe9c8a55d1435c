from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.model.nest import Machine, Memory, Nest, Operand
from isamap.model.path import optimum
from isamap.model.traffic import bound, cycles
from tests.model.test_traffic import GEMM, conv
from tests.profiles import examples


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _chains(extents: tuple[int, ...], levels: int) -> list[tuple[tuple[int, ...], ...]]:
    """All chains of tiles, innermost first, each dividing the next."""
    if not levels:
        return [()]
    return [
        (*inner, tile)
        for tile in product(*map(_divisors, extents))
        for inner in _chains(tile, levels - 1)
    ]


def _exhaustive(nest: Nest, machine: Machine) -> float:
    """The least cycles of all chains and classes, all evaluated."""
    levels = len(machine.memories)
    chains = np.array(_chains(nest.extents, levels), float)
    tiles = [[chains[:, level, dim] for dim in range(len(nest.extents))] for level in range(levels)]
    return min(
        float(cycles(nest, machine, tiles, [np.full(len(chains), c) for c in own]).min())
        for own in product(range(len(nest.operands)), repeat=levels)
    )


def _machine(data: st.DataObject, levels: int) -> Machine:
    sizes = sorted(data.draw(st.integers(3, 90)) for _ in range(levels))
    speeds = [data.draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in range(levels)]
    return Machine(tuple(Memory(s, b) for s, b in zip(sizes, speeds, strict=True)), 4.0)


@examples(2.0)
@given(st.data(), st.integers(1, 3))
def test_the_path_is_the_best_of_all_chains_of_a_product(data: st.DataObject, levels: int) -> None:
    extents = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 6, 8])) for _ in range(3))
    nest, machine = Nest(extents, GEMM), _machine(data, levels)
    _check(nest, machine)


@examples(1.0)
@given(st.data(), st.integers(1, 2))
def test_the_path_is_the_best_of_all_chains_of_a_convolution(
    data: st.DataObject, levels: int
) -> None:
    operands = conv(data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))
    extents = tuple(data.draw(st.sampled_from([1, 2, 4, 6])) for _ in range(4))
    _check(Nest(extents, operands), _machine(data, levels))


def _check(nest: Nest, machine: Machine) -> None:
    best = _exhaustive(nest, machine)
    found = optimum(nest, machine)
    if found is None:
        assert best == np.inf
        return
    assert found.cycles == pytest.approx(best)
    assert bound(nest, machine) <= found.lowest * (1 + 1e-9)
    assert found.lowest <= found.cycles * (1 + 1e-9)
    tiles = [[np.array([float(size)]) for size in tile] for tile in found.tiles]
    classes = [np.array([number]) for number in found.stationary]
    assert cycles(nest, machine, tiles, classes)[0] == pytest.approx(found.cycles)


def test_a_depthwise_nest_has_an_optimum() -> None:
    # Channels, rows and taps; no dimension is foreign to all operands.
    operands = (
        Operand("X", (((0, 1),), ((1, 1), (2, 1))), 1),
        Operand("D", (((0, 1),), ((2, 1),)), 1),
        Operand("Y", (((0, 1),), ((1, 1),)), 1, written=True),
    )
    nest = Nest((8, 12, 3), operands)
    _check(nest, Machine((Memory(20, 1.0), Memory(60, 0.5)), 4.0))


def test_where_no_tile_fits_there_is_none() -> None:
    assert optimum(Nest((4, 4, 4), GEMM), Machine((Memory(2, 1.0),), 1.0)) is None
