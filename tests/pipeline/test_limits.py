"""What the analytical model says of a schedule in a report."""

from math import prod
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.pipeline.limits import limits
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Limits, Result
from isamap.text.load import parse_module
from isamap_search.budget import Budget

AVX512 = load_hardware("x86_avx512")
GEMM = """kernel mm(M = {m}, N = {n}, K = {k}) { in A : f32[M, K] in B : f32[K, N]
    out C : f32[M, N] C[i, j] += A[i, l] * B[l, j] }"""
SOFTENED = """kernel two(M = 96, N = 128) { in A : f32[M, N] in B : f32[M, N]
    local T : f32[M, N] out Y : f32[M, N]
    T[i, j] = A[i, j] + B[i, j]
    Y[i, j] = max(T[i, j], 0.0) }"""
WEIGHTS = """kernel w(M = 64) { const A : f32[M, M] local T : f32[M, M] in X : f32[M, M]
    out Y : f32[M, M]
    T[i, j] = A[i, j] * A[i, j]
    Y[i, j] += T[i, k] * X[k, j] }"""


def gemm(m: int, n: int, k: int) -> Kernel:
    text = GEMM.replace("{m}", str(m)).replace("{n}", str(n)).replace("{k}", str(k))
    return parse_module(text, "text").kernels[0]


def found(result: Result, cycles: float | None = None, threads: int = 1) -> Limits:
    told = limits(
        bind_extents(result.mapped),
        AVX512,
        result.schedule,
        result.lowered,
        result.symbols,
        threads,
        cycles,
    )
    assert told is not None
    return told


