import threading
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.emit.c import emit_c
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Array, Call, Copy, Register, Scope, Window
from isamap.run.build import build_shared
from isamap.run.callable import Compiled
from isamap.run.outcome import Crash
from isamap.run.worker import Loaded, Worker
from tests.emit.building import MACHINE, compiled
from tests.emit.machines import kernel
from tests.emit.samples import Sample, gemm, increment, indices, padded, reversal, sample

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)


@pytest.fixture(scope="module")
def multiply() -> Compiled:
    return compiled(gemm())


def codes(caught: pytest.ExceptionInfo[ArgumentsError]) -> list[str]:
    return [d.code for d in caught.value.diagnostics]


def test_arrays_are_given_by_position_or_by_name(multiply: Compiled) -> None:
    for got in (multiply(A, B), multiply(A, B=B), multiply(B=B, A=A)):
        np.testing.assert_array_equal(got["C"], A @ B)
    np.testing.assert_array_equal(multiply.call({"A": A, "B": B})["C"], A @ B)


def test_results_go_where_out_says(multiply: Compiled) -> None:
    c = np.empty((3, 5), np.float32)
    assert multiply(A, B, out=c)["C"] is c
    np.testing.assert_array_equal(c, A @ B)
    wide = np.zeros((3, 10), np.float32)
    assert multiply(A, B, out={"C": wide[:, ::2]})["C"].base is wide
    np.testing.assert_array_equal(wide[:, ::2], A @ B)
    assert not wide[:, 1::2].any()


def test_arrays_that_are_not_contiguous_are_taken(multiply: Compiled) -> None:
    a = np.asfortranarray(A)
    np.testing.assert_array_equal(multiply(a, B[:, ::-1])["C"], A @ B[:, ::-1])


def test_an_output_over_an_input_is_computed_as_if_apart() -> None:
    x = np.arange(27, dtype=np.int32).reshape(9, 3)
    expected = x[:, ::-1].copy()
    assert compiled(reversal())(x, out=x)["Y"] is x
    np.testing.assert_array_equal(x, expected)


def swap() -> Sample:
    u8 = [("X", "in", "u8", ["N"]), ("P", "out", "u8", ["N"]), ("Q", "out", "u8", ["N"])]
    row = (("i", var("N")),)
    body = tuple(Copy(row, t, var("i"), "X", var("i")) for t in ("P", "Q"))
    return sample(kernel("twice", u8, ["N"]), body)  # type: ignore[arg-type]


def test_several_outputs_come_in_the_kernels_order() -> None:
    x = np.arange(100, dtype=np.uint8)
    written = compiled(swap())(x)
    assert list(written) == ["P", "Q"]
    assert written["P"].tolist() == written["Q"].tolist() == x.tolist()
    with pytest.raises(ArgumentsError, match=r"E534.*P and Q lie in the same memory"):
        compiled(swap())(x, out={"P": x, "Q": x[:]})
    with pytest.raises(ArgumentsError, match=r"E528.*P, Q"):
        compiled(swap())(x, out=x)


def test_contiguous_arrays_are_not_copied() -> None:
    # A bound call refuses what it would have to copy.
    function = compiled(increment())
    z = np.array([1], np.int64)
    again = function.bind(z)
    assert again()["Z"] is z
    assert z[0] == 2
    assert again.call() == 0
    assert z[0] == 3
    x = np.zeros((9, 6), np.int32)
    with pytest.raises(ArgumentsError, match=r"E536.*X : s32"):
        compiled(reversal()).bind(x[:, ::2])
    with pytest.raises(ArgumentsError, match=r"E536.*X : s32"):
        compiled(reversal()).bind(x, out=x)


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_from_several_threads_do_not_meet(threads: int) -> None:
    function = compiled(reversal())
    rng = np.random.default_rng(5)
    inputs = [rng.integers(0, 1000, (9, 20_000), np.int32) for _ in range(4)]
    wrong = []

    def work(x: np.ndarray) -> None:
        for _ in range(20):
            got = function(x, threads=threads)["Y"]
            if not np.array_equal(got, x[:, ::-1]):
                wrong.append(x)

    workers = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_bfloat16_arrays_are_of_ml_dtypes() -> None:
    x = np.ones((5, 5), ml_dtypes.bfloat16)
    got = compiled(padded())(x)["Y"]
    assert got.dtype == ml_dtypes.bfloat16


def shaped(shape: list[Index], symbols: list[str]) -> Compiled:
    fill = Copy((("i", product(shape)),), "Y", var("i"), "X", var("i"))
    buffers = [("X", "in", "u8", shape), ("Y", "out", "u8", shape)]
    return compiled(sample(kernel("shaped", buffers, symbols), (fill,)))  # type: ignore[arg-type]


def test_extents_are_inferred_from_sums_and_multiples() -> None:
    function = shaped([2 * var("M") + 1, var("M") + var("N")], ["M", "N"])
    x = np.arange(45, dtype=np.uint8).reshape(5, 9)  # M = 2, N = 7
    np.testing.assert_array_equal(function(x)["Y"], x)
    with pytest.raises(ArgumentsError, match=r"E522.*has shape \(7, 9\) here, found \(6, 9\)"):
        function(np.zeros((6, 9), np.uint8))
    with pytest.raises(ArgumentsError, match=r"E524.*extent N must be 1 or more, found -2"):
        function(np.zeros((9, 2), np.uint8), symbols={"N": -2})


