"""Choices by comparisons, of positions too, are made in vectors where a machine has them."""

import pytest

from isamap.emit.liveness import calls
from isamap.hw.load import load_hardware
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
