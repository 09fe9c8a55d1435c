"""What estimates count of caches, and which of two is taken."""

from dataclasses import replace
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.cost import Estimate, estimate
from isamap.lower.traffic import Site, lines_of
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.schedule.first import blocks_for, first_treatments
from isamap.schedule.shape import block_of, read_shape
from isamap.schedule.tiled import BLOCKS, tiled_schedules
from isamap.schedule.treatment import Treatments
from isamap.text.load import parse_module


def made(cycles: float, busy: float, cached: float, least: float | None = None) -> Estimate:
    return Estimate(cycles, busy, cached, cycles if least is None else least, "", {}, {})


@pytest.mark.parametrize(
    ("one", "other", "wins"),
    [
        (made(100, 90, 50), made(120, 10, 10), True),  # much lower
        (made(100, 50, 50), made(105, 50, 50), True),  # lower, and no more to do
        (made(100, 80, 80), made(105, 50, 50), False),  # lower, and much more to do
        (made(105, 30, 30), made(100, 50, 50), True),  # about as low, and much less to do
        (made(120, 30, 30), made(100, 50, 50), False),
        (made(100, 50, 50), made(101, 50, 50), False),
    ],
)
def test_of_two_about_equal_ones_what_has_less_to_do_wins(
    one: Estimate, other: Estimate, wins: bool
) -> None:
    assert one.beats(other) == wins


def test_other_loops_are_looked_for_where_caches_have_much_to_do() -> None:
    assert not made(100, 60, 60).may_fall
    assert made(100, 60, 130).may_fall
    assert not made(100, 95, 130).may_fall  # it computes all the time
    assert made(100, 90, 0, least=80).may_fall


@given(st.integers(1, 500), st.sampled_from([32, 64]))
def test_pieces_take_whole_lines(length: int, line: int) -> None:
    # On average over all places where one may begin.
    places = range(0, line, gcd(length, line))
    touched = [((place + length - 1) // line + 1) * line for place in places]
    assert lines_of(length, line) == pytest.approx(sum(touched) / len(touched) / length)


def test_pieces_that_follow_each_other_are_one() -> None:
    loops = (("p", 9.0, 100), ("k", 4.0, 32), ("c", 7.0, 0))
    site = Site("Y", loops, {0, 16}, 16 * 4, 16 + 300, 16, written=True)
    assert site.run(3) == 32  # two tiles side by side
    assert site.run(2) == 32
    assert site.run(1) == 128
    assert site.run(0) == 928
    assert Site("Y", loops, {0}, 16, 16, 16).run(0) == 16  # 16 of each 32


def kernel(pixels: int, channels: int, filters: int) -> Kernel:
    text = f"""kernel layer {{
      in X : f32[{pixels}, {channels}]  const F : f32[{channels}, {filters}]
      out Y : f32[{pixels}, {filters}]
      Y[p, k] += X[p, c] * F[c, k]
    }}"""
    return bind_extents(parse_module(text).kernels[0])


def test_each_of_the_best_blocks_gets_loops() -> None:
    hardware, layer = load_hardware("x86_avx512"), kernel(1024, 1024, 1024)
    (own,) = map_kernel(layer, hardware).schedule.statements
    producers = Producers(hardware)
    buffers = {buffer.name: buffer for buffer in layer.buffers}
    treatments = Treatments(own.mapping, producers, buffers, layer.permissions)
    found = tiled_schedules(own, hardware, layer, treatments, 1)
    shape = read_shape(own.mapping)
    _, blocks = blocks_for(shape, own.operands, hardware, treatments)
    assert {tuple(block_of(shape, s.levels).items()) for s in found} == {
        tuple(block.items()) for block in blocks[:BLOCKS]
    }


def test_fragments_that_are_ragged_cost_more_where_there_are_some() -> None:
    hardware = load_hardware("x86_amx")
    costs = {}
    for rows in (160, 161, 1601):
        text = f"""kernel product {{
          in A : bf16[{rows}, 64]  in B : bf16[64, 64]  out C : f32[{rows}, 64]
          C[m, n] += f32(A[m, k]) * f32(B[k, n])
        }}"""
        product = bind_extents(parse_module(text).kernels[0])
        found = map_kernel(product, hardware)
        mappings = found.statements[0].mappings
        mapping = next(
            m
            for m in mappings
            if m.matching.needle.name == "tdpbf16ps"
            and str(m.matching.bound("a")).startswith("Access(buffer='A'")
            and m.tile.get("m") == 16
        )
        buffers = {buffer.name: buffer for buffer in product.buffers}
        treatments = Treatments(mapping, Producers(hardware), buffers, product.permissions)
        chosen = first_treatments(mapping, treatments)
        assert chosen[0] == "direct"
        whole = treatments.whole_cost("a", "direct")
        assert whole is not None
        costs[rows] = treatments.mean_cost("a", ("direct",)) / whole
    assert costs[160] == 1
    assert costs[161] > costs[1601] > 1
    worst = (costs[161] - 1) * 11
    assert costs[1601] == pytest.approx(1 + worst / 101)


def test_what_a_call_packs_does_not_come_from_memory() -> None:
    hardware = load_hardware("x86_amx")
    text = """kernel first {
      in X : bf16[1024, 1024, 3] pad 0  const F : bf16[7, 7, 3, 32]  local S : f32[512, 512, 32]
      out Y : bf16[512, 512, 32]
      S[p, q, k] += f32(X[2*p + r - 3, 2*q + t - 3, c]) * f32(F[r, t, c, k])
      Y[p, q, k] = bf16(S[p, q, k])
    }"""
    lowered = map_kernel(bind_extents(parse_module(text).kernels[0]), hardware).lowered
    assert any(array.name.startswith("X_packed") for array in lowered.arrays)
    given_ = tuple(
        replace(array, role="in") if array.role == "local" else array for array in lowered.arrays
    )
    other = estimate(replace(lowered, arrays=given_), hardware).parts["memory"]
    # The input itself comes from there, and the result goes there.
    assert 0 < estimate(lowered, hardware).parts["memory"] < 0.95 * other
