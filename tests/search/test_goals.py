from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.lower.nodes import Array, Call, Copy, Guard, Loop, LoweredKernel, Scope
from isamap_search.goals import dominates, workspace_bytes, written_calls

F32 = DTYPES["f32"]


def test_memory_is_what_is_neither_input_nor_output() -> None:
    arrays = (
        Array("A", "in", F32, const(100)),
        Array("C", "out", F32, const(100)),
        Array("packed", "local", F32, var("N") * const(3)),
        Array("kept", "prepared", F32, const(5)),
        Array("staged", "local", F32, const(16), private=True),
    )
    lowered = LoweredKernel("k", ("N",), arrays, ())
    assert workspace_bytes(lowered, {"N": 7}, 1) == 4 * (21 + 5 + 16)
    assert workspace_bytes(lowered, {"N": 7}, 3) == 4 * (21 + 5 + 48)


def test_calls_are_counted_where_they_are_written() -> None:
    call, copy = Call("f", ()), Copy((), "A", const(0), None, const(0))
    nested = Loop("i", const(9), (call, Guard((), (call, copy), (Scope((), (call,)),))))
    assert written_calls((nested, call)) == 5
    assert written_calls(()) == 0


def test_a_front_holds_what_nothing_beats() -> None:
    assert dominates((1.0, 2.0), (1.0, 3.0))
    assert not dominates((1.0, 2.0), (1.0, 2.0))
    assert not dominates((1.0, 3.0), (2.0, 2.0))