@pytest.mark.parametrize("sizes", [(64, 64, 64), (97, 130, 211), (1000, 16, 700)])
def test_no_tiling_undercuts_the_bound(sizes: tuple[int, int, int]) -> None:
    result = map_kernel(gemm(*sizes), AVX512, Options())
    told = found(result)
    mapping = result.mappings[0]
    names = dict(zip("ijl", sizes, strict=True))
    calls = prod(-(-extent // mapping.tile.get(v, 1)) for v, extent in names.items())
    assert told.bound >= calls * float(mapping.matching.needle.entry.throughput)
    assert told.bound <= told.tiled <= told.own
    assert told.gap == pytest.approx(told.tiled / told.bound - 1)
    assert told.reached is None
    assert told.optimum is not None
    assert told.lowest is not None
    assert told.bound <= told.lowest <= told.optimum


def test_what_is_reached_is_the_part_of_the_bound() -> None:
    result = map_kernel(gemm(64, 64, 64), AVX512, Options())
    bound = found(result).bound
    assert found(result, 2 * bound).reached == pytest.approx(0.5)
    assert found(result, 2 * bound, threads=2).reached == pytest.approx(0.25)


def test_what_stays_in_registers_is_not_moved() -> None:
    result = map_kernel(parse_module(SOFTENED, "text").kernels[0], AVX512, Options())
    told = found(result)
    # A, B and Y once, less what the first cache may hold; T not at all.
    assert told.by == "l2"
    assert told.bound == pytest.approx((3 * 4 * 96 * 128 - (48 << 10)) / 56)


def test_what_is_done_ahead_of_calls_does_not_count() -> None:
    result = map_kernel(parse_module(WEIGHTS, "text").kernels[0], AVX512, Options())
    assert result.lowered.prepare
    alone = map_kernel(gemm(64, 64, 64), AVX512, Options())
    assert found(result).bound == pytest.approx(found(alone).bound)


def test_a_search_by_the_model_tells_the_limits_and_is_the_same_each_time() -> None:
    kernel = gemm(200, 150, 300)
    options = Options(simulate=True, tune=Budget(trials=8))
    one, two = (map_kernel(kernel, AVX512, options) for _ in range(2))
    assert one.tuning == two.tuning
    assert one.schedule == two.schedule
    assert one.c == two.c
    assert one.tuning is not None
    told = one.tuning.limits
    assert told is not None
    assert told.reached == pytest.approx(told.bound / one.estimate.cycles)
    assert told.reached is not None
    assert 0 < told.reached <= 1


def test_statements_of_one_iteration_have_limits_and_no_tilings() -> None:
    text = (
        "kernel tiny(H = 9) { in A : f32[] in B : f32[H] out Y : f32[] local Z : f32[]\n"
        "Z[] = max(A[], 0)\nY[] += Z[] * B[h] }"
    )
    (kernel,) = parse_module(text).kernels
    result = map_kernel(kernel, AVX512, Options(simulate=True, tune=Budget(trials=4)))
    assert result.tuning is not None
    assert result.tuning.limits is not None
    assert 0 < result.tuning.limits.bound <= result.estimate.cycles


def test_a_kernel_that_reads_padding_only_has_a_bound() -> None:
    text = """kernel beside(H = 31) { in X : f32[H, 1, 30] pad 0 in F : f32[5, 1, 30, 8]
        out Y : f32[16, 2, 8]
        Y[h, w, k] += X[2*h + r - 1, 2*w + s - 1, c] * F[r, s, c, k] }"""
    result = map_kernel(parse_module(text, "text").kernels[0], AVX512, Options())
    assert 0 < found(result).bound <= result.estimate.cycles


ROWS = """\
format: 1
name: rows
clock: 1 GHz
issue: 1
units: {mxu: 1, dma: 1, act: 1}
storages:
  acc: {kind: registers, count: 16, bits: 8192}
  ub: {kind: registers, count: 64, bits: 2048}
  imm: {kind: immediate}
  memory: {kind: memory, read: 16 B/cycle, write: 16 B/cycle, latency: 50}
instructions:
  - semantics: |
      instruction load(P) {
        in m : s8[16, 16] @ memory strides [P, 1]
        out u : s8[16, 16] @ ub
        u[i, j] = m[i, j]
      }
    throughput: 16
    latency: 50
    units: dma
  - semantics: |
      instruction mm {
        in a : s8[16, 16] @ ub
        in b : s8[16, 16] @ ub
        inout c : s32[16, 16] @ acc
        c[i, j] += s32(a[i, k]) * s32(b[k, j])
      }
    throughput: 16
    latency: 30
    units: mxu
  - semantics: |
      instruction zero {
        out c : s32[16, 16] @ acc
        c[i, j] = 0
      }
    throughput: 16
    latency: 30
    units: act
  - semantics: |
      instruction acc_in {
        in m : s32[1, 16] @ memory
        out c : s32[1, 16] @ acc
        c[i, j] = m[i, j]
      }
    throughput: 16
    latency: 30
    units: dma
  - semantics: |
      instruction acc_out(P) {
        in c : s32[16, 16] @ acc
        out m : s32[16, 16] @ memory strides [P, 1]
        m[i, j] = c[i, j]
      }
    throughput: 64
    latency: 30
    units: dma
  - semantics: |
      instruction requant {
        in c : s32[16, 16] @ acc
        in f : f32[] @ imm
        out u : s8[16, 16] @ ub
        u[i, j] = sat[s8](f32(c[i, j]) * f[])
      }
    throughput: 16
    latency: 30
    units: act
  - semantics: |
      instruction requant_row {
        in c : s32[1, 16] @ acc
        in f : f32[] @ imm
        out u : s8[1, 16] @ ub
        u[i, j] = sat[s8](f32(c[i, j]) * f[])
      }
    throughput: 16
    latency: 30
    units: act
  - semantics: |
      instruction store(P) {
        in u : s8[16, 16] @ ub
        out m : s8[16, 16] @ memory strides [P, 1]
        m[i, j] = u[i, j]
      }
    throughput: 16
    latency: 50
    units: dma
  - semantics: |
      instruction store_row {
        in u : s8[1, 16] @ ub
        out m : s8[1, 16] @ memory
        m[i, j] = u[i, j]
      }
    throughput: 16
    latency: 50
    units: dma
"""
QUANTIZED = """kernel rq { in A : s8[64, 64] in B : s8[64, 64]
    local S : s32[64, 64] out C : s8[64, 64]
    S[i, j] += s32(A[i, k]) * s32(B[k, j])
    C[i, j] = sat[s8](f32(S[i, j]) * 0.02) }"""


def test_what_is_finished_in_larger_tiles_than_those_of_its_mapping_is_not_bound_by_these(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text(ROWS, encoding="utf-8")
    machine = load_hardware(str(path))
    result = map_kernel(parse_module(QUANTIZED, "text").kernels[0], machine, Options())
    assert result.mappings[1].matching.needle.name == "requant_row"
    kernel = bind_extents(result.mapped)
    told = limits(kernel, machine, result.schedule, result.lowered, result.symbols, 1, None)
    assert told is not None
    assert (told.bound, told.by) == (
        64 * 16,
        "mxu",
    )  # 16 products for each of four tiles of results
