"""An instruction that is asked for computes what it can, though others would be faster."""

from pathlib import Path

import pytest

from isamap.diagnostics import ArgumentsError, NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

EXPLAIN = Path(__file__).parents[1] / "explain"
LANES = """\
format: 1
name: lanes
title: one step at a time is fast, whatever does more is slow
extends: base.yaml
source: made for tests
instructions:
  - semantics: |
      instruction mma {
        in a : f32[4, 4] @ t   in b : f32[4, 4] @ t   inout c : f32[4, 4] @ t
        c[i, j] += a[i, k] * b[k, j]
      }
    throughput: 1
    latency: 1
    units: alu
  - semantics: |
      instruction mac<T = f32 s32> {
        in a : T[4] @ v   in b : T[4] @ v   inout c : T[4] @ v
        c[i] += a[i] * b[i]
      }
    throughput: 50
    latency: 50
    units: alu
  - semantics: |
      instruction clamp {
        in a : f32[4, 4] @ t   in b : f32[4] @ v   out r : f32[4, 4] @ t
        r[i, j] = max(a[i, j] + b[j], 0)
      }
    throughput: 1
    latency: 1
    units: alu
  - semantics: |
      instruction mm_relu {
        in a : f32[4, 4] @ t   in b : f32[4, 4] @ t   in bias : f32[4] @ v   out r : f32[4, 4] @ t
        local s : f32[4, 4]
        s[i, j] += a[i, k] * b[k, j]
        r[i, j] = max(s[i, j] + bias[j], 0)
      }
    throughput: 500
    latency: 500
    units: alu
"""
LAYER = """\
kernel layer(M = 8, N = 8, K = 4) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  in  C : f32[N]
  local S : f32[M, N]
  out Y : f32[M, N]
  S[m, n] += A[m, k] * B[k, n]
  Y[m, n] = max(S[m, n] + C[n], 0)
}
"""
SIGNED = """\
kernel signed(M = 8, N = 8, K = 16) {
  in    A : s8[M, K]
  const B : s8[K, N] values -64 .. 64
  out   C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}
"""


@pytest.fixture
def lanes(tmp_path: Path) -> Accelerator:
    (tmp_path / "base.yaml").write_text((EXPLAIN / "misfits" / "base.yaml").read_text())
    (tmp_path / "lanes.yaml").write_text(LANES)
    return load_hardware(str(tmp_path / "lanes.yaml"))


def _kernel(text: str) -> Kernel:
    (kernel,) = parse_module(text).kernels
    return kernel


def _names(kernel: Kernel, machine: Accelerator, instruction: str | None) -> list[str]:
    """Return the instructions chosen for the statements of a report that is right."""
    report = make_report(kernel, machine, Options(simulate=True, instruction=instruction))
    assert report.check is not None
    assert report.check.ok
    return [s.mapping.matching.needle.name for s in report.result.schedule.statements]


@pytest.mark.parametrize(
    ("instruction", "chosen"),
    [
        (None, ["mma", "clamp"]),
        ("mac_f32", ["mac_f32", "clamp"]),
        ("mac", ["mac_f32", "clamp"]),
        ("mm_relu", ["mm_relu"]),
    ],
)
def test_it_is_used_where_it_can_be(
    lanes: Accelerator, instruction: str | None, chosen: list[str]
) -> None:
    assert _names(_kernel(LAYER), lanes, instruction) == chosen


def test_it_is_used_after_a_rewriting() -> None:
    names = _names(_kernel(SIGNED), load_hardware("x86_avx2"), "vpmaddubsw")
    assert names[-1] == "vpmaddubsw + vpmaddwd + vadd_s32"


@pytest.mark.parametrize("part", ["pairs8", "pairs16", "add", "pairs8 + pairs16 + add"])
def test_it_may_be_a_part(part: str) -> None:
    text = (EXPLAIN / "compositions" / "product.ir").read_text()
    kernel = _kernel(text.replace("u8[M, K]", "u8[M, K] values 0 .. 127"))
    machine = load_hardware(str(EXPLAIN / "compositions" / "pairs.yaml"))
    assert _names(kernel, machine, part) == ["pairs8 + pairs16 + add"]


def test_one_that_computes_nothing_is_an_error(lanes: Accelerator) -> None:
    with pytest.raises(NoMappingError) as caught:
        _names(_kernel(LAYER), lanes, "mac_s32")
    (found,) = caught.value.diagnostics
    assert found.code == "E722"
    assert found.hint is not None
    assert f"isamap explain KERNEL.ir --hw {lanes.path} --instruction mac_s32" in found.hint
    notes = [note.message for note in found.notes]
    assert any("S: mac_s32: " in note and "s32" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("vcvt_bf16", "it computes what goes into"),
        ("vcvt_bf16 + vstore_ymm_bf16", "so are mappings told that are to"),
    ],
)
def test_one_that_computes_an_operand_names_the_one_to_ask_for(name: str, how: str) -> None:
    kernel = _kernel("kernel k(N = 64) { in A : f32[N] out Y : bf16[N] Y[i] = bf16(A[i]) }")
    with pytest.raises(NoMappingError) as caught:
        _names(kernel, load_hardware("x86_avx512"), name)
    told = [note.message for note in caught.value.diagnostics[0].notes]
    ask = "--instruction vstore_ymm_bf16"
    assert f"Y: {how} vstore_ymm_bf16: ask for that, with {ask}" in told
    assert _names(kernel, load_hardware("x86_avx512"), "vstore_ymm_bf16") == ["vstore_ymm_bf16"]


@pytest.mark.parametrize("name", ["mmb", "mma + addd"])
def test_one_that_there_is_not_is_an_error(lanes: Accelerator, name: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        _names(_kernel(LAYER), lanes, name)
    assert caught.value.diagnostics[0].code == "E704"
