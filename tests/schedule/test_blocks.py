"""Which variables register blocks go over: those along which something is used again or follows."""

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.shape import block_of, read_shape
from isamap.text.load import parse_module

BATCH = """\
kernel products { in U : f32[6, 6, 64, 4, 16]  in V : f32[56, 6, 6, 56, 64]
  inout M : f32[56, 6, 6, 56, 4, 16]
  M[t, a, b, s, k, i] += U[a, b, c, k, i] * V[t, a, b, s, c] }
"""
WINDOWS = """\
kernel windows { in V : f32[56, 6, 226, 4, 16]  out W : f32[56, 6, 56, 4, 16]
  W[t, a, s, k, i] = V[t, a, 4*s + 1, k, i] * 4.0 + V[t, a, 4*s + 2, k, i] * 4.0
                     - V[t, a, 4*s + 3, k, i] - V[t, a, 4*s + 4, k, i] }
"""


def block(text: str) -> dict[str, int]:
    """Return the register block of a kernel's statement, in elements of each variable."""
    machine, kernel = load_hardware("x86_avx512"), parse_module(text).kernels[0]
    own = map_kernel(kernel, machine, Options(prove=False, rewrite=())).schedule.statements[0]
    shape = read_shape(own.mapping)
    tiles = block_of(shape, own.levels)
    return {v: count * shape.tile[v] for v, count in tiles.items()}


def test_a_block_goes_over_what_shares_an_operand() -> None:
    # Of five variables those of batches are the longest but two; they share nothing.
    found = block(BATCH)
    assert found["a"] == found["b"] == 1
    assert found["k"] > 1
    assert found["t"] * found["s"] > 1


def test_windows_that_follow_each_other_are_read_in_one_walk() -> None:
    # Four windows of 64 elements: whole ones lie side by side, parts of them do not.
    assert block(WINDOWS)["k"] == 4


def test_what_moves_a_window_is_outside_other_reductions() -> None:
    text = """\
kernel planes { in X : f32[20, 30, 30] pad 0  const F : f32[20, 5, 5, 32]  out Y : f32[32, 30, 30]
  Y[k, h, w] += X[c, h + r - 2, w + s - 2] * F[c, r, s, k] }
"""
    machine, kernel = load_hardware("x86_avx2"), parse_module(text).kernels[0]
    own = map_kernel(kernel, machine, Options(prove=False)).schedule.statements[0]
    shape = read_shape(own.mapping)
    assert [v for v in (level.variable for level in own.levels) if v in shape.reductions] == [
        "r",
        "s",
        "c",
    ]
