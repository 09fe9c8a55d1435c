"""Inputs whose panels many blocks pass are packed."""

import pytest

from isamap.diagnostics import Source
from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.reader import parse_schedule
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


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "treatment"),
    [
        (96, 1568, 64, "packed"),  # weaving takes ports that products want, too
        (8, 700, 512, "direct"),  # one block of rows
    ],
)
def test_an_input_is_packed_or_not_as_estimates_say(
    rows: int, columns: int, depth: int, treatment: str
) -> None:
    text = f"""kernel product(M = {rows}, N = {columns}, K = {depth}) {{
      in A : u8[M, K]  in B : s8[K, N]  out C : s32[M, N]
      C[m, n] += s32(A[m, k]) * s32(B[k, n]) }}"""
    kernel = parse_module(text).kernels[0]
    machine = load_hardware("x86_avx512_intel")
    result = map_kernel(kernel, machine, Options(prove=False))
    (own,) = result.schedule.statements
    assert own.operands == ("direct", treatment)
    other = "B direct" if treatment == "packed" else "B packed inside 1"
    for block in ("n/16, m/24", "n/32, m/12", "n/48, m/8", "n/64, m/6"):
        written = f"""schedule product {{
          C {{
            instruction vpdpbusd
            axes i <- n, k <- k
            loops {block}, k/16
            operands A direct, {other}
          }}
        }}"""
        options = Options(prove=False, schedule=parse_schedule(Source("<text>", written)))
        found = map_kernel(kernel, machine, options)
        assert found.estimate.cycles > result.estimate.cycles
