"""Images of bytes that are computed in 16 bits: in vectors, on CPUs that convert on the way."""

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

KERNELS = {
    kernel.name: kernel
    for kernel in parse_module(
        """
kernel edges(H = 9, W = 70) {
  in  A : u8[H + 2, W + 2]
  out Y : u8[H, W]
  for h in 0..H
  for w in 0..W
  Y[h, w] = sat[u8](abs(s16(A[h, w]) - s16(A[h, w + 2]))
          + abs(s16(A[h, w]) + 2 * s16(A[h, w + 1]) - s16(A[h + 2, w])))
}
kernel blur(H = 9, W = 70) {
  in  A : u8[H + 2, W + 2]
  local S : u16[H, W]
  out Y : u8[H, W]
  for r in 0..3  for c in 0..3
  S[h, w] += u16(A[h + r, w + c])
  Y[h, w] = u8(S[h, w] >> 4)
}
kernel brighter(N = 333) {
  in  A : u8[N]
  in  B : u8[N]
  out Y : u8[N]
  Y[n] = sat[u8](u16(A[n]) + u16(B[n]))
}
kernel signed(N = 333) {
  in  A : s8[N]
  in  B : s8[N]
  out Y : s8[N]
  Y[n] = sat[s8](s16(A[n]) * 2 - s16(B[n]))
}
kernel between(N = 333) {
  in  A : u8[N]
  in  B : u8[N]
  out Y : u8[N]
  Y[n] = u8((u16(A[n]) + u16(B[n]) + 1) >> 1)
}
"""
    ).kernels
}


@pytest.mark.parametrize("hardware", ["x86_avx2", "x86_avx512"])
@pytest.mark.parametrize("name", KERNELS)
def test_images_are_computed_in_vectors(name: str, hardware: str) -> None:
    report = make_report(KERNELS[name], load_hardware(hardware), Options(prove=False))
    for statement in report.result.schedule.statements:
        assert statement.mapping.tile, statement.mapping.matching.needle.name
        assert max(statement.mapping.tile.values()) >= 16
    assert report.check is not None
    assert report.check.ok
