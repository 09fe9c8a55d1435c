"""Element copies: what their conditions keep from happening."""

import numpy as np

from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, read, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Array, Copy, LoweredKernel
from isamap.sim.lowered import run_lowered


def test_a_point_without_a_source_reads_no_index() -> None:
    f32, s32 = DTYPES["f32"], DTYPES["s32"]
    place = read("I", (var("i"),))  # I has no element for the last two points
    copy = Copy(
        (("i", const(6)),),
        "Y",
        var("i"),
        "X",
        place,
        (3 - var("i"),),
        Literal("7", f32),
    )
    arrays = (
        Array("X", "in", f32, const(4)),
        Array("I", "in", s32, const(4)),
        Array("Y", "out", f32, const(6)),
    )
    lowered = LoweredKernel("k", (), arrays, (copy,))
    given = {"X": np.arange(4, dtype=np.float32), "I": np.array([3, 0, 2, 1], np.int32)}
    found = run_lowered(lowered, load_hardware("portable_c"), given, {})
    np.testing.assert_array_equal(found["Y"], np.array([3, 0, 2, 1, 7, 7], np.float32))
