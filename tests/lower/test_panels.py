"""Inputs whose panels many blocks pass are packed."""

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "treatment"),
    [
        (960, 192, 300, "packed"),
        (96, 192, 300, "direct"),  # sixteen blocks: the copy does not pay
        (960, 64, 300, "direct"),  # a panel is the whole matrix, in one piece
        (960, 100, 20, "direct"),  # the first cache holds it
    ],
)
def test_an_input_is_packed_if_many_blocks_pass_scattered_pieces(
    rows: int, columns: int, depth: int, treatment: str
) -> None:
    text = f"""kernel product(M = {rows}, N = {columns}, K = {depth}) {{
      in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
      C[m, n] += A[m, k] * B[k, n] }}"""
    kernel = parse_module(text).kernels[0]
    options = Options(instruction="vfmadd_f32", prove=False)
    (own,) = map_kernel(kernel, load_hardware("x86_avx512"), options).schedule.statements
    assert dict(zip(("A", "B"), own.operands, strict=True)) == {"A": "direct", "B": treatment}
