"""Units that are queues: what waits for what, and what several places in a scratchpad change."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Array, Call, Copy, Loop, LoweredKernel, Node, Register, Scope, Window
from isamap.lower.place import place_fragments
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.sim.run import SimResult, simulate

S8, S32 = DTYPES["s8"], DTYPES["s32"]
# Of the description: cycles for which a unit is busy, and until the result is there.
LOADS, LOADED = 16, 116
MULTIPLIES, MULTIPLIED = 16, 48
STORES, STORED = 64, 164
SETS = 16
SHIPPED = load_hardware("gemmini")
# Nothing has to be set before these instructions.
MACHINE = replace(
    SHIPPED, states=(), entries=tuple(replace(entry, states={}) for entry in SHIPPED.entries)
)
ACC = Register("c", "acc", S32, (16, 16))


def tile(name: str, places: int = 1) -> Register:
    return Register(name, "spad", S8, (16, 16), places=places)


def load(to: Register, at: int = 0, array: str = "A") -> Call:
    symbols = (("P", const(16)), ("cols", const(16)), ("rows", const(16)))
    return Call("mvin", (("m", Window(array, const(at))), ("r", to)), symbols)


def multiply(a: Register, b: Register) -> Call:
    return Call("matmul", (("a", a), ("b", b), ("c", ACC)))


def clear(to: Register = ACC) -> Call:
    return Call("set_acc", (("v", Literal("0", S32)), ("r", to)))


def store(array: str = "C") -> Call:
    symbols = (("P", const(16)), ("cols", const(16)), ("rows", const(16)))
    return Call("mvout", (("r", ACC), ("m", Window(array, const(0)))), symbols)


def simulated(*body: Node, registers: tuple[Register, ...] = ()) -> SimResult:
    arrays = (Array("A", "in", S8, const(256)), Array("C", "out", S32, const(256)))
    lowered = LoweredKernel("k", (), arrays, (Scope((ACC, *registers), body),))
    placed = place_fragments(lowered, MACHINE)
    return simulate(placed, MACHINE, {"A": np.ones(256, np.int8)})


def test_what_is_read_is_waited_for() -> None:
    a, b = tile("a"), tile("b")
    result = simulated(clear(), load(a), load(b), multiply(a, b), store(), registers=(a, b))
    # One queue loads: it clears first, then brings one tile after the other.
    ready = SETS + LOADS + LOADED
    assert result.cycles == ready + MULTIPLIED + STORED
    assert result.waits["execute"] == ready - 3
    assert result.waits["store"] == ready + MULTIPLIED - 4


def test_units_work_side_by_side_on_what_does_not_depend() -> None:
    names = [tile(f"a{n}") for n in range(8)]
    body = [node for one in names for node in (load(one), multiply(one, one))]
    result = simulated(clear(), *body, store(), registers=tuple(names))
    # The sums of one tile are a chain; loads are done long before it ends.
    assert result.cycles == SETS + LOADED + 8 * MULTIPLIED + STORED
    assert result.busy["load"] == SETS + 8 * LOADS


def rounds(places: int, count: int = 6) -> Fraction:
    """Return the cycles of a loop that brings a tile and uses it at once."""
    a = tile("a", places)
    loop = Loop("k", const(count), (Scope((a,), (load(a), multiply(a, a))),))
    return simulated(clear(), loop, store()).cycles


def test_one_place_is_filled_when_it_has_been_read() -> None:
    # From the second round on: the product reads for 16 cycles, then the next tile comes.
    turn = LOADED + MULTIPLIES
    assert rounds(1) == SETS + LOADED + 5 * turn + MULTIPLIED + STORED


def test_two_places_let_the_next_tile_come_while_one_is_used() -> None:
    assert rounds(2) < rounds(1)
    # Two rounds for each turn of a place.
    turn = LOADED + MULTIPLIES
    assert rounds(2) == SETS + LOADED + LOADS + 2 * turn + MULTIPLIED + STORED + 32
    assert rounds(3) < rounds(2)


def test_with_places_enough_the_longest_chain_is_left() -> None:
    assert rounds(8) == SETS + LOADED + 6 * MULTIPLIED + STORED


def test_places_lie_one_after_the_other_and_are_apart() -> None:
    a, b = tile("a", 3), tile("b")
    lowered = LoweredKernel(
        "k",
        (),
        (Array("A", "in", S8, const(256)), Array("C", "out", S32, const(256))),
        (Scope((ACC, a, b), (clear(), load(a), load(b), multiply(a, b), store())),),
    )
    small = replace(
        MACHINE,
        storages=tuple(
            replace(s, size=1024, banks=1) if s.name == "spad" else s for s in MACHINE.storages
        ),
    )
    placed = place_fragments(lowered, small)
    (scope,) = placed.body
    assert isinstance(scope, Scope)
    assert {r.name: r.number for r in scope.registers} == {"c": 0, "a": 0, "b": 48}
    wrong = replace(b, number=32)  # in the third place of a
    calls = (clear(), load(a), load(wrong), multiply(a, wrong), store())
    fixed = replace(a, number=0)
    moved = tuple(
        replace(call, operands=tuple((n, fixed if p == a else p) for n, p in call.operands))
        for call in calls
    )
    body = (Scope((ACC, fixed, wrong), moved),)
    with pytest.raises(LoweredFault, match="register a, which has no value"):
        run_lowered(replace(placed, body=body), small, {"A": np.ones(256, np.int8)})


def test_what_was_stored_is_not_loaded_before_it_is_there() -> None:
    arrays = (
        Array("A", "in", S8, const(256)),
        Array("T", "local", S32, const(256)),
        Array("C", "out", S32, const(256)),
    )
    symbols = (("P", const(16)), ("cols", const(16)), ("rows", const(16)))
    again = Call("mvin_acc", (("m", Window("T", const(0))), ("r", ACC)), symbols)
    lowered = LoweredKernel(
        "k", (), arrays, (Scope((ACC,), (clear(), store("T"), again, store())),)
    )
    result = simulate(place_fragments(lowered, MACHINE), MACHINE, {"A": np.ones(256, np.int8)})
    assert result.cycles == SETS + STORED + LOADED + 48 + STORED


def test_a_copy_of_the_host_waits_for_what_it_reads_and_is_waited_for() -> None:
    arrays = (
        Array("A", "in", S8, const(256)),
        Array("T", "local", S32, const(256)),
        Array("C", "out", S32, const(256)),
    )
    copy = Copy((("n", const(256)),), "C", var("n"), "T", var("n"))
    late = tile("late")
    lowered = LoweredKernel(
        "k", (), arrays, (Scope((ACC, late), (clear(), store("T"), copy, load(late))),)
    )
    result = simulate(place_fragments(lowered, MACHINE), MACHINE, {"A": np.ones(256, np.int8)})
    assert result.cycles == SETS + STORED + LOADED