def test_an_extent_that_no_shape_tells_must_be_given() -> None:
    function = shaped([var("M") * var("N")], ["M", "N"])
    with pytest.raises(ArgumentsError) as caught:
        function(np.zeros(6, np.uint8))
    assert codes(caught) == ["E523", "E523"]
    assert function(np.zeros(6, np.uint8), symbols={"M": 2})["Y"].shape == (6,)


def test_an_output_given_tells_extents() -> None:
    fill = Copy((("i", var("N")),), "Y", var("i"), None, const(0), (), Literal("3", DTYPES["u8"]))
    function = compiled(sample(kernel("fill", [("Y", "out", "u8", ["N"])], ["N"]), (fill,)))
    assert function(out=np.zeros(4, np.uint8))["Y"].tolist() == [3, 3, 3, 3]


def test_what_does_not_fit_is_told_with_expected_and_found(multiply: Compiled) -> None:
    with pytest.raises(
        ArgumentsError, match=r"E521.*A : f32\[M, K\] takes float32 elements, found float64"
    ):
        multiply(A.astype(np.float64), B)
    with pytest.raises(
        ArgumentsError, match=r"E522.*B : f32\[K, N\] has shape \(4, 5\) here, found \(5, 5\)"
    ):
        multiply(A, np.zeros((5, 5), np.float32))
    with pytest.raises(
        ArgumentsError, match=r"E522.*A : f32\[M, K\] has 2 dimensions, found shape \(12,\)"
    ):
        multiply(A.ravel(), B)
    with pytest.raises(ArgumentsError, match=r"E520.*no array is given for B"):
        multiply(A, symbols={"N": 5})
    with pytest.raises(ArgumentsError, match=r"E526.*takes 2 arrays \(A, B\), found 3"):
        multiply(A, B, A)
    with pytest.raises(ArgumentsError, match=r"E527.*A is given twice"):
        multiply(A, B, A=A)
    with pytest.raises(ArgumentsError, match=r"E529.*found 0"):
        multiply(A, B, threads=0)
    with pytest.raises(ArgumentsError, match=r"E529.*found an array"):
        multiply(A, B, threads=A)  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match=r"E531.*gemm has no input Z"):
        multiply(A, B, Z=A)
    with pytest.raises(ArgumentsError, match=r"E531.*gemm has no output A"):
        multiply(A, B, out={"A": A})
    with pytest.raises(ArgumentsError, match=r"E532.*B takes a numpy array, found list"):
        multiply(A, B.tolist())  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match=r"E525.*no extent Q"):
        multiply(A, B, symbols={"Q": 1})
    with pytest.raises(ArgumentsError, match=r"E521.*found float16"):
        multiply(A, B, out=np.zeros((3, 5), np.float16))


def test_a_read_only_array_is_not_written() -> None:
    z = np.array([1], np.int64)
    z.flags.writeable = False
    with pytest.raises(ArgumentsError, match=r"E533.*Z : s64\[1\] is written"):
        compiled(increment())(z)
    assert z[0] == 1


def test_a_violated_requirement_is_told_with_the_extents() -> None:
    function = compiled(indices((var("M"),), (1, 1), requires=(3 - var("M"),)))
    with pytest.raises(ArgumentsError, match=r"E530.*'-M \+ 3 >= 0' does not hold for M = 4"):
        function(np.zeros(4, np.int32))


def test_alignment_that_an_instruction_asks_for_is_given() -> None:
    # The load traps unless both its array and the scratch array are aligned to 256 bytes.
    entries = [
        replace(
            e, emit="if ((uintptr_t){m} % 256) __builtin_trap();\n{r} = *{m};", align={"m": 256}
        )
        if e.name == "get_u8"
        else e
        for e in MACHINE.entries
    ]
    aligned = replace(MACHINE, entries=tuple(entries))
    u8 = DTYPES["u8"]
    r = Register("r", "raw", u8, ())

    def passed(source: str, target: str) -> Scope:
        load = Call("get_u8", (("m", Window(source, const(0))), ("r", r)))
        return Scope((r,), (load, Call("put_u8", (("r", r), ("m", Window(target, const(0)))))))

    scratch = tuple(Array(name, "local", u8, const(1)) for name in ("first", "second"))
    body = (passed("X", "first"), passed("first", "second"), passed("second", "Y"))
    buffers = kernel("aligned", [("X", "in", "u8", [1]), ("Y", "out", "u8", [1])])
    made = sample(buffers, body, scratch)
    source = emit_c(made.lowered, aligned, made.kernel)
    assert source.parameter("X").alignment == 256
    assert "aligned to 256 bytes" in source.header
    function = Compiled(source, build_shared(source, aligned))
    room = np.arange(1000, dtype=np.uint8)
    for start in (0, 1, 17):
        assert function(room[start : start + 1])["Y"].tolist() == [start]
    with Worker() as worker:
        got = worker.run(Loaded(function.path, source), {"X": room[9:10]}, {})
    assert not isinstance(got, Crash)
    assert got["Y"].tolist() == [9]
