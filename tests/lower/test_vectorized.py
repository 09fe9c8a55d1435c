"""Which loops of single elements may be done in vectors: those of independent iterations."""

from dataclasses import replace

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, read, var
from isamap.lower.nodes import Call, Loop, Node, Register, Scope, Window
from isamap.lower.vectorized import lanes_of

AT = var("i")
A, R = (Register(name, "reg", DTYPES["s32"], ()) for name in "ar")


def machine(vector: int = 32) -> Accelerator:
    found = load_hardware("portable_c")
    assert found.toolchain is not None
    return replace(found, toolchain=replace(found.toolchain, vector=vector))


def lanes(loop: Loop, vector: int = 32) -> int:
    found = machine(vector)
    return lanes_of(loop, {entry.name: entry for entry in found.entries}, found)


def load(buffer: str, offset: Index, register: Register = A) -> Call:
    return Call("c_load_s32", (("m", Window(buffer, offset)), ("r", register)))


def store(buffer: str, offset: Index, register: Register = R) -> Call:
    return Call("c_store_s32", (("r", register), ("m", Window(buffer, offset))))


def negated(offset: Index = AT, target: Index = AT, source: str = "X", result: str = "Y") -> Loop:
    """Return the loop of ``result[target] = -source[offset]``."""
    neg = Call("c_neg_s32", (("a", A), ("r", R)))
    body: tuple[Node, ...] = (load(source, offset), neg, store(result, target))
    return Loop("i", const(100), (Scope((A, R), body),))


def test_as_many_are_done_at_once_as_a_vector_holds() -> None:
    assert lanes(negated(), 32) == 8
    assert lanes(negated(), 64) == 16
    assert lanes(negated(), 0) == 1


@pytest.mark.parametrize(
    ("loop", "at_once"),
    [
        (negated(offset=99 - AT), 8),
        (negated(offset=const(7)), 8),
        (negated(offset=4 * AT), 8),
        (negated(offset=5 * AT), 1),  # gathered
        (negated(offset=AT * AT), 1),
        (negated(target=2 * AT), 1),  # scattered
        (negated(target=const(3)), 1),  # all write one element
        (negated(source="Y"), 8),  # in place
        (negated(source="Y", offset=AT + 1), 1),  # what the next iteration writes
        (negated(source="Y", offset=AT - 1), 1),  # what the iteration before has written
    ],
)
def test_iterations_neither_depend_on_each_other_nor_lie_far_apart(
    loop: Loop, at_once: int
) -> None:
    assert lanes(loop) == at_once


def test_values_of_positions_need_no_registers_and_read_nothing_that_is_written() -> None:
    """An operand that is an index is a value of the instruction's own."""
    for value, at_once in ((2 * AT, 8), (read("X", (AT,)), 8), (read("Y", (AT - 1,)), 1)):
        put = Call("c_store_s32", (("r", value), ("m", Window("Y", AT))))
        assert lanes(Loop("i", const(100), (put,))) == at_once


def test_what_stays_in_a_register_is_not_done_at_once() -> None:
    add = Call("c_add_s32", (("a", A), ("b", R), ("r", R)))
    assert lanes(Loop("i", const(100), (Scope((A,), (load("X", AT), add)),))) == 1


def test_vectors_of_the_machine_are_its_own() -> None:
    found = load_hardware("x86_avx512")
    wide = Register("v", "zmm", DTYPES["f32"], (16,))
    calls = (
        Call("vload_f32", (("m", Window("X", 16 * AT)), ("r", wide))),
        Call("vstore_f32", (("r", wide), ("m", Window("Y", 16 * AT)))),
    )
    loop = Loop("i", const(100), (Scope((wide,), calls),))
    assert lanes_of(loop, {entry.name: entry for entry in found.entries}, found) == 1
