import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from isamap.diagnostics import HardwareError
from isamap.emit.c import emit_c
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, read, var
from isamap.lower.nodes import Call, Loop, Register, Scope, Window
from isamap.lower.printer import print_lowered
from isamap.run.build import build_shared
from tests.conftest import Golden
from tests.emit.building import MACHINE, compiled, emitted
from tests.emit.machines import kernel
from tests.emit.samples import (
    Sample,
    failing,
    gemm,
    increment,
    indices,
    padded,
    prepared,
    reversal,
    sample,
    scalars,
)

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize(
    "made", [gemm(parallel=True), padded(), reversal(), prepared()], ids=lambda s: s.lowered.name
)
def test_emitted_text(made: Sample, golden: Golden) -> None:
    source = emitted(made)
    name = made.lowered.name
    golden(GOLDEN / f"{name}.c", source.functions)
    golden(GOLDEN / f"{name}.h", source.header)
    golden(GOLDEN / f"{name}.lowered", print_lowered(made.lowered))


def test_the_same_input_gives_the_same_text() -> None:
    assert emitted(gemm()) == emitted(gemm())


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 37, 7), (3, 16, 2), (2, 100, 33)])
def test_a_gemm_with_tails(shape: tuple[int, int, int], parallel: bool) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (m, k)).astype(np.float32)
    b = rng.integers(-8, 8, (k, n)).astype(np.float32)
    got = compiled(gemm(parallel))(a, b, threads=2 if parallel else 1)["C"]
    np.testing.assert_array_equal(got, a @ b)


CONSTANTS = {
    "f64": "0.1",
    "f32": "0.1",
    "f16": "0.1",
    "bf16": "-inf",
    "f8e4m3": "0.1",
    "f8e5m2": "-3",
    "s64": "-9223372036854775808",
    "s32": "-2147483648",
    "s16": "-32768",
    "s8": "-128",
    "s4": "-8",
    "u64": "18446744073709551615",
    "u32": "4294967295",
    "u16": "65535",
    "u8": "255",
    "u4": "15",
    "bool": "true",
}


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_passes_through_memory_and_constants(name: str) -> None:
    dtype = DTYPES[name].numpy
    x = np.array([1]).astype(dtype) if name == "bool" else np.array([-3]).astype(dtype)
    text = CONSTANTS[name]
    constant = (
        np.array([1]) if name == "bool" else np.array([float(text) if "f" in name else int(text)])
    )
    got = compiled(scalars(name, text))(x)["Y"]
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.concatenate([x, constant.astype(dtype)]))


def test_an_index_may_be_read_from_four_bit_integers() -> None:
    # ml_dtypes keeps the low four bits of a byte: -3 is 13 there.
    t = np.array([-3, 7], ml_dtypes.int4)
    assert t.view(np.int8).tolist() == [13, 7]
    value = read("T", (var("i"),))
    call = Call("put_index", (("v", value), ("m", Window("Y", var("i")))))
    shapes = kernel("narrow", [("T", "in", "s4", [2]), ("Y", "out", "s64", [2])])
    got = compiled(sample(shapes, (Loop("i", const(2), (call,)),)))(t)["Y"]
    np.testing.assert_array_equal(got, [-3, 7])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_private_arrays_are_not_shared_by_threads(threads: int) -> None:
    x = np.random.default_rng(2).integers(-99, 99, (9, 1000), np.int32)
    np.testing.assert_array_equal(compiled(reversal())(x, threads=threads)["Y"], x[:, ::-1])


def test_inout_starts_from_its_content() -> None:
    z = np.array([41], np.int64)
    assert compiled(increment())(z)["Z"] is z
    assert z[0] == 42


def test_a_requirement_is_checked_first() -> None:
    made = indices((var("M"),), (1, 1), requires=(var("M") - 1, 4 - var("M")))
    source = emitted(made)
    assert source.requires == ("M - 1 >= 0", "-M + 4 >= 0")
    assert source.failure(2) == "'-M + 4 >= 0' does not hold"
    assert "if (!(4 >= n_M)) return 2;" in source.text


def test_counters_registers_buffers_and_symbols_may_share_a_name() -> None:
    s64 = DTYPES["s64"]
    r = Register("x", "raw", s64, ())
    loop = Loop(
        "x",
        const(2),
        (
            Scope(
                (r,),
                (
                    Call("get_s64", (("m", Window("x", var("x") * 0)), ("r", r))),
                    Call("put_s64", (("r", r), ("m", Window("int", var("x"))))),
                ),
            ),
        ),
    )
    shapes = kernel("x", [("x", "in", "s64", [1]), ("int", "out", "s64", [2])], ["x"])
    got = compiled(sample(shapes, (loop,)))(np.array([5]), symbols={"x": 1})["int"]
    np.testing.assert_array_equal(got, [5, 5])


def test_registers_that_are_never_read_give_no_warning() -> None:
    # The machine compiles with -Wall -Wextra -Werror.
    f32 = DTYPES["f32"]
    r, idle = Register("r", "raw", f32, ()), Register("idle", "raw", f32, ())
    body = Scope((r, idle), (Call("get_f32", (("m", Window("X", const(0))), ("r", r))),))
    shapes = kernel("idle", [("X", "in", "f32", [1])])
    compiled(sample(shapes, (body,)))


def test_the_header_compiles_alone_and_with_the_source(tmp_path: Path) -> None:
    source = emitted(gemm())
    (tmp_path / "gemm.h").write_text(source.header)
    (tmp_path / "both.c").write_text(f'#include "gemm.h"\n{source.text}')
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsyntax-only"]
    subprocess.run(["gcc", *flags, str(tmp_path / "both.c")], check=True, cwd=tmp_path)
    subprocess.run(["gcc", *flags, "-x", "c", str(tmp_path / "gemm.h")], check=True)


def test_an_instruction_without_template_is_refused() -> None:
    with pytest.raises(HardwareError, match=r"E514.*unwritable has no C template"):
        emitted(failing("unwritable"))


def test_a_register_without_c_type_is_refused() -> None:
    r = Register("r", "vec", DTYPES["f64"], (16,))
    call = Call("load", (("m", Window("X", const(0))), ("r", r)))
    shapes = kernel("untyped", [("X", "in", "f32", [16])])
    with pytest.raises(HardwareError, match=r"E513.*vec gives no C type for f64"):
        emitted(sample(shapes, (Scope((r,), (call,)),)))


def test_an_instruction_without_template_is_told_before_a_register_without_type() -> None:
    r = Register("r", "vec", DTYPES["f64"], (16,))
    load = Call("load", (("m", Window("X", const(0))), ("r", r)))
    unwritable = Call("unwritable", (("m", Window("X", const(0))),))
    shapes = kernel("untyped", [("X", "inout", "f32", [16])])
    with pytest.raises(HardwareError, match="E514"):
        emitted(sample(shapes, (Scope((r,), (load, unwritable)),)))


def test_a_name_cannot_leave_the_comment_or_the_code() -> None:
    evil = "a */ int system(const char *); /*"
    shapes = kernel(evil, [(evil, "inout", "s64", [1])])
    body = Call("hang", (("m", Window(evil, const(0))),))
    source = emit_c(sample(shapes, (body,)).lowered, MACHINE, shapes)
    build_shared(source, MACHINE)
    code = re.sub(r"/\*.*?\*/", "", source.text + source.header, flags=re.DOTALL)
    assert "system(" not in code
