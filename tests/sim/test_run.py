"""Cycles, counts and capacity follow from the description alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from isamap.ir.index import const, var
from isamap.ir.nodes import Literal
from isamap.lower.capacity import excess, peak_use
from isamap.lower.nodes import Call, Loop, LoweredKernel, Node, Register, Scope, Window
from isamap.lower.place import place_fragments
from isamap.sim.run import SimResult, SimulationFault, simulate
from tests.sim.bench import F32, array, lowered, machine, reg

X = np.ones(64, np.float32)
ZERO = Literal("0", F32)


def mac(c: str) -> Call:
    return Call("mac", (("a", reg("a")), ("b", reg("a")), ("c", reg(c))))


def set_(r: str) -> Call:
    return Call("set", (("v", ZERO), ("r", reg(r))))


def chains(count: int, length: int) -> LoweredKernel:
    """Chains of dependent fma, side by side."""
    names = [f"c{n}" for n in range(count)]
    start = tuple(set_(name) for name in ["a", *names])
    steps = Loop("i", const(length), tuple(mac(name) for name in names))
    keep = tuple(
        Call("store", (("r", reg(name)), ("m", Window("Y", const(4 * n)))))
        for n, name in enumerate(names)
    )
    body = Scope(tuple(map(reg, ["a", *names])), (*start, steps, *keep))
    return lowered([array("Y", "out", 4 * count)], [body])


def simulated(found: LoweredKernel, issue: int = 4) -> SimResult:
    toy = machine(issue)
    registers = replace(toy.storages[0], count=99)
    return simulate(found, replace(toy, storages=(registers, *toy.storages[1:])), {})


def test_one_chain_is_bound_by_latency() -> None:
    result = simulated(chains(1, 100))
    assert result.instructions == {"set": 2, "mac": 100, "store": 1}
    # A set, a hundred dependent fma.
    assert result.latency == 1 + 100 * 4
    assert result.busy["fp"] == Fraction(100, 4)
    assert result.cycles == result.latency + 4


def test_many_chains_are_bound_by_the_unit() -> None:
    result = simulated(chains(40, 100), issue=100)
    assert result.busy["fp"] == 40 * 100 * Fraction(1, 2) / 2
    assert result.latency == 401
    assert result.cycles == 1000 + 4


def test_a_narrow_issue_is_a_bound() -> None:
    result = simulated(chains(40, 100), issue=1)
    assert result.issue == 41 + 4000 + 40
    assert result.cycles == 4081 + 4


TILE = Register("t", "spm", F32, (8, 8))


def fetch(rows: int) -> Call:
    symbols = (("h", const(rows)), ("w", const(8)), ("P", const(8)))
    return Call("fetch", (("m", Window("X", const(0))), ("t", TILE)), symbols)


def test_movements_take_the_ports_of_their_storage() -> None:
    drain = Call("drain", (("t", TILE), ("m", Window("Y", const(0)))))
    found = lowered(
        [array("X", "in", 64), array("Y", "out", 64)], [Scope((TILE,), (fetch(8), fetch(2), drain))]
    )
    result = simulate(place_fragments(found, machine()), machine(), {"X": X})
    assert result.outputs["Y"].tolist() == X.tolist()
    assert result.busy["spm read"] == Fraction(80 * 4, 16)
    assert result.busy["spm write"] == Fraction(64 * 4, 8)
    assert result.busy["dma"] == 3
    assert result.cycles == 32 + 1
    assert result.peak == {"spm": 256}


def test_without_caches_movements_take_the_memory_too() -> None:
    drain = Call("drain", (("t", TILE), ("m", Window("Y", const(0)))))
    found = lowered(
        [array("X", "in", 64), array("Y", "out", 64)], [Scope((TILE,), (fetch(8), drain))]
    )
    *others, memory = machine().storages
    assert memory.name == "memory"
    slow = replace(machine(), storages=(*others, replace(memory, read=Fraction(2), write=None)))
    placed = place_fragments(found, slow)
    assert simulate(placed, slow, {"X": X}).busy["memory read"] == Fraction(64 * 4, 2)
    assert simulate(placed, slow, {"X": X}).cycles == 128 + 1
    cache = replace(memory, name="l1", kind="cache")
    cached = replace(slow, storages=(*slow.storages, cache))
    assert "memory read" not in simulate(placed, cached, {"X": X}).busy


def tiles(count: int, *body: Node) -> LoweredKernel:
    names = tuple(Register(f"t{n}", "spm", F32, (8, 8)) for n in range(count))
    uses = tuple(
        Call(
            "fetch",
            (("m", Window("X", const(0))), ("t", t)),
            (("h", const(8)), ("w", const(8)), ("P", const(8))),
        )
        for t in names
    )
    again = uses[::-1]
    return lowered([array("X", "in", 64)], [Scope(names, (*uses, *again, *body))])


def test_a_full_scratchpad_is_no_fault_and_one_more_tile_is() -> None:
    four = place_fragments(tiles(4), machine())
    assert simulate(four, machine(), {"X": X}).peak["spm"] == 1024
    message = "k needs 1280 bytes of spm, which has 1024: 256 bytes over"
    with pytest.raises(SimulationFault, match=message):
        simulate(place_fragments(tiles(5), machine()), machine(), {"X": X})


def test_tiles_that_do_not_live_together_share_room() -> None:
    one = tiles(3).body
    found = lowered([array("X", "in", 64)], [*one, *one, Loop("i", const(2), one)])
    assert peak_use(found, machine()) == {"spm": 768}


def test_a_register_lives_from_its_first_use_to_its_last() -> None:
    copies = tuple(
        node
        for name in "abcd"
        for node in (
            set_(name),
            Call("store", (("r", reg(name)), ("m", Window("Y", const(0))))),
        )
    )
    found = lowered([array("Y", "out", 4)], [Scope(tuple(map(reg, "abcd")), copies)])
    assert peak_use(found, machine()) == {"reg": 1}
    together = tuple(sorted(copies, key=lambda call: call.instruction))
    found = lowered([array("Y", "out", 4)], [Scope(tuple(map(reg, "abcd")), together)])
    assert peak_use(found, machine()) == {"reg": 4}
    over = excess(found, machine())
    assert over is not None
    assert "needs 4 registers of reg, which has 2: 2 registers" in over


def test_an_unused_register_takes_no_room() -> None:
    found = lowered([array("X", "in", 64)], [Scope((TILE, reg("a")), ())])
    assert peak_use(found, machine()) == {}


def test_scratchpad_tiles_are_rounded_up_to_the_alignment() -> None:
    small = Register("t", "spm", F32, (3,))
    call = Call("load", (("m", Window("X", var("i"))), ("r", small)))
    found = lowered([array("X", "in", 64)], [Scope((small,), (Loop("i", const(1), (call,)),))])
    assert peak_use(found, machine()) == {"spm": 64}
