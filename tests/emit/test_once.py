"""Which arrays code stores to once: then stores have no order."""

import pytest

from isamap.emit.once import written_once
from isamap.hw.load import load_hardware
from isamap.ir.index import Index, const, var
from isamap.lower.nodes import Array, Call, Guard, Loop, Node, Register, Window

MACHINE = load_hardware("sw26010")
ENTRIES = {entry.name: entry for entry in MACHINE.entries}
FRAGMENT = Register("r", "ldm", MACHINE.entry("put_f32").instruction.operand("r").dtype, (128, 128))
ARRAY = Array("C", "out", FRAGMENT.dtype, const(64))


def put(at: Index, rows: int = 2, cols: int = 3, pitch: int = 8) -> Node:
    """Store rows of columns at an element of a matrix with rows of eight."""
    symbols = {"rows": const(rows), "cols": const(cols), "P": const(pitch)}
    return Call("put_f32", (("r", FRAGMENT), ("m", Window("C", at))), tuple(symbols.items()))


def loop(body: Node, count: Index | None = None) -> Node:
    return Loop("i", count or const(4), (body,))


AT = var("i")


@pytest.mark.parametrize(
    ("nodes", "once"),
    [
        ([put(const(0)), put(const(3))], True),  # side by side
        ([put(const(0)), put(const(2))], False),
        ([put(const(0)), put(const(16))], True),
        ([put(const(0)), put(const(8))], False),  # the second row of one is the first of the other
        ([loop(put(16 * AT))], True),
        ([loop(put(8 * AT))], False),
        ([loop(put(const(0)))], False),
        ([loop(Guard((AT - 3,), (put(const(0)),)))], True),
        ([loop(Guard((AT - 2,), (put(const(0)),)))], False),
        ([loop(Guard((AT - 2,), (put(const(0)),), (put(const(16) + 16 * AT),)))], False),
        ([loop(Guard((AT - 3,), (put(const(0)),), (put(const(16) + 16 * AT),)))], True),
        ([loop(put(16 * AT), var("N"))], False),  # who knows how often
        ([put(var("N"))], False),
    ],
)
def test_elements_that_are_stored_twice_are_found(nodes: list[Node], once: bool) -> None:
    found = written_once(nodes, [ARRAY], ENTRIES)
    assert found == ({"C"} if once else set())
