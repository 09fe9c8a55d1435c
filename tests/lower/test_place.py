"""Where fragments lie in scratchpads: what is needed together is apart, in banks of its own."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.ir.nodes import Literal
from isamap.lower.capacity import excess
from isamap.lower.exact import Problem, better, is_least, within
from isamap.lower.nodes import Array, Call, LoweredKernel, Node, Register, Scope, Window
from isamap.lower.place import place_fragments, placements
from isamap.lower.printer import print_lowered
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.assigned import assigned_registers
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.sim.run import simulate
from isamap.text.load import parse_module

S8, S32 = DTYPES["s8"], DTYPES["s32"]


def machine(size: int, banks: int) -> Accelerator:
    """Return a machine with a scratchpad of so many bytes in banks, and nothing to be set."""
    shipped = load_hardware("gemmini")
    storages = tuple(
        replace(s, size=size, banks=banks) if s.name == "spad" else s for s in shipped.storages
    )
    entries = tuple(replace(entry, states={}) for entry in shipped.entries)
    return replace(shipped, storages=storages, states=(), entries=entries)


def tile(name: str, number: int | None = None) -> Register:
    return Register(name, "spad", S8, (16, 16), number)


def acc(number: int | None = None) -> Register:
    return Register("c", "acc", S32, (16, 16), number)


def load(register: Register) -> Call:
    symbols = (("P", const(16)), ("cols", const(16)), ("rows", const(16)))
    return Call("mvin", (("m", Window("A", const(0))), ("r", register)), symbols)


def multiply(a: Register, b: Register, c: Register) -> Call:
    return Call("matmul", (("a", a), ("b", b), ("c", c)))


def kernel(*tiles: Register, c: Register, calls: tuple[Node, ...]) -> LoweredKernel:
    """Return a kernel that clears a sum, executes calls, and stores the sum."""
    zero = Call("set_acc", (("v", Literal("0", S32)), ("r", c)))
    symbols = (("P", const(16)), ("cols", const(16)), ("rows", const(16)))
    out = Call("mvout", (("r", c), ("m", Window("C", const(0)))), symbols)
    arrays = (Array("A", "in", S8, const(256)), Array("C", "out", S32, const(256)))
    return LoweredKernel("k", (), arrays, (Scope((c, *tiles), (zero, *calls, out)),))


def product(a: Register, b: Register, c: Register | None = None) -> LoweredKernel:
    own = c or acc()
    return kernel(a, b, c=own, calls=(load(a), load(b), multiply(a, b, own)))


def ones() -> dict[str, np.ndarray]:
    return {"A": np.ones(256, np.int8)}


def test_operands_of_a_call_lie_in_two_banks() -> None:
    own = machine(1024, 2)
    placed = place_fragments(product(tile("a"), tile("b")), own)
    assert "a = 0, b = 32 : s8[16, 16] @ spad" in print_lowered(placed)
    (accumulators, found) = placements(placed, own)
    assert (found.storage, found.used, found.banks, found.clashes) == ("spad", 768, 2, 0)
    assert accumulators.storage == "acc"
    assert simulate(placed, own, ones()).conflicts == 0


def test_what_was_used_last_is_overwritten_last_whichever_bank_it_is_in() -> None:
    """Scopes after each other with two tiles each: the third of them overwrites the first."""
    own = machine(1024, 2)
    tiles = [tile(f"{name}{n}") for n in range(3) for name in "ab"]
    scopes = tuple(
        Scope((a, b), (load(a), load(b), load(a)))
        for a, b in zip(tiles[::2], tiles[1::2], strict=True)
    )
    text = print_lowered(place_fragments(kernel(c=acc(), calls=scopes), own))
    assert re.findall(r"([ab]\d) = (\d+)", text) == [
        ("a0", "0"), ("b0", "16"), ("a1", "32"), ("b1", "48"), ("a2", "0"), ("b2", "16"),
    ]  # fmt: skip


def test_operands_that_must_be_apart_stay_in_their_bank_and_go_on_there() -> None:
    """Where banks in turn would put two of three operands in one bank."""
    own = machine(2048, 2)
    tiles = [tile(f"{name}{n}") for n in range(8) for name in "abd"]
    scopes = tuple(
        Scope((a, b, d), (load(a), load(b), load(d), multiply(a, d, acc()), multiply(b, d, acc())))
        for a, b, d in zip(tiles[::3], tiles[1::3], tiles[2::3], strict=True)
    )
    placed = place_fragments(kernel(c=acc(), calls=scopes), own)
    assert placements(placed, own)[1].clashes == 0
    rows = dict(re.findall(r"([abd]\d) = (\d+)", print_lowered(placed)))
    assert len({rows[f"{name}{n}"] for n in range(2) for name in "abd"}) == 6


def test_two_banks_cannot_hold_three_operands_apart_and_the_solver_says_so() -> None:
    own = machine(1024, 2)
    a, b, d = tile("a"), tile("b"), tile("d")
    pairs = ((a, b), (b, d), (a, d))
    calls = (*map(load, (a, b, d)), *(multiply(x, y, acc()) for x, y in pairs))
    placed = place_fragments(kernel(a, b, d, c=acc(), calls=calls), own)
    found = placements(placed, own)[1]
    assert (found.clashes, found.least) == (1, True)
    assert simulate(placed, own, ones()).conflicts == 1


def test_of_one_bank_there_is_nothing_to_choose_and_nothing_to_tell() -> None:
    own = machine(512, 1)
    placed = place_fragments(product(tile("a"), tile("b")), own)
    found = placements(placed, own)[1]
    assert (found.clashes, found.least) == (0, True)
    assert simulate(placed, own, ones()).conflicts == 0


def test_what_is_larger_than_a_bank_lies_in_several() -> None:
    own = machine(1024, 16)  # banks of four rows, tiles of 16
    placed = place_fragments(product(tile("a"), tile("b")), own)
    found = placements(placed, own)[1]
    assert (found.banks, found.clashes, found.least) == (8, 0, True)
    assert simulate(placed, own, ones()).conflicts == 0
    odd = product(tile("a", 0), tile("b", 18), acc(0))
    assert simulate(odd, own, ones()).conflicts == 0
    odd = product(tile("a", 2), tile("b", 18), acc(0))
    assert placements(odd, own)[1].clashes == 1
    assert simulate(odd, own, ones()).conflicts == 1


def test_fragments_that_reach_into_one_bank_clash_and_that_is_least() -> None:
    problem = Problem(16, 6, {"a": 8, "b": 8}, {"a": (), "b": ("a",)}, {("a", "b")})
    assert problem.clashes({"a": 0, "b": 8}) == 1
    assert is_least(problem, 1)
    roomy = replace(problem, rows=20)
    places = better(roomy, {"a": 0, "b": 8})
    assert places is not None
    assert roomy.clashes(places) == 0


def test_what_does_not_fit_stays_without_a_place_and_is_told() -> None:
    own = machine(256, 1)
    placed = place_fragments(product(tile("a"), tile("b")), own)
    assert "256 bytes over" in (excess(placed, own) or "")


def test_fragments_take_rows_in_turn_while_there_is_room() -> None:
    names = [tile(f"a{n}") for n in range(3)]
    calls = tuple(call for one in names for call in (load(one), multiply(one, one, acc())))
    lowered = kernel(*names, c=acc(), calls=calls)
    assert "a0 = 0, a1 = 16, a2 = 32 :" in print_lowered(place_fragments(lowered, machine(768, 1)))
    assert "a0 = 0, a1 = 16, a2 = 0 :" in print_lowered(place_fragments(lowered, machine(512, 1)))


def test_fragments_that_overlap_are_a_fault_when_the_lost_one_is_read() -> None:
    own = machine(1024, 2)
    wrong = product(tile("a", 0), tile("b", 8), acc(0))
    with pytest.raises(LoweredFault, match="register a, which has no value"):
        run_lowered(wrong, own, ones())
    assert any("finds b in spad" in fault for fault in assigned_registers(own, wrong).faults)
    with pytest.raises(AssertionError, match="overlap"):
        placements(wrong, own)


@pytest.mark.parametrize(("number", "size"), [(-1, 1024), (64, 1024), (24, 1024)])
def test_fragments_outside_or_across_banks_are_a_fault(number: int, size: int) -> None:
    own = machine(size, 2)
    wrong = product(tile("a", number), tile("b", 48 if number < 24 else 0), acc(0))
    with pytest.raises(LoweredFault, match=f"spad has no {number}"):
        run_lowered(wrong, own, ones())
    assert assigned_registers(own, wrong).faults


def test_the_solver_finds_room_that_taking_the_least_row_does_not() -> None:
    # c comes when b alone is left, in the middle: with b elsewhere all would fit.
    problem = Problem(
        5,
        5,
        {"a": 2, "b": 1, "c": 4},
        {"a": [], "b": ["a"], "c": ["b"]},
        frozenset(),
    )
    found = better(problem, {"a": 0, "b": 2})
    assert found is not None
    assert not problem.faults(found)


def brute(problem: Problem) -> int | None:
    """Return the fewest clashes of all placements, None if there is none."""
    best: int | None = None

    def extend(places: dict[str, int], names: list[str]) -> None:
        nonlocal best
        if not names:
            clashes = problem.clashes(places)
            best = clashes if best is None else min(best, clashes)
            return
        for row in range(problem.rows):
            trial = {**places, names[0]: row}
            if not problem.faults(trial) or all(
                text.endswith("has no place") for text in problem.faults(trial)
            ):
                extend(trial, names[1:])

    extend({}, list(problem.sizes))
    return best


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    banks, bank = draw(st.sampled_from([(1, 4), (2, 2), (2, 3), (3, 2)]))
    rest = draw(st.integers(0, bank - 1))  # rows that are not enough for a bank
    count = draw(st.integers(1, 4))
    names = [f"f{n}" for n in range(count)]
    sizes = {name: draw(st.integers(1, 3)) for name in names}
    together = {name: [o for o in names[:n] if draw(st.booleans())] for n, name in enumerate(names)}
    pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]]
    beside = frozenset(pair for pair in pairs if draw(st.booleans()))
    return Problem(banks * bank + rest, bank, sizes, together, beside)


PUSHED = Problem(
    6,
    3,
    {"f0": 3, "f1": 1, "f2": 1},
    {"f0": [], "f1": [], "f2": ["f0", "f1"]},
    frozenset({("f1", "f2")}),
)
"""The third fragment has no room beside the first: that would push it to the bank of the second."""


@given(problems())
@example(PUSHED)
def test_the_solver_finds_exactly_the_fewest_clashes(problem: Problem) -> None:
    fewest = brute(problem)
    found = better(problem, {})
    if fewest is None:
        assert found is None
        assert within(problem, len(problem.beside))[0] == "unsat"
        return
    assert found is not None
    assert problem.clashes(found) == fewest
    assert is_least(problem, fewest)


def rounds(sums: int, count: int) -> Problem:
    """Return a problem of three banks of four: sums, to each of which rounds add a product."""
    sizes = {f"c{n}": 1 for n in range(sums)}
    together = {name: list(sizes)[:n] for n, name in enumerate(sizes)}
    beside: set[tuple[str, str]] = set()
    held = list(sizes)
    for i in range(count):
        own = [f"x{i}", *(f"y{i}_{n}" for n in range(sums))]
        for n, name in enumerate(own):
            sizes[name], together[name] = 1, [*held, *own[:n]]
        for n in range(sums):
            triple = sorted((f"c{n}", f"x{i}", f"y{i}_{n}"))
            beside |= {(a, b) for k, a in enumerate(triple) for b in triple[k + 1 :]}
    return Problem(12, 4, sizes, together, frozenset(beside))


@pytest.mark.parametrize(("count", "fewest"), [(1, 2), (2, 4), (3, 6)])
def test_it_is_decided_how_few_clashes_a_crowded_scratchpad_has(count: int, fewest: int) -> None:
    problem = rounds(5, count)
    found = better(problem, {})
    assert found is not None
    assert problem.clashes(found) == fewest
    assert is_least(problem, fewest)


def test_what_is_needed_at_a_time_and_is_too_much_has_no_places() -> None:
    assert within(rounds(6, 19), 1000) == ("unsat", {})


def test_a_mapped_kernel_prints_its_places_and_is_checked_with_them() -> None:
    text = """kernel mm { in A : s8[35, 70]  in B : s8[70, 43]  out C : s32[35, 43]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    (one,) = parse_module(text).kernels
    own = load_hardware("gemmini")
    result = map_kernel(one, own, Options())
    assert all(found.clashes == 0 for found in result.placements)
    assert {found.storage for found in result.placements} == {"acc", "spad"}
    checked = assigned_registers(own, result.lowered)
    assert checked.fragments > 0
    assert not checked.faults
