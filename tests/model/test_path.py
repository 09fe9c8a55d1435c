from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.model.nest import Machine, Memory, Nest, Operand
from isamap.model.path import best, likely, optimum
from isamap.model.sizes import divided
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


@examples(1.0)
@given(st.data(), st.integers(1, 2), st.integers(1, 12))
def test_the_best_few_leave_out_no_better_chain(
    data: st.DataObject, levels: int, wanted: int
) -> None:
    extents = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 6])) for _ in range(3))
    nest, machine = Nest(extents, GEMM), _machine(data, levels)
    found = best(nest, machine, wanted, divided(nest))
    cycles_ = [own.cycles for own in found]
    assert cycles_ == sorted(cycles_)
    assert len({(own.tiles, own.stationary) for own in found}) == len(found) <= wanted
    every = _all(nest, machine)
    for own in found:
        assert own.cycles >= every[own.tiles] * (1 - 1e-9)
    if len(found) == wanted:
        better = {chain for chain, least in every.items() if least < cycles_[-1] * (1 - 1e-9)}
    else:
        better = {chain for chain, least in every.items() if least < np.inf}
    assert better <= {own.tiles for own in found}


def _all(nest: Nest, machine: Machine) -> dict[tuple[tuple[int, ...], ...], float]:
    """The least cycles of each chain."""
    levels = len(machine.memories)
    chains = _chains(nest.extents, levels)
    table = np.array(chains, float)
    tiles = [[table[:, level, dim] for dim in range(len(nest.extents))] for level in range(levels)]
    rows = [
        cycles(nest, machine, tiles, [np.full(len(chains), c) for c in own])
        for own in product(range(len(nest.operands)), repeat=levels)
    ]
    return dict(zip(chains, np.min(rows, 0).tolist(), strict=True))


@examples(0.5)
@given(st.data())
def test_units_are_dimensions_that_are_counted_in_them(data: st.DataObject) -> None:
    counts = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 6])) for _ in range(3))
    units = tuple(data.draw(st.integers(1, 3)) for _ in range(3))
    extents = tuple(
        n * u - data.draw(st.integers(0, u - 1)) for n, u in zip(counts, units, strict=True)
    )
    nest, machine = Nest(extents, GEMM, units), _machine(data, 2)
    found = optimum(nest, machine)
    for own in found.tiles if found else ():
        assert all(size % unit == 0 for size, unit in zip(own, units, strict=True))
    # A block is there whatever its memory holds.
    blocked = optimum(nest, replace(machine, block=True))
    roomy = Machine((replace(machine.memories[0], capacity=0.0), Memory(1e9, 1.0)), 1.0, block=True)
    assert blocked is None or blocked.tiles[0] == units
    whole = optimum(nest, roomy)
    assert whole is not None
    assert whole.tiles[0] == units


@examples(0.5)
@given(st.data())
def test_what_is_hidden_results_and_stretches_are_in_the_optimum(data: st.DataObject) -> None:
    extents = tuple(data.draw(st.sampled_from([1, 2, 4, 6])) for _ in range(3))
    operands = tuple(
        replace(own, rows=tuple((group, extents[group[0][0]]) for group in own.groups[::-1]))
        for own in GEMM
    )
    machine = _machine(data, 2)
    first, second = machine.memories
    memories = (replace(first, results=0.7), replace(second, start=2.0))
    _check(Nest(extents, operands), replace(machine, memories=memories, exposed=0.25))


def test_likely_chains_are_chains_of_the_best_or_worse() -> None:
    nest = Nest((12, 10, 14), GEMM)
    machine = Machine((Memory(40, 1.0), Memory(200, 0.5)), 4.0)
    found = likely(nest, machine, 5, divided(nest), 8)
    best_ = optimum(nest, machine)
    assert best_ is not None
    assert len(found) == 5
    assert all(own.cycles >= best_.cycles for own in found)


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


def test_many_operands_of_few_dimensions_take_no_more_memory_than_few() -> None:
    # Sets of 24 operands would not fit the memory; unions of what they depend on are four.
    inputs = [Operand(f"X{n}", (((n % 2, 1),),), 1) for n in range(23)]
    nest = Nest((6, 8), (*inputs, Operand("Y", (((0, 1),), ((1, 1),)), 1, written=True)))
    machine = Machine((Memory(60, 1.0), Memory(200, 0.5)), 4.0)
    found = optimum(nest, machine)
    assert found is not None
    assert found.cycles == pytest.approx(_exhaustive_classes(nest, machine))


def _exhaustive_classes(nest: Nest, machine: Machine) -> float:
    """The least cycles where one operand of each kind may be stationary: others gain no more."""
    kinds = {own.dims: number for number, own in enumerate(nest.operands)}
    levels = len(machine.memories)
    chains = np.array(_chains(nest.extents, levels), float)
    tiles = [[chains[:, level, dim] for dim in range(len(nest.extents))] for level in range(levels)]
    return min(
        float(cycles(nest, machine, tiles, [np.full(len(chains), c) for c in own]).min())
        for own in product(kinds.values(), repeat=levels)
    )
