"""Choices by comparisons, of positions too, are made in vectors where a machine has them."""

import pytest

from isamap.emit.liveness import calls
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Op
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module

RUNNING = """kernel running(M = 7, N = 43) {
  in A : s32[M, N]  out C : s32[M, N]
  for k in 0..N
  C[m, n] += select(k <= n, A[m, k], 0)
}"""

LEAKY = """kernel leaky(N = 1000) {
  in X : f32[N]  out Y : f32[N]
  Y[i] = select(X[i] < 0, 0.1 * X[i], X[i])
}"""


@pytest.mark.parametrize("name", ["aarch64_sve2", "riscv_rvv", "vector_c", "x86_avx2"])
@pytest.mark.parametrize("text", [RUNNING, LEAKY])
def test_choices_are_made_in_vectors(name: str, text: str) -> None:
    result = map_kernel(parse_module(text).kernels[0], load_hardware(name), Options(prove=False))
    used = {call.instruction for call in calls(result.lowered.code)}
    assert not [name for name in used if name.startswith("c_") and "select" in name], used


SHORT = """kernel short(N = 1000) {
  in X : s16[N]  out Y : s16[N]
  Y[i] = select(X[i] < 0, X[i] >> 3, X[i])
}"""

PIXELS = """kernel pixels(N = 1000) {
  in X : u8[N]  in Z : u8[N]  out Y : u8[N]
  Y[i] = select((X[i] > Z[i]) & (Z[i] != 7), X[i] - Z[i], 255)
}"""


@pytest.mark.parametrize(
    "name",
    [
        "aarch64_neon",
        "aarch64_sve2",
        "arm_mve",
        "loongarch_lasx",
        "mips_msa",
        "power_mma",
        "riscv_rvv",
        "s390x_vector",
        "wasm_relaxed",
        "x86_avx2",
        "x86_avx512",
    ],
)
@pytest.mark.parametrize(("text", "lanes"), [(SHORT, 8), (PIXELS, 16)])
def test_so_are_those_of_short_integers_without_wider_ones(
    name: str, text: str, lanes: int
) -> None:
    result = map_kernel(parse_module(text).kernels[0], load_hardware(name), Options(prove=False))
    (own,) = result.schedule.statements
    assert own.mapping.tile["i"] >= lanes
    entries = {entry.name: entry for entry in load_hardware(name).entries}
    used = {call.instruction for call in calls(result.lowered.code)}
    computing = [
        entries[name]
        for name in used
        if any(isinstance(s.value, Op) for s in entries[name].instruction.statements)
    ]
    assert computing
    for entry in computing:
        (axis, *_) = entry.instruction.statements[0].variables or (None,)
        assert axis is not None, entry.name
